/* SPDX-License-Identifier: Apache-2.0 */
/* diff: accelerate=yes reasons=fork */
/* A connection made before fork is read and answered by the child. */
#include "t.h"

static void peer(int fd)
{
	t_warm_follow(fd);
	L("send", send(fd, "for the child", 13, 0));
	t_expect(fd, "from the child");
	L("send", send(fd, "for the parent", 14, 0));
	t_expect(fd, "from the parent");
	t_drain("end", fd);
}

int main(void)
{
	pid_t child;
	int fd;

	t_init();
	fd = t_peer(peer);
	t_warm_lead(fd);
	child = t_fork();
	if (!child) {
		t_expect(fd, "for the child");
		L("send", send(fd, "from the child", 14, 0));
		t_leave();
	}
	t_join(child);
	t_expect(fd, "for the parent");
	L("send", send(fd, "from the parent", 15, 0));
	close(fd);
	t_join(0);
	return t_done();
}
