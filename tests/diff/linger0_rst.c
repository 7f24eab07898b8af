/* SPDX-License-Identifier: Apache-2.0 */
/* diff: accelerate=yes */
/* SO_LINGER with zero time resets on close. */
#include "t.h"

int main(void)
{
	struct linger l = { 1, 0 };
	char buf[16];
	int a, b;

	t_init();
	signal(SIGPIPE, SIG_IGN);
	t_warm_pair(&a, &b);
	L("SO_LINGER", setsockopt(b, SOL_SOCKET, SO_LINGER, &l, sizeof(l)));
	L("close", close(b));
	t_until(a, POLLERR);
	t_poll1("poll", a, POLLIN | POLLOUT, 0);
	L("send", send(a, "x", 1, 0));
	L("send", send(a, "x", 1, 0));
	L("recv", recv(a, buf, 16, 0));
	return t_done();
}
