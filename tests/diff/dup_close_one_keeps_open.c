/* SPDX-License-Identifier: Apache-2.0 */
/* diff: accelerate=yes */
/* The connection ends with its last descriptor, not its first. */
#include "t.h"

int main(void)
{
	char buf[16];
	int a, b, c;

	t_init();
	t_warm_pair(&a, &b);
	c = dup(a);
	L("close", close(a));
	L("recv closed", recv(a, buf, 16, 0));
	L("peer recv", recv(b, buf, 16, MSG_DONTWAIT));
	L("send through dup", send(c, "alive", 5, 0));
	t_expect(b, "alive");
	L("send back", send(b, "back", 4, 0));
	t_expect(c, "back");
	L("close last", close(c));
	t_until(b, POLLIN);
	L("peer recv", recv(b, buf, 16, 0));
	return t_done();
}
