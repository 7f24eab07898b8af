/* SPDX-License-Identifier: Apache-2.0 */
/* diff: accelerate=yes reasons=fork */
/* A child that never touches the connection and exits does not disturb it, nor end it. */
#include "t.h"

static void peer(int fd)
{
	t_warm_follow(fd);
	for (int i = 0; i < 300; i++) {
		t_expect(fd, "ping");
		t_need(send(fd, "pong", 4, 0) == 4);
	}
	t_drain("end", fd);
}

static void talk(int fd)
{
	for (int i = 0; i < 100; i++) {
		t_need(send(fd, "ping", 4, 0) == 4);
		t_expect(fd, "pong");
	}
}

int main(void)
{
	pid_t child;
	int fd, gate[2];
	char c;

	t_init();
	fd = t_peer(peer);
	t_warm_lead(fd);
	t_need(!pipe(gate));
	child = t_fork();
	if (!child) {
		close(gate[1]);
		L("gate", read(gate[0], &c, 1));
		t_leave();
	}
	talk(fd);
	t_need(write(gate[1], "x", 1) == 1);
	talk(fd);
	t_join(child);
	talk(fd);
	close(fd);
	t_join(0);
	return t_done();
}
