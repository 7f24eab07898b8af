/* SPDX-License-Identifier: Apache-2.0 */
/* diff: accelerate=yes */
/* SO_LINGER with a time: close waits until the peer has the bytes, and loses none. */
#include "t.h"

static void peer(int fd)
{
	t_warm_follow(fd);
	usleep(50000);
	t_drain("recv", fd);
}

int main(void)
{
	static char buf[400000];
	struct linger l = { 1, 10 };
	uint64_t seed = 1;
	int fd;

	t_init();
	fd = t_peer(peer);
	t_warm_lead(fd);
	t_fill(buf, sizeof(buf), &seed);
	L("SO_LINGER", setsockopt(fd, SOL_SOCKET, SO_LINGER, &l, sizeof(l)));
	L("send", t_send_all(fd, buf, sizeof(buf)));
	L("close", close(fd));
	t_join(0);
	return t_done();
}
