/* SPDX-License-Identifier: Apache-2.0 */
/* diff: accelerate=no reasons=not-tcp */
/* Unix sockets, UDP, pipes and files are none of our business. */
#include "t.h"

int main(void)
{
	struct t_addr at;
	int sv[2], p[2], u, f;
	char buf[16];

	t_init();
	t_need(!socketpair(AF_UNIX, SOCK_STREAM, 0, sv) && !pipe(p));
	for (int i = 0; i < 100; i++)
		t_warm(sv[0], sv[1]);
	L("write pipe", write(p[1], "x", 1));
	LB("read pipe", read(p[0], buf, 16), buf);
	close(t_listen(&at));
	u = socket(AF_INET, SOCK_DGRAM, 0);
	L("bind", bind(u, (struct sockaddr *)&at.ss, at.len));
	L("connect", connect(u, (struct sockaddr *)&at.ss, at.len));
	L("send", send(u, "datagram", 8, 0));
	LB("recv short", recv(u, buf, 4, 0), buf);
	L("recv", recv(u, buf, 4, MSG_DONTWAIT));
	f = memfd_create("f", 0);
	L("pwrite", pwrite(f, "0123", 4, 2));
	LB("pread", pread(f, buf, 2, 4), buf);
	L("recv on a file", recv(f, buf, 4, 0));
	return t_done();
}
