/* SPDX-License-Identifier: Apache-2.0 */
/* diff: accelerate=yes */
/* Level-triggered: ready as long as bytes are there, not ready when they are gone. */
#include "t.h"

int main(void)
{
	char buf[16];
	int a, b, ep;

	t_init();
	t_warm_pair(&a, &b);
	ep = epoll_create1(0);
	t_ep_ctl("add", ep, EPOLL_CTL_ADD, b, EPOLLIN, 0xb);
	t_ep_wait("nothing", ep, 0);
	L("send", send(a, "abcd", 4, 0));
	t_ep_wait("ready", ep, 1000);
	t_ep_wait("still", ep, 0);
	LB("recv", recv(b, buf, 2, 0), buf);
	t_ep_wait("two left", ep, 0);
	LB("recv", recv(b, buf, 2, 0), buf);
	t_ep_wait("gone", ep, 0);
	t_ep_wait("gone, 20 ms", ep, 20);
	close(a);
	t_ep_wait("the end", ep, 1000);
	t_ep_wait("still the end", ep, 0);
	L("recv", recv(b, buf, 2, 0));
	t_ep_wait("still the end", ep, 0);
	return t_done();
}
