/* SPDX-License-Identifier: Apache-2.0 */
/* diff: accelerate=yes */
/* SO_SNDTIMEO ends a blocking send with EAGAIN when the peer does not read; nothing is lost. */
#include "t.h"

int main(void)
{
	struct timeval tv = { 0, 150000 };
	static char buf[1 << 16], in[1 << 16];
	uint64_t seed = 5, sum = T_SUM_START, got = T_SUM_START;
	size_t sent = 0, have = 0;
	double from;
	ssize_t r;
	int a, b;

	t_init();
	t_warm_pair(&a, &b);
	L("SO_SNDTIMEO", setsockopt(a, SOL_SOCKET, SO_SNDTIMEO, &tv, sizeof(tv)));
	t_fill(buf, sizeof(buf), &seed);
	for (;;) {
		from = t_now();
		errno = T_UNTOUCHED;
		r = send(a, buf, sizeof(buf), 0);
		if (r < 0)
			break;
		sum = t_sum(sum, buf, (size_t)r);
		sent += (size_t)r;
	}
	t_log("send when full", r);
	printf("not early %d\n", t_now() - from > 0.14);
	while (have < sent) {
		r = recv(b, in, sizeof(in), 0);
		t_need(r > 0);
		got = t_sum(got, in, (size_t)r);
		have += (size_t)r;
	}
	printf("all there %d, same %d\n", have == sent, got == sum);
	L("recv more", recv(b, in, sizeof(in), MSG_DONTWAIT));
	L("send again", send(a, "x", 1, 0));
	t_expect(b, "x");
	return t_done();
}
