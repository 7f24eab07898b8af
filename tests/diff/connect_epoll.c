/* SPDX-License-Identifier: Apache-2.0 */
/* diff: accelerate=yes */
/* A connect under way in an epoll set: HUP|OUT before connect, OUT when it is done. */
#include "t.h"

int main(void)
{
	struct t_addr at;
	int l, a, b, ep, e = -1;
	socklen_t len = sizeof(e);

	t_init();
	l = t_listen(&at);
	ep = epoll_create1(0);
	a = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
	t_ep_ctl("add", ep, EPOLL_CTL_ADD, a, EPOLLIN | EPOLLOUT | EPOLLRDHUP, 0xa);
	t_ep_wait("before connect", ep, 1000);
	L("connect", connect(a, (struct sockaddr *)&at.ss, at.len));
	t_ep_wait("connected", ep, 5000);
	L("SO_ERROR", getsockopt(a, SOL_SOCKET, SO_ERROR, &e, &len));
	printf("  %d\n", e);
	b = t_accept(l);
	t_warm(a, b);
	t_ep_wait("writable", ep, 1000);
	L("send", send(b, "x", 1, 0));
	t_arrived(a, 1);
	t_ep_wait("both", ep, 1000);
	return t_done();
}
