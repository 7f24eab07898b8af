/* SPDX-License-Identifier: Apache-2.0 */
/* diff: accelerate=yes */
/* 4 MiB sent, then close and exit at once: the reader gets all of it, then EOF. */
#include "t.h"

static void peer(int fd)
{
	static char buf[4 << 20];
	uint64_t seed = 13;

	t_warm_follow(fd);
	t_fill(buf, sizeof(buf), &seed);
	t_need(t_send_all(fd, buf, sizeof(buf)) == sizeof(buf));
	printf("sent %016llx\n", (unsigned long long)t_sum(T_SUM_START, buf, sizeof(buf)));
	fflush(stdout);
	_exit(0);
}

int main(void)
{
	int fd;

	t_init();
	fd = t_peer(peer);
	t_warm_lead(fd);
	t_drain("recv", fd);
	t_join(0);
	return t_done();
}
