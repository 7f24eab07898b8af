/* SPDX-License-Identifier: Apache-2.0 */
/* diff: accelerate=yes */
/* What poll shows in every state of a connection, also the bits nobody asks for. */
#include "t.h"

#define ALL (POLLIN | POLLPRI | POLLOUT | POLLRDHUP | POLLRDNORM | POLLRDBAND | POLLWRNORM | POLLWRBAND)

int main(void)
{
	char buf[16];
	int a, b;

	t_init();
	t_warm_pair(&a, &b);
	t_poll1("idle", b, ALL, 0);
	L("send", send(a, "abc", 3, 0));
	t_arrived(b, 3);
	t_poll1("bytes", b, ALL, 0);
	t_poll1("bytes, not asked", b, 0, 0);
	L("shutdown", shutdown(a, SHUT_WR));
	t_until(b, POLLRDHUP);
	t_poll1("bytes and FIN", b, ALL, 0);
	LB("recv", recv(b, buf, 16, 0), buf);
	t_poll1("FIN", b, ALL, 0);
	t_poll1("FIN, other side", a, ALL, 0);
	L("shutdown", shutdown(b, SHUT_WR));
	t_until(a, POLLHUP);
	t_poll1("both FIN", b, ALL, 0);
	t_poll1("both FIN", a, ALL, 0);
	t_poll1("both FIN, not asked", a, 0, 0);
	L("close", close(a));
	t_poll1("closed fd", a, ALL, 0);
	return t_done();
}
