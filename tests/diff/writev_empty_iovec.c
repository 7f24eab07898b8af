/* SPDX-License-Identifier: Apache-2.0 */
/* diff: accelerate=yes */
/* Empty entries in vectors are skipped; a vector of nothing is not the end of file. */
#include "t.h"

int main(void)
{
	char x[4] = { 0 }, y[4] = { 0 };
	struct iovec out[4] = { { "", 0 }, { "ab", 2 }, { NULL, 0 }, { "cd", 2 } };
	struct iovec in[4] = { { NULL, 0 }, { x, 2 }, { x, 0 }, { y, 4 } };
	struct iovec none[2] = { { NULL, 0 }, { x, 0 } };
	static struct iovec many[1025];
	volatile int minus = -1;
	int a, b;

	t_init();
	t_warm_pair(&a, &b);
	L("writev", writev(a, out, 4));
	t_arrived(b, 4);
	L("readv", readv(b, in, 4));
	printf("%.2s %.2s\n", x, y);
	L("writev, all empty", writev(a, none, 2));
	L("writev, none", writev(a, out, 0));
	L("readv, all empty", readv(b, none, 2));
	L("readv, none", readv(b, in, 0));
	L("writev, negative count", writev(a, out, minus));
	L("writev, too many", writev(a, many, 1025));
	L("send", send(a, "e", 1, 0));
	t_expect(b, "e");
	return t_done();
}
