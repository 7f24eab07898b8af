/* SPDX-License-Identifier: Apache-2.0 */
/* diff: accelerate=yes race=either */
/* race: the seventy calls take less time than a switch, and a connection that is being worked on at the moment loses its turn. */
/* Busy connections, a pipe, an eventfd, a timer and a listener in one set: all get their turn with maxevents 1. */
#include "t.h"
#include <sys/eventfd.h>
#include <sys/timerfd.h>

int main(void)
{
	struct itimerspec its = { { 0, 0 }, { 0, 1 } };
	struct epoll_event ev;
	struct t_addr at;
	int a[3], b[3], ep, p[2], e, t, l, seen[8] = { 0 }, all = 0, c;

	t_init();
	ep = epoll_create1(0);
	for (int i = 0; i < 3; i++) {
		t_warm_pair(&a[i], &b[i]);
		t_need(send(a[i], "never read", 10, 0) == 10);
		t_arrived(b[i], 10);
		t_ep_ctl("add", ep, EPOLL_CTL_ADD, b[i], EPOLLIN, (uint64_t)i);
	}
	t_need(!pipe(p) && write(p[1], "x", 1) == 1);
	e = eventfd(1, 0);
	t = timerfd_create(CLOCK_MONOTONIC, 0);
	t_need(!timerfd_settime(t, 0, &its, NULL));
	l = t_listen(&at);
	c = t_connect(&at);
	t_until(l, POLLIN);
	t_until(t, POLLIN);
	t_ep_ctl("add pipe", ep, EPOLL_CTL_ADD, p[0], EPOLLIN, 3);
	t_ep_ctl("add eventfd", ep, EPOLL_CTL_ADD, e, EPOLLIN, 4);
	t_ep_ctl("add timer", ep, EPOLL_CTL_ADD, t, EPOLLIN, 5);
	t_ep_ctl("add listener", ep, EPOLL_CTL_ADD, l, EPOLLIN, 6);
	for (int i = 0; i < 70; i++) {
		t_need(epoll_wait(ep, &ev, 1, 1000) == 1);
		seen[ev.data.u64]++;
	}
	for (int i = 0; i < 7; i++) {
		all += seen[i] > 0;
		if (seen[i] < 5)
			printf("%d was starved: %d of 70\n", i, seen[i]);
	}
	printf("seen %d of 7\n", all);
	close(c);
	return t_done();
}
