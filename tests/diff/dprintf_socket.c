/* SPDX-License-Identifier: Apache-2.0 */
/* diff: accelerate=yes reasons=stdio,call */
/* dprintf and vdprintf write to the connection in order with send. */
#include "t.h"

int main(void)
{
	int a, b;

	t_init();
	t_warm_pair(&a, &b);
	L("send", send(a, "one ", 4, 0));
	printf("dprintf %d\n", dprintf(a, "two %d ", 2));
	L("write", write(a, "three ", 6));
	printf("dprintf %d\n", dprintf(a, "%s", "four"));
	t_expect(b, "one two 2 three four");
	L("send back", send(b, "back", 4, 0));
	t_expect(a, "back");
	return t_done();
}
