/* SPDX-License-Identifier: Apache-2.0 */
/* diff: accelerate=yes */
/* A server on :: and a client on 127.0.0.1: the two ends name the connection differently. */
#include "t.h"

int main(void)
{
	struct sockaddr_in6 six = { .sin6_family = AF_INET6 }, x;
	struct t_addr at = { .len = sizeof(struct sockaddr_in) };
	struct sockaddr_in *four = (struct sockaddr_in *)&at.ss;
	socklen_t len = sizeof(six);
	int l, a, b, off = 0;
	char text[64];

	t_init();
	l = socket(AF_INET6, SOCK_STREAM, 0);
	setsockopt(l, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off));
	t_need(!bind(l, (struct sockaddr *)&six, len) && !listen(l, 8) && !getsockname(l, (struct sockaddr *)&six, &len));
	four->sin_family = AF_INET;
	four->sin_port = six.sin6_port;
	four->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	a = t_connect(&at);
	b = t_accept(l);
	t_warm(a, b);
	L("getpeername", getpeername(b, (struct sockaddr *)&x, &len));
	printf("  %d %s\n", x.sin6_family, inet_ntop(AF_INET6, &x.sin6_addr, text, sizeof(text)));
	L("send", send(a, "mapped", 6, 0));
	t_expect(b, "mapped");
	return t_done();
}
