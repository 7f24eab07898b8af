/* SPDX-License-Identifier: Apache-2.0 */
/* diff: accelerate=yes reasons=exec */
/* exec without fork, with an empty environment: the connection goes on in the kernel. */
#include "t.h"

static void peer(int fd)
{
	t_warm_follow(fd);
	t_expect(fd, "after exec");
	L("send", send(fd, "goodbye", 7, 0));
	t_drain("end", fd);
}

int main(int argc, char **argv)
{
	char num[16], *args[] = { argv[0], num, NULL }, *env[] = { NULL };
	int fd;

	t_init();
	if (argc > 1) {
		fd = atoi(argv[1]);
		L("send", send(fd, "after exec", 10, 0));
		t_expect(fd, "goodbye");
		close(fd);
		wait(NULL);
		return t_done();
	}
	fd = t_peer(peer);
	t_warm_lead(fd);
	fcntl(fd, F_SETFD, 0);
	snprintf(num, sizeof(num), "%d", fd);
	fflush(stdout);
	L("execve of nothing", execve("/nonexistent", args, env));
	fflush(stdout);
	execve("/proc/self/exe", args, env);
	return 97;
}
