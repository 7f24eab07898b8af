/* SPDX-License-Identifier: Apache-2.0 */
/* diff: accelerate=yes reasons=fork */
/* The process that made the connection forks and exits; its child carries it on. */
#include "t.h"

static void peer(int fd)
{
	pid_t pid;

	t_warm_follow(fd);
	fflush(stdout);
	pid = fork();
	t_need(pid >= 0);
	if (pid)
		t_leave();
	t_arm();
	t_expect(fd, "hello");
	L("child send", send(fd, "orphan", 6, 0));
	t_drain("end", fd);
	t_leave();
}

int main(void)
{
	int fd;

	t_init();
	fd = t_peer(peer);
	t_warm_lead(fd);
	waitid(P_PID, (id_t)t_last_peer(), &(siginfo_t){ 0 }, WEXITED | WNOWAIT);
	L("send", send(fd, "hello", 5, 0));
	t_expect(fd, "orphan");
	L("shutdown", shutdown(fd, SHUT_WR));
	t_drain("end", fd);
	t_join(0);
	return t_done();
}
