/* SPDX-License-Identifier: Apache-2.0 */
/* diff: accelerate=yes reasons=fork,epoll */
/* A set inherited over fork tells the child too. */
#include "t.h"

static void peer(int fd)
{
	t_warm_follow(fd);
	t_expect(fd, "ready");
	L("send", send(fd, "for the child", 13, 0));
	t_expect(fd, "thanks");
	L("send", send(fd, "for the parent", 14, 0));
	t_drain("end", fd);
}

int main(void)
{
	pid_t child;
	int fd, ep;

	t_init();
	fd = t_peer(peer);
	t_warm_lead(fd);
	ep = epoll_create1(0);
	t_ep_ctl("add", ep, EPOLL_CTL_ADD, fd, EPOLLIN, 1);
	t_ep_wait("nothing", ep, 0);
	child = t_fork();
	if (!child) {
		L("send", send(fd, "ready", 5, 0));
		t_ep_wait("child", ep, -1);
		t_expect(fd, "for the child");
		L("send", send(fd, "thanks", 6, 0));
		t_leave();
	}
	t_join(child);
	t_ep_wait("parent", ep, -1);
	t_expect(fd, "for the parent");
	close(fd);
	t_join(0);
	return t_done();
}
