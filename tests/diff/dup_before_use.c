/* SPDX-License-Identifier: Apache-2.0 */
/* diff: accelerate=yes */
/* Descriptors duplicated before the first byte, the original closed. */
#include "t.h"

int main(void)
{
	struct t_addr at;
	char buf[16];
	int l, s, a, b;

	t_init();
	l = t_listen(&at);
	s = socket(AF_INET, SOCK_STREAM, 0);
	a = dup(s);
	close(s);
	L("connect", connect(a, (struct sockaddr *)&at.ss, at.len));
	s = t_accept(l);
	b = fcntl(s, F_DUPFD, 50);
	close(s);
	t_warm(a, b);
	L("send", send(a, "x", 1, 0));
	t_expect(b, "x");
	close(a);
	t_until(b, POLLIN);
	L("recv", recv(b, buf, 16, 0));
	return t_done();
}
