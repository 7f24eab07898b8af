/* SPDX-License-Identifier: Apache-2.0 */
/* diff: accelerate=yes race=either */
/* race: an edge that is reported at the very moment at which a switch begins may be reported once more. */
/* DEL silences, a second DEL is ENOENT, ADD tells what is there already. */
#include "t.h"

int main(void)
{
	char buf[16];
	int a, b, ep;

	t_init();
	t_warm_pair(&a, &b);
	ep = epoll_create1(0);
	t_ep_ctl("mod before add", ep, EPOLL_CTL_MOD, b, EPOLLIN, 1);
	t_ep_ctl("add", ep, EPOLL_CTL_ADD, b, EPOLLIN, 1);
	L("send", send(a, "ab", 2, 0));
	t_ep_wait("ready", ep, 1000);
	L("del, NULL", epoll_ctl(ep, EPOLL_CTL_DEL, b, NULL));
	t_ep_wait("silent", ep, 0);
	L("del again", epoll_ctl(ep, EPOLL_CTL_DEL, b, NULL));
	L("send", send(a, "cd", 2, 0));
	t_arrived(b, 4);
	t_ep_wait("silent", ep, 20);
	t_ep_ctl("add ET", ep, EPOLL_CTL_ADD, b, EPOLLIN | EPOLLET, 2);
	t_ep_wait("tells", ep, 1000);
	t_ep_wait("once", ep, 0);
	t_ep_ctl("del", ep, EPOLL_CTL_DEL, b, 0, 0);
	t_ep_ctl("add", ep, EPOLL_CTL_ADD, b, EPOLLIN, 3);
	t_ep_wait("tells", ep, 1000);
	LB("recv", recv(b, buf, 16, 0), buf);
	t_ep_wait("nothing", ep, 0);
	L("send", send(a, "e", 1, 0));
	t_ep_wait("ready", ep, 1000);
	return t_done();
}
