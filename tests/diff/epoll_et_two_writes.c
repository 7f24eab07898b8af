/* SPDX-License-Identifier: Apache-2.0 */
/* diff: accelerate=yes race=either */
/* race: an edge that is reported at the very moment at which a switch begins may be reported once more. */
/* Edge-triggered: a second arrival is a second edge though the first was not read. */
#include "t.h"

int main(void)
{
	char buf[16];
	int a, b, ep;

	t_init();
	t_warm_pair(&a, &b);
	ep = epoll_create1(0);
	t_ep_ctl("add", ep, EPOLL_CTL_ADD, b, EPOLLIN | EPOLLET, 0xb);
	for (int i = 0; i < 3; i++) {
		L("send", send(a, "ab", 2, 0));
		t_ep_wait("edge", ep, 1000);
		t_ep_wait("none", ep, 0);
	}
	L("send", send(a, "cd", 2, 0));
	L("send", send(a, "ef", 2, 0));
	t_arrived(b, 10);
	t_ep_wait("one for both", ep, 1000);
	t_ep_wait("none", ep, 0);
	LB("recv", recv(b, buf, 16, 0), buf);
	t_ep_wait("none", ep, 0);
	shutdown(a, SHUT_WR);
	t_ep_wait("end", ep, 1000);
	t_ep_wait("none", ep, 0);
	return t_done();
}
