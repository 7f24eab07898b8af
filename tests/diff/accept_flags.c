/* SPDX-License-Identifier: Apache-2.0 */
/* diff: accelerate=yes */
/* accept does not inherit O_NONBLOCK; accept4 sets what it is told. */
#include "t.h"

static void show(const char *name, int fd)
{
	printf("%s: nonblock %d cloexec %d\n", name, !!(fcntl(fd, F_GETFL) & O_NONBLOCK), !!(fcntl(fd, F_GETFD) & FD_CLOEXEC));
}

int main(void)
{
	struct sockaddr_in from;
	socklen_t len = sizeof(from);
	struct t_addr at;
	char buf[4];
	int l, a[3], b[3];

	t_init();
	l = t_listen(&at);
	fcntl(l, F_SETFL, O_NONBLOCK);
	for (int i = 0; i < 3; i++)
		a[i] = t_connect(&at);
	t_until(l, POLLIN);
	b[0] = accept(l, (struct sockaddr *)&from, &len);
	b[1] = accept4(l, NULL, NULL, SOCK_NONBLOCK);
	b[2] = accept4(l, NULL, NULL, SOCK_CLOEXEC);
	printf("from: len %d %s\n", (int)len, inet_ntoa(from.sin_addr));
	L("accept, none left", accept(l, NULL, NULL));
	L("accept4, bad flag", accept4(l, NULL, NULL, 1));
	show("listener", l);
	for (int i = 0; i < 3; i++) {
		show("accepted", b[i]);
		t_warm(a[i], b[i]);
		show("warm", b[i]);
	}
	L("recv", recv(b[1], buf, 4, 0));
	return t_done();
}
