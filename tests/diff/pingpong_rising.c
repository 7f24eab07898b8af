/* SPDX-License-Identifier: Apache-2.0 */
/* diff: accelerate=yes */
/* 2000 round trips with sizes that rise from 1 byte to 256 KiB. */
#include "t.h"

#define ROUNDS 2000
static char buf[1 << 18];

static size_t size_of(int i)
{
	return i < 1900 ? (size_t)i * 3 + 1 : ((size_t)1 << 18) - (size_t)(ROUNDS - 1 - i) * 2531;
}

static void peer(int fd)
{
	for (int i = 0; i < ROUNDS; i++) {
		size_t n = size_of(i);

		t_need(t_recv_all(fd, buf, n) == n && t_send_all(fd, buf, n) == n);
	}
	t_drain("end", fd);
}

int main(void)
{
	static char out[1 << 18];
	uint64_t seed = 4, sum = T_SUM_START;
	int fd;

	t_init();
	fd = t_peer_accepts(peer);
	t_fill(out, sizeof(out), &seed);
	for (int i = 0; i < ROUNDS; i++) {
		size_t n = size_of(i);

		out[0] = (char)i;
		if (t_send_all(fd, out, n) != n || t_recv_all(fd, buf, n) != n || memcmp(out, buf, n)) {
			printf("round %d went wrong\n", i);
			break;
		}
		if (i % 50 == 0)
			sum = t_sum(sum, buf, n);
	}
	printf("sum %016llx\n", (unsigned long long)sum);
	close(fd);
	t_join(0);
	return t_done();
}
