/* SPDX-License-Identifier: Apache-2.0 */
/* diff: accelerate=yes reasons=exec,fork */
/* A connection without CLOEXEC lives on in the program that is exec'ed. */
#include "t.h"

static void peer(int fd)
{
	t_warm_follow(fd);
	L("send", send(fd, "unread before exec", 18, 0));
	t_expect(fd, "after exec");
	L("send", send(fd, "goodbye", 7, 0));
	t_drain("end", fd);
}

int main(int argc, char **argv)
{
	char num[16];
	pid_t child;
	int fd;

	t_init();
	if (argc > 1) {
		fd = atoi(argv[1]);
		t_expect(fd, "unread before exec");
		L("send", send(fd, "after exec", 10, 0));
		t_expect(fd, "goodbye");
		return t_done();
	}
	fd = t_peer(peer);
	t_warm_lead(fd);
	t_arrived(fd, 18);
	child = t_fork();
	if (!child) {
		fcntl(fd, F_SETFD, 0);
		snprintf(num, sizeof(num), "%d", fd);
		execl("/proc/self/exe", argv[0], num, (char *)NULL);
		_exit(97);
	}
	close(fd);
	t_join(child);
	t_join(0);
	return t_done();
}
