/* SPDX-License-Identifier: Apache-2.0 */
/* diff: accelerate=yes */
/* FIONREAD counts what can be read, and nothing else. */
#include "t.h"

static void show(const char *when, int fd)
{
	int n = -1;

	L(when, ioctl(fd, FIONREAD, &n));
	printf("  %d\n", n);
}

int main(void)
{
	char buf[16];
	int a, b;

	t_init();
	t_warm_pair(&a, &b);
	show("nothing", b);
	L("send", send(a, "0123456789", 10, 0));
	t_arrived(b, 10);
	show("ten", b);
	LB("peek", recv(b, buf, 4, MSG_PEEK), buf);
	show("peeked", b);
	LB("recv", recv(b, buf, 4, 0), buf);
	show("six", b);
	show("sender's side", a);
	LB("recv", recv(b, buf, 16, 0), buf);
	show("nothing", b);
	close(a);
	t_until(b, POLLIN);
	show("at the end", b);
	return t_done();
}
