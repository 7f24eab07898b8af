/* SPDX-License-Identifier: Apache-2.0 */
/* diff: accelerate=yes */
/* After SHUT_WR a send fails with EPIPE, and bytes still come in. */
#include "t.h"

int main(void)
{
	struct iovec iov = { "x", 1 };
	char buf[16];
	int a, b;

	t_init();
	t_warm_pair(&a, &b);
	signal(SIGPIPE, SIG_IGN);
	L("shutdown", shutdown(a, SHUT_WR));
	L("send", send(a, "x", 1, 0));
	L("send NOSIGNAL", send(a, "x", 1, MSG_NOSIGNAL));
	L("write", write(a, "x", 1));
	L("writev", writev(a, &iov, 1));
	t_until(b, POLLIN);
	L("peer recv", recv(b, buf, 16, 0));
	L("peer send", send(b, "still", 5, 0));
	t_expect(a, "still");
	L("shutdown again", shutdown(a, SHUT_WR));
	return t_done();
}
