/* SPDX-License-Identifier: Apache-2.0 */
/* diff: accelerate=no */
/* Calls on sockets that are not connected: ENOTCONN, EPIPE, and what a listener says. */
#include "t.h"

int main(void)
{
	struct t_addr at;
	char buf[4];
	int s, l, p[2];

	t_init();
	signal(SIGPIPE, SIG_IGN);
	s = socket(AF_INET, SOCK_STREAM, 0);
	l = t_listen(&at);
	L("recv", recv(s, buf, 4, 0));
	L("send", send(s, "x", 1, 0));
	L("shutdown", shutdown(s, SHUT_WR));
	L("getpeername", getpeername(s, (struct sockaddr *)&at.ss, &at.len));
	L("listener recv", recv(l, buf, 4, 0));
	L("listener send", send(l, "x", 1, 0));
	L("accept on a plain socket", accept(s, NULL, NULL));
	fcntl(l, F_SETFL, O_NONBLOCK);
	L("accept, none there", accept(l, NULL, NULL));
	t_poll1("poll", s, POLLIN | POLLOUT, 0);
	t_poll1("poll listener", l, POLLIN | POLLOUT, 0);
	L("recv on a closed fd", recv(900, buf, 4, 0));
	t_need(!pipe(p));
	L("recv on a pipe", recv(p[0], buf, 4, 0));
	return t_done();
}
