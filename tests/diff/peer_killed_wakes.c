/* SPDX-License-Identifier: Apache-2.0 */
/* diff: accelerate=yes reasons=peer-dead */
/* A recv and an epoll_wait that sleep are woken when the peer is killed. */
#include "t.h"

static void peer(int fd)
{
	t_warm_follow(fd);
	t_expect(fd, "now");
	kill(getpid(), SIGKILL);
}

int main(void)
{
	char buf[16];
	int fd, ep;

	t_init();
	fd = t_peer(peer);
	t_warm_lead(fd);
	L("send", send(fd, "now", 3, 0));
	L("recv", recv(fd, buf, 16, 0));
	t_join(0);
	close(fd);
	fd = t_peer(peer);
	t_warm_lead(fd);
	ep = epoll_create1(0);
	t_ep_ctl("add", ep, EPOLL_CTL_ADD, fd, EPOLLIN | EPOLLRDHUP, 1);
	L("send", send(fd, "now", 3, 0));
	t_ep_wait("epoll_wait", ep, -1);
	L("recv", recv(fd, buf, 16, 0));
	t_join(0);
	return t_done();
}
