/* SPDX-License-Identifier: Apache-2.0 */
/* diff: accelerate=yes */
/* Half close and full close as epoll masks: IN|RDHUP, then HUP. */
#include "t.h"

int main(void)
{
	char buf[16];
	int a, b, ep;

	t_init();
	t_warm_pair(&a, &b);
	ep = epoll_create1(0);
	t_ep_ctl("add", ep, EPOLL_CTL_ADD, b, EPOLLIN | EPOLLOUT | EPOLLRDHUP, 0xb);
	t_ep_wait("open", ep, 1000);
	L("send", send(a, "last", 4, 0));
	L("shutdown", shutdown(a, SHUT_WR));
	t_until(b, POLLRDHUP);
	t_ep_wait("half closed, bytes there", ep, 1000);
	LB("recv", recv(b, buf, 16, 0), buf);
	t_ep_wait("half closed", ep, 1000);
	L("recv", recv(b, buf, 16, 0));
	t_ep_ctl("only what cannot be masked", ep, EPOLL_CTL_MOD, b, 0, 0xb);
	t_ep_wait("nothing", ep, 0);
	L("shutdown ours", shutdown(b, SHUT_WR));
	t_ep_wait("both", ep, 1000);
	t_ep_ctl("all", ep, EPOLL_CTL_MOD, b, EPOLLIN | EPOLLOUT | EPOLLRDHUP, 0xb);
	t_ep_wait("both", ep, 1000);
	return t_done();
}
