/* SPDX-License-Identifier: Apache-2.0 */
/* diff: accelerate=yes */
/* Calls with a length of zero: no byte moves and no end of file is seen. */
#include "t.h"

int main(void)
{
	char buf[16];
	int a, b;

	t_init();
	t_warm_pair(&a, &b);
	L("send 0", send(a, "x", 0, 0));
	L("write 0", write(a, "x", 0));
	L("read 0, nothing there", read(b, buf, 0));
	L("recv 0, nothing there", recv(b, buf, 0, MSG_DONTWAIT));
	L("send 3", send(a, "abc", 3, 0));
	t_arrived(b, 3);
	L("read 0, bytes there", read(b, buf, 0));
	L("recv 0, bytes there", recv(b, buf, 0, 0));
	LB("recv", recv(b, buf, 16, 0), buf);
	close(a);
	t_until(b, POLLIN);
	L("recv 0 at the end", recv(b, buf, 0, 0));
	L("recv at the end", recv(b, buf, 16, 0));
	return t_done();
}
