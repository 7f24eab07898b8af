/* SPDX-License-Identifier: Apache-2.0 */
/* diff: accelerate=yes */
/* 32 MiB each way at once, written and read in random sizes. */
#include "t.h"

#define TOTAL (32u << 20)
#define PERIOD 1000003u /* a prime: no loss of a whole buffer can hide in the repetition */

static void both_ways(int fd, uint64_t seed)
{
	static unsigned char out[PERIOD + (1 << 17)], in[1 << 17];
	uint64_t sizes = seed * 77, sent_sum = T_SUM_START, got_sum = T_SUM_START;
	size_t sent = 0, got = 0, n;

	t_fill(out, PERIOD, &seed);
	memcpy(out + PERIOD, out, sizeof(out) - PERIOD);
	fcntl(fd, F_SETFL, O_NONBLOCK);
	while (sent < TOTAL || got < TOTAL) {
		struct pollfd p = { .fd = fd, .events = (short)((sent < TOTAL ? POLLOUT : 0) | (got < TOTAL ? POLLIN : 0)) };
		ssize_t r;

		t_need(poll(&p, 1, -1) == 1);
		if (p.revents & POLLIN) {
			r = recv(fd, in, t_rand(&sizes) % sizeof(in) + 1, 0);
			if (r == 0 || (r < 0 && errno != EAGAIN)) {
				L("recv ends", r);
				break;
			}
			if (r > 0) {
				got_sum = t_sum(got_sum, in, (size_t)r);
				got += (size_t)r;
			}
		}
		if (p.revents & POLLOUT && sent < TOTAL) {
			n = t_rand(&sizes) % (1 << 17) + 1;
			n = n < TOTAL - sent ? n : TOTAL - sent;
			r = send(fd, out + sent % PERIOD, n, MSG_NOSIGNAL);
			if (r < 0 && errno != EAGAIN) {
				L("send ends", r);
				break;
			}
			if (r > 0) {
				sent_sum = t_sum(sent_sum, out + sent % PERIOD, (size_t)r);
				sent += (size_t)r;
			}
		}
	}
	printf("sent %zu %016llx, got %zu %016llx\n", sent, (unsigned long long)sent_sum, got, (unsigned long long)got_sum);
}

static void peer(int fd)
{
	both_ways(fd, 101);
}

int main(void)
{
	int fd;

	t_init();
	fd = t_peer(peer);
	both_ways(fd, 202);
	t_join(0);
	return t_done();
}
