/* SPDX-License-Identifier: Apache-2.0 */
/* diff: accelerate=yes */
/* Closing with bytes unread resets: the peer sees ECONNRESET, once. */
#include "t.h"

int main(void)
{
	char buf[16];
	int a, b;

	t_init();
	signal(SIGPIPE, SIG_IGN);
	t_warm_pair(&a, &b);
	L("send", send(a, "unread", 6, 0));
	t_arrived(b, 6);
	L("close", close(b));
	t_until(a, POLLERR);
	t_poll1("poll", a, POLLIN | POLLOUT | POLLRDHUP, 0);
	L("recv", recv(a, buf, 16, 0));
	L("recv", recv(a, buf, 16, 0));
	L("send", send(a, "x", 1, 0));
	return t_done();
}
