/* SPDX-License-Identifier: Apache-2.0 */
/* diff: accelerate=yes */
/* Several processes accept from one listener that they inherited. */
#include "t.h"

static void work(int l)
{
	for (;;) {
		int fd = t_accept(l);
		char c = 0;

		t_warm_follow(fd);
		t_need(recv(fd, &c, 1, 0) == 1);
		t_need(send(fd, &c, 1, 0) == 1);
		close(fd);
		if (c == 'q')
			t_leave();
	}
}

int main(void)
{
	struct t_addr at;
	int l, fd, ok = 0;
	char c;

	t_init();
	l = t_listen(&at);
	for (int i = 0; i < 3; i++)
		if (!t_fork())
			work(l);
	close(l);
	for (int i = 0; i < 12; i++) {
		fd = t_connect(&at);
		t_warm_lead(fd);
		t_need(send(fd, i < 9 ? "x" : "q", 1, 0) == 1);
		ok += recv(fd, &c, 1, MSG_WAITALL) == 1 && recv(fd, &c, 1, 0) == 0;
		close(fd);
	}
	printf("served %d\n", ok);
	for (int i = 0; i < 3; i++)
		t_join(0);
	return t_done();
}
