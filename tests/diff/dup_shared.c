/* SPDX-License-Identifier: Apache-2.0 */
/* diff: accelerate=yes */
/* Duplicates share the stream, its position and O_NONBLOCK. */
#include "t.h"

int main(void)
{
	char buf[16];
	int a, b, c, d;

	t_init();
	t_warm_pair(&a, &b);
	c = dup(b);
	d = fcntl(b, F_DUPFD_CLOEXEC, 100);
	printf("from 100: %d\n", d >= 100);
	L("send", send(a, "abcdef", 6, 0));
	t_arrived(b, 6);
	LB("recv", recv(b, buf, 2, 0), buf);
	LB("recv dup", recv(c, buf, 2, 0), buf);
	LB("recv dupfd", recv(d, buf, 2, 0), buf);
	L("set non-blocking", fcntl(c, F_SETFL, fcntl(c, F_GETFL) | O_NONBLOCK));
	L("recv", recv(b, buf, 2, 0));
	L("read dupfd", read(d, buf, 2));
	L("send through dup", send(c, "1", 1, 0));
	L("send", send(b, "2", 1, 0));
	L("send through dupfd", send(d, "3", 1, 0));
	t_expect(a, "123");
	return t_done();
}
