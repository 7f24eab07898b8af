/* SPDX-License-Identifier: Apache-2.0 */
/* diff: accelerate=no */
/* Nobody listens: ECONNREFUSED, at once or through SO_ERROR; the masks that go with it. */
#include "t.h"

int main(void)
{
	struct t_addr at;
	int l, a, e = -1;
	socklen_t len = sizeof(e);
	char buf[4];

	t_init();
	signal(SIGPIPE, SIG_IGN);
	l = t_listen(&at);
	close(l);
	a = socket(AF_INET, SOCK_STREAM, 0);
	L("connect", connect(a, (struct sockaddr *)&at.ss, at.len));
	L("recv", recv(a, buf, 4, 0));
	L("send", send(a, "x", 1, 0));
	close(a);
	a = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
	L("connect non-blocking", connect(a, (struct sockaddr *)&at.ss, at.len));
	t_until(a, POLLERR);
	t_poll1("poll", a, POLLIN | POLLOUT, 0);
	L("SO_ERROR", getsockopt(a, SOL_SOCKET, SO_ERROR, &e, &len));
	printf("  %s\n", t_errname(e));
	L("send", send(a, "x", 1, 0));
	return t_done();
}
