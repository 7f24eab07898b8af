/* SPDX-License-Identifier: Apache-2.0 */
/* diff: accelerate=yes */
/* select for reading, writing and errors: sets and counts; a closed descriptor is EBADF. */
#include "t.h"

static fd_set rd, wr, ex;
static int a, b;

static void sel(const char *name, long usec)
{
	struct timeval tv = { 0, usec };

	FD_ZERO(&rd);
	FD_ZERO(&wr);
	FD_ZERO(&ex);
	FD_SET(a, &rd);
	FD_SET(b, &rd);
	FD_SET(a, &wr);
	FD_SET(b, &ex);
	L(name, select((a > b ? a : b) + 1, &rd, &wr, &ex, &tv));
	printf("  read %d %d write %d except %d\n", !!FD_ISSET(a, &rd), !!FD_ISSET(b, &rd), !!FD_ISSET(a, &wr), !!FD_ISSET(b, &ex));
}

int main(void)
{
	struct timeval tv = { 0, 40000 };
	struct timespec ts = { 0, 40000000 };
	char buf[16];
	double t;

	t_init();
	t_warm_pair(&a, &b);
	sel("idle", 0);
	L("send", send(a, "x", 1, 0));
	t_arrived(b, 1);
	sel("bytes", 1000000);
	LB("recv", recv(b, buf, 16, 0), buf);
	FD_ZERO(&rd);
	FD_SET(b, &rd);
	t = t_now();
	L("time-out", select(b + 1, &rd, NULL, NULL, &tv));
	printf("not early %d, left %d, set %d\n", t_now() - t >= 0.039, tv.tv_sec == 0 && tv.tv_usec == 0, !!FD_ISSET(b, &rd));
	FD_SET(b, &rd);
	t = t_now();
	L("pselect", pselect(b + 1, &rd, NULL, NULL, &ts, NULL));
	printf("not early %d, untouched %d\n", t_now() - t >= 0.039, ts.tv_nsec == 40000000);
	L("send", send(a, "yz", 2, 0));
	FD_ZERO(&rd);
	FD_SET(b, &rd);
	L("for ever", select(b + 1, &rd, NULL, NULL, NULL));
	t_expect(b, "yz");
	close(a);
	t_until(b, POLLIN);
	FD_ZERO(&rd);
	FD_SET(b, &rd);
	L("at the end", select(b + 1, &rd, NULL, NULL, NULL));
	FD_SET(a, &rd);
	tv = (struct timeval){ 0, 0 };
	L("closed descriptor", select((a > b ? a : b) + 1, &rd, NULL, NULL, &tv));
	L("negative count", select(-1, &rd, NULL, NULL, &tv));
	return t_done();
}
