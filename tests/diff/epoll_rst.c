/* SPDX-License-Identifier: Apache-2.0 */
/* diff: accelerate=yes */
/* A reset as an epoll mask. */
#include "t.h"

int main(void)
{
	struct linger l = { 1, 0 };
	char buf[16];
	int a, b, ep;

	t_init();
	t_warm_pair(&a, &b);
	ep = epoll_create1(0);
	t_ep_ctl("add", ep, EPOLL_CTL_ADD, b, EPOLLIN | EPOLLRDHUP | EPOLLET, 0xb);
	setsockopt(a, SOL_SOCKET, SO_LINGER, &l, sizeof(l));
	L("close", close(a));
	t_ep_wait("reset", ep, 1000);
	t_ep_wait("once", ep, 0);
	L("recv", recv(b, buf, 16, 0));
	t_ep_ctl("mod", ep, EPOLL_CTL_MOD, b, EPOLLIN | EPOLLOUT | EPOLLRDHUP, 0xb);
	t_ep_wait("error told", ep, 0);
	L("recv", recv(b, buf, 16, 0));
	return t_done();
}
