/* SPDX-License-Identifier: Apache-2.0 */
/* diff: accelerate=yes */
/* Time-outs of epoll_wait and epoll_pwait2: zero returns at once, others neither early nor much too late. */
#include "t.h"

int main(void)
{
	struct timespec ts = { 0, 30000000 }, zero = { 0, 0 };
	struct epoll_event ev;
	double t;
	int a, b, ep;

	t_init();
	t_warm_pair(&a, &b);
	ep = epoll_create1(0);
	t_ep_ctl("add", ep, EPOLL_CTL_ADD, b, EPOLLIN, 1);
	L("zero", epoll_wait(ep, &ev, 1, 0));
	t = t_now();
	L("50 ms", epoll_wait(ep, &ev, 1, 50));
	t = t_now() - t;
	printf("not early %d, not late %d\n", t >= 0.049, t < 2);
	t = t_now();
	L("pwait2 30 ms", epoll_pwait2(ep, &ev, 1, &ts, NULL));
	t = t_now() - t;
	printf("not early %d, not late %d\n", t >= 0.029, t < 2);
	L("pwait2 zero", epoll_pwait2(ep, &ev, 1, &zero, NULL));
	L("send", send(a, "x", 1, 0));
	L("pwait2 for ever", epoll_pwait2(ep, &ev, 1, NULL, NULL));
	L("wait", epoll_wait(ep, &ev, 1, -1));
	return t_done();
}
