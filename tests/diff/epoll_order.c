/* SPDX-License-Identifier: Apache-2.0 */
/* diff: accelerate=yes race=either */
/*
 * race: what is sent on a connection while it is being switched waits in the sender until the switch is over. As after a delay in a
 * network it then arrives behind what other connections have sent since, so their order is another.
 */
/* Several connections become ready one after another: epoll tells them in that order, and takes turns when it may tell only one. */
#include "t.h"

int main(void)
{
	static const int order[] = { 2, 0, 3, 1 };
	struct epoll_event ev[8];
	char buf[4];
	int a[4], b[4], ep, n;

	t_init();
	ep = epoll_create1(0);
	for (int i = 0; i < 4; i++) {
		t_warm_pair(&a[i], &b[i]);
		t_ep_ctl("add", ep, EPOLL_CTL_ADD, b[i], EPOLLIN, (uint64_t)i);
	}
	for (int i = 0; i < 4; i++) {
		t_need(send(a[order[i]], "x", 1, 0) == 1);
		usleep(2000);
	}
	n = epoll_wait(ep, ev, 8, 1000);
	printf("ready %d:", n);
	for (int i = 0; i < n; i++)
		printf(" %d", (int)ev[i].data.u64);
	printf("\none at a time:");
	for (int i = 0; i < 8; i++) {
		n = epoll_wait(ep, ev, 1, 1000);
		printf(" %d", n == 1 ? (int)ev[0].data.u64 : -1);
	}
	printf("\n");
	for (int i = 0; i < 4; i++)
		L("recv", recv(b[i], buf, 4, 0));
	t_ep_wait("nothing", ep, 0);
	return t_done();
}
