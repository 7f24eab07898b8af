/* SPDX-License-Identifier: Apache-2.0 */
/* diff: accelerate=yes */
/* poll with zero, positive and no time; negative descriptors; descriptors that are closed. */
#include "t.h"

int main(void)
{
	struct pollfd p[3];
	struct timespec ts = { 0, 30000000 };
	double t;
	int a, b;

	t_init();
	t_warm_pair(&a, &b);
	t_poll1("zero", b, POLLIN, 0);
	t = t_now();
	t_poll1("50 ms", b, POLLIN, 50);
	t = t_now() - t;
	printf("not early %d, not late %d\n", t >= 0.049, t < 2);
	p[0] = (struct pollfd){ .fd = b, .events = POLLIN };
	t = t_now();
	L("ppoll 30 ms", ppoll(p, 1, &ts, NULL));
	t = t_now() - t;
	printf("not early %d, not late %d\n", t >= 0.029, t < 2);
	p[0] = (struct pollfd){ .fd = -1, .events = POLLIN, .revents = 99 };
	p[1] = (struct pollfd){ .fd = 900, .events = POLLIN };
	p[2] = (struct pollfd){ .fd = b, .events = POLLIN };
	L("mixed", poll(p, 3, 1000));
	printf("%d %s %d\n", p[0].revents, t_mask((uint16_t)p[1].revents), p[2].revents);
	L("none", poll(NULL, 0, 1));
	L("send", send(a, "x", 1, 0));
	p[1].fd = a;
	p[1].events = POLLIN | POLLOUT;
	t_arrived(b, 1);
	L("mixed", poll(p, 3, -1));
	printf("%d %s", p[0].revents, t_mask((uint16_t)p[1].revents));
	printf(" %s\n", t_mask((uint16_t)p[2].revents));
	return t_done();
}
