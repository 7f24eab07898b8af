/* SPDX-License-Identifier: Apache-2.0 */
/* diff: accelerate=yes */
/* MSG_MORE and TCP_CORK may hold bytes back, but not change or lose them. */
#include "t.h"

int main(void)
{
	int a, b, on = 1, off = 0;

	t_init();
	t_warm_pair(&a, &b);
	L("send MSG_MORE", send(a, "head ", 5, MSG_MORE));
	L("send", send(a, "body", 4, 0));
	t_expect(b, "head body");
	L("cork", setsockopt(a, IPPROTO_TCP, TCP_CORK, &on, sizeof(on)));
	L("send", send(a, "one ", 4, 0));
	L("send", send(a, "two", 3, 0));
	L("uncork", setsockopt(a, IPPROTO_TCP, TCP_CORK, &off, sizeof(off)));
	t_expect(b, "one two");
	L("send MSG_MORE", send(a, "last", 4, MSG_MORE));
	close(a);
	t_drain("rest", b);
	return t_done();
}
