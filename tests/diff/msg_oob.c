/* SPDX-License-Identifier: Apache-2.0 */
/* diff: accelerate=yes reasons=oob */
/* Urgent data goes out of line, the stream around it stays whole. */
#include "t.h"

int main(void)
{
	char buf[16];
	int a, b, mark = -1;

	t_init();
	t_warm_pair(&a, &b);
	L("send", send(a, "abc", 3, 0));
	L("send OOB", send(a, "!", 1, MSG_OOB));
	L("send", send(a, "def", 3, 0));
	t_until(b, POLLPRI);
	t_arrived(b, 3);
	LB("recv OOB", recv(b, buf, 1, MSG_OOB), buf);
	LB("recv", recv(b, buf, 16, 0), buf);
	L("SIOCATMARK", ioctl(b, SIOCATMARK, &mark));
	printf("  %d\n", mark);
	L("sockatmark", sockatmark(b));
	LB("recv", recv(b, buf, 3, MSG_WAITALL), buf);
	L("sockatmark", sockatmark(b));
	L("recv OOB, none", recv(b, buf, 1, MSG_OOB));
	L("send back", send(b, "back", 4, 0));
	t_expect(a, "back");
	return t_done();
}
