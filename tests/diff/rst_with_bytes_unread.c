/* SPDX-License-Identifier: Apache-2.0 */
/* diff: accelerate=yes */
/* A reset arrives while bytes from before it are unread: Linux hands those out first. */
#include "t.h"

int main(void)
{
	char buf[16];
	int a, b;

	t_init();
	t_warm_pair(&a, &b);
	L("send", send(a, "unread", 6, 0));
	t_arrived(b, 6);
	L("send back", send(b, "first", 5, 0));
	t_arrived(a, 5);
	L("close", close(b));
	t_until(a, POLLERR);
	LB("recv", recv(a, buf, 16, 0), buf);
	LB("recv", recv(a, buf, 16, 0), buf);
	return t_done();
}
