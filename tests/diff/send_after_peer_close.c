/* SPDX-License-Identifier: Apache-2.0 */
/* diff: accelerate=yes */
/* The peer has closed: EOF, then one send goes out, then EPIPE. */
#include "t.h"

int main(void)
{
	char buf[16];
	int a, b, e = 0;
	socklen_t len = sizeof(e);

	t_init();
	t_warm_pair(&a, &b);
	signal(SIGPIPE, SIG_IGN);
	L("close", close(b));
	t_until(a, POLLIN);
	L("recv", recv(a, buf, 16, 0));
	L("send", send(a, "x", 1, 0));
	t_until(a, POLLHUP);
	t_poll1("poll", a, POLLIN | POLLOUT, 0);
	L("send", send(a, "x", 1, 0));
	L("SO_ERROR", getsockopt(a, SOL_SOCKET, SO_ERROR, &e, &len));
	printf("  %s\n", t_errname(e));
	L("send", send(a, "x", 1, 0));
	L("recv", recv(a, buf, 16, 0));
	return t_done();
}
