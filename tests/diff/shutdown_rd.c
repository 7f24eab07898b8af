/* SPDX-License-Identifier: Apache-2.0 */
/* diff: accelerate=yes */
/* After SHUT_RD recv says EOF at once, but Linux still hands out what comes later. */
#include "t.h"

int main(void)
{
	char buf[16];
	int a, b;

	t_init();
	t_warm_pair(&a, &b);
	L("send", send(a, "before", 6, 0));
	t_arrived(b, 6);
	L("shutdown", shutdown(b, SHUT_RD));
	t_poll1("poll", b, POLLIN | POLLRDHUP | POLLOUT, 0);
	LB("recv", recv(b, buf, 16, 0), buf);
	L("recv", recv(b, buf, 16, 0));
	L("send", send(a, "after", 5, 0));
	t_arrived(b, 5);
	LB("recv", recv(b, buf, 16, 0), buf);
	L("recv", recv(b, buf, 16, 0));
	L("send back", send(b, "back", 4, 0));
	t_expect(a, "back");
	return t_done();
}
