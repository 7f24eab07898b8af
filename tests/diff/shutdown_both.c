/* SPDX-License-Identifier: Apache-2.0 */
/* diff: accelerate=yes */
/* SHUT_RDWR at one end, and what both ends see of it. */
#include "t.h"

int main(void)
{
	char buf[16];
	int a, b;

	t_init();
	signal(SIGPIPE, SIG_IGN);
	t_warm_pair(&a, &b);
	L("shutdown", shutdown(a, SHUT_RDWR));
	L("recv", recv(a, buf, 16, 0));
	L("send", send(a, "x", 1, 0));
	t_until(b, POLLIN);
	t_poll1("peer poll", b, POLLIN | POLLOUT | POLLRDHUP, 0);
	L("peer recv", recv(b, buf, 16, 0));
	L("peer shutdown", shutdown(b, SHUT_WR));
	t_until(a, POLLHUP);
	t_poll1("poll", a, POLLIN | POLLOUT | POLLRDHUP, 0);
	t_poll1("peer poll", b, POLLIN | POLLOUT | POLLRDHUP, 0);
	L("shutdown bad how", shutdown(a, 7));
	L("close", close(a));
	L("close", close(b));
	L("close again", close(b));
	return t_done();
}
