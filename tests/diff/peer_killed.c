/* SPDX-License-Identifier: Apache-2.0 */
/* diff: accelerate=yes reasons=peer-dead */
/* The peer is killed: EOF when it had read everything, ECONNRESET when it had not. */
#include "t.h"

static void peer(int fd)
{
	t_warm_follow(fd);
	for (;;)
		pause();
}

int main(void)
{
	char buf[16];
	pid_t pid;
	int fd;

	t_init();
	signal(SIGPIPE, SIG_IGN);
	for (int unread = 0; unread < 2; unread++) {
		fd = t_peer(peer);
		pid = t_last_peer();
		t_warm_lead(fd);
		if (unread)
			L("send", send(fd, "unread", 6, 0));
		kill(pid, SIGKILL);
		t_join(pid);
		t_until(fd, unread ? POLLERR : POLLIN);
		t_poll1("poll", fd, POLLIN | POLLOUT | POLLRDHUP, 1000);
		L("recv", recv(fd, buf, 16, 0));
		L("recv", recv(fd, buf, 16, 0));
		L("close", close(fd));
	}
	return t_done();
}
