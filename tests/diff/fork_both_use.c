/* SPDX-License-Identifier: Apache-2.0 */
/* diff: accelerate=yes reasons=fork */
/* Parent and child take turns on one connection, 10 times. */
#include "t.h"

static void peer(int fd)
{
	char want[32];

	t_warm_follow(fd);
	for (int i = 0; i < 10; i++) {
		snprintf(want, sizeof(want), "parent %02d", i);
		t_expect(fd, want);
		snprintf(want, sizeof(want), "child %02d", i);
		t_expect(fd, want);
		t_need(send(fd, "parent", 6, 0) == 6);
		t_need(send(fd, "child", 5, 0) == 5);
	}
	t_drain("end", fd);
}

int main(void)
{
	int fd, to[2], from[2];
	pid_t child;
	char text[32], c;

	t_init();
	fd = t_peer_accepts(peer);
	t_warm_lead(fd);
	t_need(!pipe(to) && !pipe(from));
	child = t_fork();
	for (int i = 0; i < 10; i++) {
		if (child) {
			snprintf(text, sizeof(text), "parent %02d", i);
			t_need(send(fd, text, 9, 0) == 9);
			t_need(write(to[1], "x", 1) == 1 && read(from[0], &c, 1) == 1);
			t_expect(fd, "parent");
			t_need(write(to[1], "x", 1) == 1 && read(from[0], &c, 1) == 1);
		} else {
			t_need(read(to[0], &c, 1) == 1);
			snprintf(text, sizeof(text), "child %02d", i);
			t_need(send(fd, text, 8, 0) == 8);
			t_need(write(from[1], "x", 1) == 1 && read(to[0], &c, 1) == 1);
			t_expect(fd, "child");
			t_need(write(from[1], "x", 1) == 1);
		}
	}
	if (!child)
		t_leave();
	t_join(child);
	close(fd);
	t_join(0);
	return t_done();
}
