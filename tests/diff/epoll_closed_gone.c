/* SPDX-License-Identifier: Apache-2.0 */
/* diff: accelerate=yes */
/* A closed connection leaves the set by itself; its number, reused, is not in the set. */
#include "t.h"

int main(void)
{
	int a, b, c, d, ep;

	t_init();
	ep = epoll_create1(0);
	t_warm_pair(&a, &b);
	t_ep_ctl("add", ep, EPOLL_CTL_ADD, b, EPOLLIN, 0xb);
	L("send", send(a, "x", 1, 0));
	t_ep_wait("ready", ep, 1000);
	L("close", close(b));
	t_ep_wait("gone", ep, 0);
	close(a);
	t_warm_pair(&c, &d);
	printf("numbers reused %d\n", c == a || d == b || c == b || d == a);
	L("send", send(c, "x", 1, 0));
	L("send", send(d, "x", 1, 0));
	t_arrived(c, 1);
	t_arrived(d, 1);
	t_ep_wait("not in the set", ep, 20);
	t_ep_ctl("add", ep, EPOLL_CTL_ADD, d, EPOLLIN, 0xd);
	t_ep_wait("ready", ep, 1000);
	return t_done();
}
