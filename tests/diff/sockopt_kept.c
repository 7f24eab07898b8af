/* SPDX-License-Identifier: Apache-2.0 */
/* diff: accelerate=yes */
/* Socket options read back what was set; the socket says that it is a connected TCP stream. */
#include "t.h"

static void opt(const char *name, int fd, int level, int o)
{
	int v = -1;
	socklen_t len = sizeof(v);

	L(name, getsockopt(fd, level, o, &v, &len));
	printf("  %d\n", v);
}

int main(void)
{
	struct tcp_info ti;
	socklen_t len = sizeof(ti);
	int a, b, on = 1, idle = 77;

	t_init();
	t_warm_pair(&a, &b);
	L("TCP_NODELAY", setsockopt(a, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)));
	L("SO_KEEPALIVE", setsockopt(a, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on)));
	L("TCP_KEEPIDLE", setsockopt(a, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof(idle)));
	opt("TCP_NODELAY", a, IPPROTO_TCP, TCP_NODELAY);
	opt("SO_KEEPALIVE", a, SOL_SOCKET, SO_KEEPALIVE);
	opt("TCP_KEEPIDLE", a, IPPROTO_TCP, TCP_KEEPIDLE);
	opt("SO_TYPE", a, SOL_SOCKET, SO_TYPE);
	opt("SO_DOMAIN", a, SOL_SOCKET, SO_DOMAIN);
	opt("SO_PROTOCOL", a, SOL_SOCKET, SO_PROTOCOL);
	opt("SO_ACCEPTCONN", a, SOL_SOCKET, SO_ACCEPTCONN);
	opt("SO_RCVLOWAT", a, SOL_SOCKET, SO_RCVLOWAT);
	opt("SO_ERROR", a, SOL_SOCKET, SO_ERROR);
	opt("no such option", a, SOL_SOCKET, 4000);
	L("TCP_INFO", getsockopt(a, IPPROTO_TCP, TCP_INFO, &ti, &len));
	printf("  state %d\n", ti.tcpi_state);
	L("send", send(a, "x", 1, 0));
	t_expect(b, "x");
	return t_done();
}
