/* SPDX-License-Identifier: Apache-2.0 */
/* diff: accelerate=yes reasons=peer-dead */
/* What a peer had sent before it was killed still arrives, then EOF. */
#include "t.h"

static void peer(int fd)
{
	static char buf[50000];
	uint64_t seed = 19;

	t_warm_follow(fd);
	t_fill(buf, sizeof(buf), &seed);
	t_need(t_send_all(fd, buf, sizeof(buf)) == sizeof(buf));
	kill(getpid(), SIGKILL);
}

int main(void)
{
	int fd;

	t_init();
	fd = t_peer_accepts(peer);
	t_warm_lead(fd);
	t_join(0);
	t_drain("recv", fd);
	return t_done();
}
