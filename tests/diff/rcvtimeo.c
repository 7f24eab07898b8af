/* SPDX-License-Identifier: Apache-2.0 */
/* diff: accelerate=yes */
/* SO_RCVTIMEO ends a blocking recv with EAGAIN, after that time. */
#include "t.h"

int main(void)
{
	struct timeval tv = { 0, 150000 }, none = { 0, 0 };
	char buf[16];
	double from;
	int a, b;

	t_init();
	t_warm_pair(&a, &b);
	L("SO_RCVTIMEO", setsockopt(b, SOL_SOCKET, SO_RCVTIMEO, &tv, sizeof(tv)));
	for (int i = 0; i < 2; i++) {
		from = t_now();
		L("recv", recv(b, buf, 16, 0));
		from = t_now() - from;
		printf("not early %d, not late %d\n", from > 0.14, from < 3);
	}
	L("send", send(a, "abc", 3, 0));
	from = t_now();
	LB("recv WAITALL", recv(b, buf, 16, MSG_WAITALL), buf);
	printf("not early %d\n", t_now() - from > 0.14);
	L("no time-out", setsockopt(b, SOL_SOCKET, SO_RCVTIMEO, &none, sizeof(none)));
	L("send", send(a, "d", 1, 0));
	LB("recv", recv(b, buf, 16, 0), buf);
	return t_done();
}
