/* SPDX-License-Identifier: Apache-2.0 */
/* diff: accelerate=yes */
/* ONESHOT: one event, then silence until MOD. */
#include "t.h"

int main(void)
{
	char buf[16];
	int a, b, ep;

	t_init();
	t_warm_pair(&a, &b);
	ep = epoll_create1(0);
	t_ep_ctl("add", ep, EPOLL_CTL_ADD, b, EPOLLIN | EPOLLONESHOT, 0xb);
	L("send", send(a, "abcd", 4, 0));
	t_ep_wait("once", ep, 1000);
	t_ep_wait("silent", ep, 0);
	L("send", send(a, "ef", 2, 0));
	t_arrived(b, 6);
	t_ep_wait("silent", ep, 0);
	t_ep_ctl("mod", ep, EPOLL_CTL_MOD, b, EPOLLIN | EPOLLONESHOT, 0xbb);
	t_ep_wait("again", ep, 1000);
	t_ep_wait("silent", ep, 0);
	LB("recv", recv(b, buf, 16, 0), buf);
	t_ep_ctl("mod", ep, EPOLL_CTL_MOD, b, EPOLLIN | EPOLLONESHOT, 0xbb);
	t_ep_wait("nothing yet", ep, 0);
	L("send", send(a, "g", 1, 0));
	t_ep_wait("again", ep, 1000);
	close(a);
	t_until(b, POLLRDHUP);
	t_ep_wait("silent at the end too", ep, 0);
	t_ep_ctl("mod", ep, EPOLL_CTL_MOD, b, EPOLLIN | EPOLLRDHUP | EPOLLONESHOT, 0xbb);
	t_ep_wait("the end", ep, 1000);
	return t_done();
}
