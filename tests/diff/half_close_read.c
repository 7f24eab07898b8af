/* SPDX-License-Identifier: Apache-2.0 */
/* diff: accelerate=yes */
/* SHUT_WR ends one direction; the other goes on for as long as it likes. */
#include "t.h"

static void peer(int fd)
{
	static char reply[300000];
	uint64_t seed = 11;

	t_warm_follow(fd);
	t_drain("request", fd);
	t_fill(reply, sizeof(reply), &seed);
	L("reply", t_send_all(fd, reply, sizeof(reply)));
	printf("sum %016llx\n", (unsigned long long)t_sum(T_SUM_START, reply, sizeof(reply)));
}

int main(void)
{
	static char request[200000];
	uint64_t seed = 9;
	int fd;

	t_init();
	fd = t_peer(peer);
	t_warm_lead(fd);
	t_fill(request, sizeof(request), &seed);
	L("request", t_send_all(fd, request, sizeof(request)));
	L("shutdown", shutdown(fd, SHUT_WR));
	t_drain("reply", fd);
	t_join(0);
	return t_done();
}
