/* SPDX-License-Identifier: Apache-2.0 */
/* diff: accelerate=yes reasons=call */
/* splice from and to a connection by a pipe. */
#include "t.h"

int main(void)
{
	char buf[16];
	int a, b, p[2];

	t_init();
	t_warm_pair(&a, &b);
	t_need(!pipe(p));
	L("send", send(a, "through a pipe", 14, 0));
	t_arrived(b, 14);
	L("splice in", splice(b, NULL, p[1], NULL, 14, 0));
	L("splice out", splice(p[0], NULL, b, NULL, 14, 0));
	t_expect(a, "through a pipe");
	fcntl(b, F_SETFL, O_NONBLOCK);
	L("splice, nothing there", splice(b, NULL, p[1], NULL, 14, SPLICE_F_NONBLOCK));
	L("send", send(a, "after", 5, 0));
	t_arrived(b, 5);
	LB("recv", recv(b, buf, 16, 0), buf);
	return t_done();
}
