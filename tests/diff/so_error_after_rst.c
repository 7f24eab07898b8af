/* SPDX-License-Identifier: Apache-2.0 */
/* diff: accelerate=yes */
/* SO_ERROR tells the reset once, and clears it. */
#include "t.h"

static void show(int fd)
{
	int e = -1;
	socklen_t len = sizeof(e);

	L("SO_ERROR", getsockopt(fd, SOL_SOCKET, SO_ERROR, &e, &len));
	printf("  %s\n", e ? t_errname(e) : "0");
}

int main(void)
{
	struct linger l = { 1, 0 };
	char buf[16];
	int a, b;

	t_init();
	signal(SIGPIPE, SIG_IGN);
	t_warm_pair(&a, &b);
	show(a);
	setsockopt(b, SOL_SOCKET, SO_LINGER, &l, sizeof(l));
	close(b);
	t_until(a, POLLERR);
	show(a);
	show(a);
	L("recv", recv(a, buf, 16, 0));
	L("send", send(a, "x", 1, 0));
	show(a);
	t_poll1("poll", a, POLLIN | POLLOUT, 0);
	return t_done();
}
