/* SPDX-License-Identifier: Apache-2.0 */
/* diff: accelerate=yes reasons=call */
/* MSG_TRUNC on a TCP socket throws the bytes away and says how many. */
#include "t.h"

int main(void)
{
	char buf[8] = "keep";
	int a, b;

	t_init();
	t_warm_pair(&a, &b);
	L("send", send(a, "abcdef", 6, 0));
	t_arrived(b, 6);
	L("recv MSG_TRUNC", recv(b, buf, 4, MSG_TRUNC));
	printf("%.4s\n", buf);
	LB("recv", recv(b, buf, 8, 0), buf);
	L("send", send(b, "back", 4, 0));
	t_expect(a, "back");
	return t_done();
}
