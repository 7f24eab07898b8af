/* SPDX-License-Identifier: Apache-2.0 */
/* diff: accelerate=yes reasons=fork,exec */
/* vfork and exec, also a vfork child that closes everything first: the parent's connections stay. */
#include "t.h"

int main(void)
{
	int a, b, status;
	pid_t pid;

	t_init();
	t_warm_pair(&a, &b);
	for (int i = 0; i < 3; i++) {
		pid = vfork();
		if (!pid) {
			if (i == 1) {
				close(a);
				close(b);
			}
			if (i == 2)
				_exit(5);
			execlp("true", "true", (char *)NULL);
			_exit(97);
		}
		t_need(waitpid(pid, &status, 0) == pid);
		printf("child %d\n", WEXITSTATUS(status));
		L("send", send(a, "ping", 4, 0));
		t_expect(b, "ping");
		L("send", send(b, "pong", 4, 0));
		t_expect(a, "pong");
	}
	return t_done();
}
