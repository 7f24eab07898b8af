/* SPDX-License-Identifier: Apache-2.0 */
/* diff: accelerate=yes reasons=fork */
/* SIGPIPE comes with EPIPE, once a call, not with MSG_NOSIGNAL; ignored it is only EPIPE. */
#include "t.h"

static volatile sig_atomic_t pipes;

static void on_pipe(int sig)
{
	(void)sig;
	pipes++;
}

int main(void)
{
	int a, b;

	t_init();
	t_warm_pair(&a, &b);
	t_set_handler(SIGPIPE, on_pipe, 0);
	shutdown(a, SHUT_WR);
	L("send", send(a, "x", 1, 0));
	printf("signals %d\n", (int)pipes);
	L("write", write(a, "x", 1));
	printf("signals %d\n", (int)pipes);
	L("send NOSIGNAL", send(a, "x", 1, MSG_NOSIGNAL));
	printf("signals %d\n", (int)pipes);
	signal(SIGPIPE, SIG_DFL);
	if (!t_fork()) {
		(void)!write(a, "x", 1);
		t_leave();
	}
	t_join(0);
	return t_done();
}
