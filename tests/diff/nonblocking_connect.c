/* SPDX-License-Identifier: Apache-2.0 */
/* diff: accelerate=yes */
/* EINPROGRESS, POLLOUT, SO_ERROR 0; a connected socket says EISCONN. */
#include "t.h"

int main(void)
{
	struct t_addr at;
	int l, a, b, e = -1;
	socklen_t len = sizeof(e);
	char buf[4];

	t_init();
	l = t_listen(&at);
	a = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
	L("recv before", recv(a, buf, 4, 0));
	L("connect", connect(a, (struct sockaddr *)&at.ss, at.len));
	t_poll1("poll", a, POLLOUT, 5000);
	L("SO_ERROR", getsockopt(a, SOL_SOCKET, SO_ERROR, &e, &len));
	printf("  %d\n", e);
	L("connect again", connect(a, (struct sockaddr *)&at.ss, at.len));
	L("connect again", connect(a, (struct sockaddr *)&at.ss, at.len));
	b = t_accept(l);
	L("recv, nothing", recv(a, buf, 4, 0));
	printf("still non-blocking %d\n", !!(fcntl(a, F_GETFL) & O_NONBLOCK));
	t_warm(a, b);
	L("recv, nothing", recv(a, buf, 4, 0));
	return t_done();
}
