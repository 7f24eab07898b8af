/* SPDX-License-Identifier: Apache-2.0 */
/* diff: accelerate=yes */
/* Two processes that each send 512 KiB with blocking calls before they read, 8 times. */
#include "t.h"

#define SIZE (512u << 10)

static void talk(int fd, uint64_t seed)
{
	static unsigned char out[SIZE], in[SIZE];
	uint64_t sum = T_SUM_START;

	for (int i = 0; i < 8; i++) {
		t_fill(out, SIZE, &seed);
		if (t_send_all(fd, out, SIZE) != SIZE)
			L("send", -1);
		if (t_recv_all(fd, in, SIZE) != SIZE)
			L("recv", -1);
		sum = t_sum(sum, in, SIZE);
	}
	printf("sum %016llx\n", (unsigned long long)sum);
}

static void peer(int fd)
{
	t_warm_follow(fd);
	talk(fd, 31);
}

int main(void)
{
	int fd;

	t_init();
	fd = t_peer(peer);
	t_warm_lead(fd);
	talk(fd, 32);
	t_join(0);
	return t_done();
}
