/* SPDX-License-Identifier: Apache-2.0 */
/* diff: accelerate=yes */
/* A non-blocking sender fills up: EAGAIN, no POLLOUT, and POLLOUT again when the peer has read. */
#include "t.h"

int main(void)
{
	static char buf[1 << 16], in[1 << 16];
	uint64_t seed = 8, sum = T_SUM_START, got = T_SUM_START;
	size_t sent = 0, have = 0;
	ssize_t r;
	int a, b;

	t_init();
	t_warm_pair(&a, &b);
	t_fill(buf, sizeof(buf), &seed);
	fcntl(a, F_SETFL, O_NONBLOCK);
	for (int still = 0; still < 20;) { /* the kernel's buffers may grow while it sends */
		errno = T_UNTOUCHED;
		r = write(a, buf, sizeof(buf));
		if (r < 0) {
			still++;
			usleep(2000);
		} else {
			still = 0;
			sum = t_sum(sum, buf, (size_t)r);
			sent += (size_t)r;
		}
	}
	t_log("write when full", r);
	t_poll1("poll", a, POLLOUT, 0);
	while (have < sent) {
		r = read(b, in, sizeof(in));
		t_need(r > 0);
		got = t_sum(got, in, (size_t)r);
		have += (size_t)r;
	}
	t_poll1("poll", a, POLLOUT, 5000);
	printf("all there %d, same %d\n", have == sent, got == sum);
	L("write", write(a, "x", 1));
	t_expect(b, "x");
	return t_done();
}
