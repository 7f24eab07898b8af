/* SPDX-License-Identifier: Apache-2.0 */
/* diff: accelerate=yes */
/* dup2 onto a live connection closes it: the peer sees EOF; the number now means the other one. */
#include "t.h"

int main(void)
{
	char buf[16];
	int a, b, c, d;

	t_init();
	t_warm_pair(&a, &b);
	t_warm_pair(&c, &d);
	L("dup2", dup2(c, a) == a);
	t_until(b, POLLIN);
	L("peer of the closed one", recv(b, buf, 16, 0));
	L("send by the new number", send(a, "new", 3, 0));
	t_expect(d, "new");
	L("close the old number", close(c));
	L("send", send(a, "still", 5, 0));
	t_expect(d, "still");
	L("send back", send(d, "back", 4, 0));
	t_expect(a, "back");
	L("dup2 onto itself", dup2(a, a) == a);
	L("dup3 onto itself", dup3(a, a, 0));
	L("dup2 of a bad one", dup2(900, a));
	L("send", send(a, "alive", 5, 0));
	t_expect(d, "alive");
	return t_done();
}
