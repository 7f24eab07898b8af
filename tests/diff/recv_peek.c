/* SPDX-License-Identifier: Apache-2.0 */
/* diff: accelerate=yes */
/* MSG_PEEK returns the bytes and leaves them there. */
#include "t.h"

int main(void)
{
	char buf[64];
	int a, b;

	t_init();
	t_warm_pair(&a, &b);
	L("send", send(a, "hello", 5, 0));
	t_arrived(b, 5);
	LB("peek 5", recv(b, buf, 5, MSG_PEEK), buf);
	LB("peek 3", recv(b, buf, 3, MSG_PEEK), buf);
	LB("peek 64", recv(b, buf, 64, MSG_PEEK), buf);
	LB("recv 2", recv(b, buf, 2, 0), buf);
	LB("peek the rest", recv(b, buf, 64, MSG_PEEK), buf);
	L("send more", send(a, " world", 6, 0));
	t_arrived(b, 9);
	LB("peek across sends", recv(b, buf, 64, MSG_PEEK), buf);
	LB("recv all", recv(b, buf, 64, 0), buf);
	LB("peek nothing", recv(b, buf, 64, MSG_PEEK | MSG_DONTWAIT), buf);
	close(a);
	t_until(b, POLLIN);
	L("peek at the end", recv(b, buf, 64, MSG_PEEK));
	L("recv at the end", recv(b, buf, 64, 0));
	return t_done();
}
