/* SPDX-License-Identifier: Apache-2.0 */
/* diff: accelerate=any reasons=half-closed,cancelled,timeout,peer-absent,peer-refused,no-listener,bypass */
/* 300 connections, one exchange each, closed by turns from either side. */
#include "t.h"

static void *serve(void *arg)
{
	int l = (int)(intptr_t)arg;
	char buf[8];

	for (int i = 0; i < 300; i++) {
		int fd = t_accept(l);

		t_need(recv(fd, buf, 4, MSG_WAITALL) == 4);
		t_need(send(fd, buf, 4, 0) == 4);
		if (i & 1)
			t_need(recv(fd, buf, 1, 0) == 0);
		close(fd);
	}
	return NULL;
}

int main(void)
{
	struct t_addr at;
	int ok = 0, l;
	char buf[8];

	t_init();
	l = t_listen(&at);
	if (!t_fork()) {
		serve((void *)(intptr_t)l);
		t_leave();
	}
	close(l);
	for (int i = 0; i < 300; i++) {
		int fd = t_connect(&at);

		t_need(send(fd, "ping", 4, 0) == 4);
		ok += recv(fd, buf, 4, MSG_WAITALL) == 4 && !memcmp(buf, "ping", 4);
		if (!(i & 1))
			ok += recv(fd, buf, 1, 0) == 0;
		close(fd);
	}
	printf("ok %d\n", ok);
	t_join(0);
	return t_done();
}
