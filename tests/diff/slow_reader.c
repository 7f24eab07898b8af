/* SPDX-License-Identifier: Apache-2.0 */
/* diff: accelerate=yes */
/* A reader that reads nothing until the writer has closed and gone. */
#include "t.h"

static void peer(int fd)
{
	static char buf[60000];
	uint64_t seed = 15;

	t_warm_follow(fd);
	t_fill(buf, sizeof(buf), &seed);
	L("send", t_send_all(fd, buf, sizeof(buf)));
	L("close", close(fd));
}

int main(void)
{
	int fd;

	t_init();
	fd = t_peer(peer);
	t_warm_lead(fd);
	t_join(0);
	t_arrived(fd, 60000);
	t_poll1("poll", fd, POLLIN | POLLOUT | POLLRDHUP, 1000);
	t_drain("recv", fd);
	return t_done();
}
