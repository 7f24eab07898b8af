/* SPDX-License-Identifier: Apache-2.0 */
/* diff: accelerate=yes reasons=exec,fork */
/* A child exec'ed with the connection as its stdin and stdout (inetd): cat echoes. */
#include "t.h"
#include <spawn.h>

extern char **environ;

static void peer(int fd)
{
	t_warm_follow(fd);
	for (int i = 0; i < 20; i++) {
		t_need(send(fd, "echo me\n", 8, 0) == 8);
		t_expect(fd, "echo me\n");
	}
	L("shutdown", shutdown(fd, SHUT_WR));
	t_drain("end", fd);
}

int main(void)
{
	posix_spawn_file_actions_t fa;
	char *args[] = { "cat", NULL };
	int fd, status;
	pid_t pid;

	t_init();
	for (int how = 0; how < 2; how++) {
		fd = t_peer_accepts(peer);
		t_warm_lead(fd);
		if (how == 0) {
			pid = fork();
			if (!pid) {
				dup2(fd, 0);
				dup2(fd, 1);
				execvp("cat", args);
				_exit(97);
			}
		} else {
			posix_spawn_file_actions_init(&fa);
			posix_spawn_file_actions_adddup2(&fa, fd, 0);
			posix_spawn_file_actions_adddup2(&fa, fd, 1);
			L("posix_spawnp", posix_spawnp(&pid, "cat", &fa, NULL, args, environ));
			posix_spawn_file_actions_destroy(&fa);
		}
		close(fd);
		t_need(waitpid(pid, &status, 0) == pid);
		printf("cat ended with %d\n", WEXITSTATUS(status));
		t_join(0);
	}
	return t_done();
}
