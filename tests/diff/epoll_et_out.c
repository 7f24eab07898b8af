/* SPDX-License-Identifier: Apache-2.0 */
/* diff: accelerate=yes race=either */
/* race: an edge-triggered registration that waits for space is reported once more at a switch: see two_epoll_sets.c. */
/* Edge-triggered IN|OUT: OUT at once, both when bytes come; OUT again after the peer made room. */
#include "t.h"

int main(void)
{
	static char buf[1 << 16];
	size_t sent = 0, got = 0;
	struct epoll_event ev;
	ssize_t r;
	int a, b, ep;

	t_init();
	t_warm_pair(&a, &b);
	fcntl(a, F_SETFL, O_NONBLOCK);
	ep = epoll_create1(0);
	t_ep_ctl("add", ep, EPOLL_CTL_ADD, a, EPOLLIN | EPOLLOUT | EPOLLET, 0xa);
	t_ep_wait("writable", ep, 1000);
	t_ep_wait("once", ep, 0);
	L("send", send(b, "x", 1, 0));
	t_ep_wait("both", ep, 1000);
	t_expect(a, "x");
	while (epoll_wait(ep, &ev, 1, 0) > 0)
		;
	for (int still = 0; still < 20;) {
		r = send(a, buf, sizeof(buf), 0);
		if (r > 0) {
			sent += (size_t)r;
			still = 0;
		} else {
			still++;
			usleep(2000);
		}
	}
	while (epoll_wait(ep, &ev, 1, 0) > 0)
		;
	t_ep_wait("full", ep, 20);
	while (got < sent) {
		r = recv(b, buf, sizeof(buf), 0);
		t_need(r > 0);
		got += (size_t)r;
	}
	t_ep_wait("room again", ep, 5000);
	L("send", send(a, "y", 1, 0));
	t_expect(b, "y");
	return t_done();
}
