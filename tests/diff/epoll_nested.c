/* SPDX-License-Identifier: Apache-2.0 */
/* diff: accelerate=yes race=either */
/*
 * race: the record that culvert writes behind the last byte on the connection makes the set that holds it readable for a moment, and
 * with it the set around that one. The wait in the inner set then knows better.
 */
/* A set in a set, and poll and select on a set: readable while something in it is ready. */
#include "t.h"

int main(void)
{
	struct timeval tv = { 1, 0 };
	char buf[16];
	fd_set rd;
	int a, b, in, out;

	t_init();
	t_warm_pair(&a, &b);
	in = epoll_create1(0);
	out = epoll_create1(0);
	t_ep_ctl("add", in, EPOLL_CTL_ADD, b, EPOLLIN, 0xb);
	t_ep_ctl("add the set", out, EPOLL_CTL_ADD, in, EPOLLIN, 0xe);
	t_poll1("poll", in, POLLIN, 0);
	t_ep_wait("outer", out, 0);
	L("send", send(a, "ab", 2, 0));
	t_poll1("poll", in, POLLIN, 1000);
	t_ep_wait("outer", out, 1000);
	t_ep_wait("inner", in, 1000);
	t_ep_wait("outer", out, 0);
	t_poll1("poll, bytes left", in, POLLIN, 0);
	FD_ZERO(&rd);
	FD_SET(in, &rd);
	L("select", select(in + 1, &rd, NULL, NULL, &tv));
	LB("recv", recv(b, buf, 16, 0), buf);
	t_poll1("poll", in, POLLIN, 0);
	t_ep_wait("outer", out, 0);
	L("send", send(a, "c", 1, 0));
	t_ep_wait("outer", out, -1);
	t_ep_wait("inner", in, 0);
	return t_done();
}
