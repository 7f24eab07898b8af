/* SPDX-License-Identifier: Apache-2.0 */
/* diff: accelerate=yes reasons=option,call */
/* SO_RCVLOWAT: poll and recv wait for that many bytes. */
#include "t.h"

int main(void)
{
	char buf[16];
	int a, b, low = 8;

	t_init();
	t_warm_pair(&a, &b);
	L("SO_RCVLOWAT", setsockopt(b, SOL_SOCKET, SO_RCVLOWAT, &low, sizeof(low)));
	L("send 5", send(a, "abcde", 5, 0));
	t_arrived(b, 5);
	t_poll1("poll below", b, POLLIN, 20);
	L("send 3", send(a, "fgh", 3, 0));
	t_poll1("poll at", b, POLLIN, 2000);
	LB("recv", recv(b, buf, 16, 0), buf);
	L("send 2", send(a, "xy", 2, 0));
	t_arrived(b, 2);
	LB("recv short, non-blocking", recv(b, buf, 16, MSG_DONTWAIT), buf);
	return t_done();
}
