/* SPDX-License-Identifier: Apache-2.0 */
/* diff: accelerate=yes race=either */
/*
 * race: bytes can be counted, but nobody can ask the kernel whether it still owes an edge for space to a registration that is taken out
 * of its set. Losing one would be a hang, so an edge-triggered registration that waits for space is reported once more at a switch.
 */
/* One connection in two sets: each tells on its own. */
#include "t.h"

int main(void)
{
	char buf[16];
	int a, b, e1, e2;

	t_init();
	t_warm_pair(&a, &b);
	e1 = epoll_create1(0);
	e2 = epoll_create1(0);
	t_ep_ctl("add", e1, EPOLL_CTL_ADD, b, EPOLLIN, 1);
	t_ep_ctl("add", e2, EPOLL_CTL_ADD, b, EPOLLIN | EPOLLOUT | EPOLLET, 2);
	t_ep_wait("first", e1, 0);
	t_ep_wait("second", e2, 1000);
	L("send", send(a, "ab", 2, 0));
	t_ep_wait("first", e1, 1000);
	t_ep_wait("second", e2, 1000);
	t_ep_wait("first", e1, 0);
	t_ep_wait("second", e2, 0);
	L("del from the first", epoll_ctl(e1, EPOLL_CTL_DEL, b, NULL));
	L("send", send(a, "cd", 2, 0));
	t_ep_wait("second", e2, 1000);
	t_ep_wait("first", e1, 0);
	LB("recv", recv(b, buf, 16, 0), buf);
	L("close the first", close(e1));
	L("send", send(a, "e", 1, 0));
	t_ep_wait("second", e2, 1000);
	return t_done();
}
