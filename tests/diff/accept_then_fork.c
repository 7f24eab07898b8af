/* SPDX-License-Identifier: Apache-2.0 */
/* diff: accelerate=yes reasons=fork,cancelled,peer-absent,peer-refused */
/* The server accepts, forks, and the child serves; the parent closes its copy. */
#include "t.h"

static int l;

static void serve(void)
{
	for (int i = 0; i < 3; i++) {
		int fd = t_accept(l);
		pid_t pid = fork();

		t_need(pid >= 0);
		if (pid) {
			close(fd);
			continue;
		}
		t_arm();
		close(l);
		t_warm_follow(fd);
		t_expect(fd, "question");
		t_need(send(fd, "answer", 6, 0) == 6);
		close(fd);
		t_leave();
	}
	while (wait(NULL) > 0)
		;
}

int main(void)
{
	struct t_addr at;

	t_init();
	l = t_listen(&at);
	if (!t_fork()) {
		serve();
		t_leave();
	}
	close(l);
	for (int i = 0; i < 3; i++) {
		int fd = t_connect(&at);

		t_warm_lead(fd);
		L("send", send(fd, "question", 8, 0));
		t_drain("answer", fd);
		close(fd);
	}
	t_join(0);
	return t_done();
}
