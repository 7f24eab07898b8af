/* SPDX-License-Identifier: Apache-2.0 */
/* diff: accelerate=yes */
/* The names are those of the TCP connection, before and after. */
#include "t.h"

static void show(const char *when, int a, int b)
{
	struct sockaddr_in x, y, p, q;
	socklen_t len = sizeof(x);

	L(when, getsockname(a, (struct sockaddr *)&x, &len));
	getpeername(a, (struct sockaddr *)&y, &len);
	getsockname(b, (struct sockaddr *)&p, &len);
	getpeername(b, (struct sockaddr *)&q, &len);
	printf("  len %d family %d %s crossed %d\n", (int)len, x.sin_family, inet_ntoa(x.sin_addr),
	       x.sin_port == q.sin_port && y.sin_port == p.sin_port && x.sin_port != y.sin_port);
}

int main(void)
{
	struct sockaddr_in x;
	socklen_t len = 4;
	int a, b;

	t_init();
	t_pair(&a, &b);
	show("fresh", a, b);
	t_warm(a, b);
	show("warm", a, b);
	L("short buffer", getpeername(a, (struct sockaddr *)&x, &len));
	printf("  len %d\n", (int)len);
	len = sizeof(x);
	close(b);
	t_until(a, POLLIN);
	L("peer gone", getpeername(a, (struct sockaddr *)&x, &len));
	return t_done();
}
