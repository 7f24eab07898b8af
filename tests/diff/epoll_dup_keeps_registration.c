/* SPDX-License-Identifier: Apache-2.0 */
/* diff: accelerate=yes reasons=fork */
/* Closing a registered descriptor whose connection lives on in a duplicate leaves it in the set. */
#include "t.h"

int main(void)
{
	char buf[16];
	int a, b, c, ep;

	t_init();
	t_warm_pair(&a, &b);
	ep = epoll_create1(0);
	t_ep_ctl("add", ep, EPOLL_CTL_ADD, b, EPOLLIN, 0xb);
	c = dup(b);
	L("close", close(b));
	L("send", send(a, "x", 1, 0));
	t_ep_wait("still told", ep, 1000);
	L("del by the closed number", epoll_ctl(ep, EPOLL_CTL_DEL, b, NULL));
	t_ep_ctl("add the duplicate", ep, EPOLL_CTL_ADD, c, EPOLLIN, 0xc);
	t_ep_wait("both", ep, 1000);
	LB("recv", recv(c, buf, 16, 0), buf);
	t_ep_wait("none", ep, 0);
	L("close the last", close(c));
	t_until(a, POLLIN);
	t_ep_wait("none", ep, 0);
	return t_done();
}
