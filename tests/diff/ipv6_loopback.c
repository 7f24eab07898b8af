/* SPDX-License-Identifier: Apache-2.0 */
/* diff: accelerate=yes */
/* The same over ::1. */
#include "t.h"

int main(void)
{
	struct sockaddr_in6 x;
	socklen_t len = sizeof(x);
	char text[64], buf[16];
	int a, b;

	t_init();
	t_pair_on(AF_INET6, &a, &b);
	t_warm(a, b);
	L("getpeername", getpeername(a, (struct sockaddr *)&x, &len));
	printf("  %d %s\n", x.sin6_family, inet_ntop(AF_INET6, &x.sin6_addr, text, sizeof(text)));
	L("send", send(a, "six", 3, 0));
	t_expect(b, "six");
	L("send back", send(b, "back", 4, 0));
	t_expect(a, "back");
	close(b);
	t_until(a, POLLIN);
	L("recv", recv(a, buf, 16, 0));
	return t_done();
}
