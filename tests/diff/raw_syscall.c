/* SPDX-License-Identifier: Apache-2.0 */
/* diff: accelerate=yes */
/* syscall(2) with socket calls by number, as libuv does. */
#include "t.h"

int main(void)
{
	char buf[16];
	int a, b, c;

	t_init();
	t_warm_pair(&a, &b);
	L("write", syscall(SYS_write, a, "abc", 3));
	t_arrived(b, 3);
	LB("read", syscall(SYS_read, b, buf, 16), buf);
	L("send", send(a, "def", 3, 0));
	t_arrived(b, 3);
	LB("recvfrom", syscall(SYS_recvfrom, b, buf, 16, 0, NULL, NULL), buf);
	L("sendto", syscall(SYS_sendto, b, "ghi", 3, 0, NULL, 0));
	t_expect(a, "ghi");
	L("read, nothing", syscall(SYS_recvfrom, b, buf, 16, MSG_DONTWAIT, NULL, NULL));
	c = (int)syscall(SYS_dup3, b, 90, O_CLOEXEC);
	printf("dup3 %d\n", c);
	L("close", syscall(SYS_close, b));
	L("send on the dup", send(c, "jkl", 3, 0));
	t_expect(a, "jkl");
	L("close last", syscall(SYS_close, c));
	t_until(a, POLLIN);
	L("recv", recv(a, buf, 16, 0));
	return t_done();
}
