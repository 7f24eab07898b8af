/* SPDX-License-Identifier: Apache-2.0 */
/* diff: accelerate=yes */
/* The errors of epoll_ctl and epoll_wait. */
#include "t.h"

int main(void)
{
	struct epoll_event ev[2];
	volatile int minus = -1;
	int a, b, ep, f;

	t_init();
	t_warm_pair(&a, &b);
	ep = epoll_create1(0);
	t_ep_ctl("add", ep, EPOLL_CTL_ADD, b, EPOLLIN, 1);
	t_ep_ctl("add again", ep, EPOLL_CTL_ADD, b, EPOLLIN, 2);
	t_ep_ctl("add itself", ep, EPOLL_CTL_ADD, ep, EPOLLIN, 2);
	t_ep_ctl("add closed", ep, EPOLL_CTL_ADD, 900, EPOLLIN, 2);
	t_ep_ctl("bad op", ep, 9, b, EPOLLIN, 2);
	t_ep_ctl("not an epoll", a, EPOLL_CTL_ADD, b, EPOLLIN, 2);
	t_ep_ctl("closed epoll", 900, EPOLL_CTL_ADD, b, EPOLLIN, 2);
	L("add NULL", epoll_ctl(ep, EPOLL_CTL_ADD, a, NULL));
	f = memfd_create("f", 0);
	t_ep_ctl("add a file", ep, EPOLL_CTL_ADD, f, EPOLLIN, 2);
	t_ep_ctl("exclusive with oneshot", ep, EPOLL_CTL_ADD, a, EPOLLIN | EPOLLEXCLUSIVE | EPOLLONESHOT, 2);
	L("wait for none", epoll_wait(ep, ev, 0, 0));
	L("wait for -1", epoll_wait(ep, ev, minus, 0));
	L("wait on a socket", epoll_wait(a, ev, 1, 0));
	L("wait on a closed one", epoll_wait(900, ev, 1, 0));
	t_ep_ctl("first one kept", ep, EPOLL_CTL_MOD, b, EPOLLIN, 7);
	L("send", send(a, "x", 1, 0));
	t_ep_wait("ready", ep, 1000);
	t_expect(b, "x");
	return t_done();
}
