/* SPDX-License-Identifier: Apache-2.0 */
/* diff: accelerate=yes race=either */
/* race: an edge that is reported at the very moment at which a switch begins may be reported once more. */
/* Edge-triggered: one event an arrival; MOD arms again when bytes are left. */
#include "t.h"

int main(void)
{
	char buf[16];
	int a, b, ep;

	t_init();
	t_warm_pair(&a, &b);
	ep = epoll_create1(0);
	t_ep_ctl("add", ep, EPOLL_CTL_ADD, b, EPOLLIN | EPOLLET, 0xb);
	t_ep_wait("nothing", ep, 0);
	L("send", send(a, "abcd", 4, 0));
	t_ep_wait("edge", ep, 1000);
	t_ep_wait("no second", ep, 0);
	LB("recv", recv(b, buf, 2, 0), buf);
	t_ep_wait("bytes left, no edge", ep, 0);
	t_ep_ctl("mod", ep, EPOLL_CTL_MOD, b, EPOLLIN | EPOLLET, 0xb);
	t_ep_wait("armed again", ep, 1000);
	t_ep_wait("once", ep, 0);
	LB("recv", recv(b, buf, 16, 0), buf);
	t_ep_ctl("mod", ep, EPOLL_CTL_MOD, b, EPOLLIN | EPOLLET, 0xb);
	t_ep_wait("nothing to tell", ep, 0);
	L("send", send(a, "e", 1, 0));
	t_ep_wait("edge", ep, 1000);
	LB("recv", recv(b, buf, 16, 0), buf);
	return t_done();
}
