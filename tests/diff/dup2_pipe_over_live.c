/* SPDX-License-Identifier: Apache-2.0 */
/* diff: accelerate=yes */
/* A pipe dup2'ed onto a live connection: the number is a pipe from then on. */
#include "t.h"

int main(void)
{
	char buf[16];
	int a, b, p[2];

	t_init();
	t_warm_pair(&a, &b);
	t_need(!pipe(p));
	L("dup2", dup2(p[0], b) == b);
	t_until(a, POLLIN);
	L("peer", recv(a, buf, 16, 0));
	L("write to the pipe", write(p[1], "pipe", 4));
	LB("read", read(b, buf, 16), buf);
	L("recv", recv(b, buf, 16, 0));
	t_poll1("poll", b, POLLIN, 0);
	close(p[1]);
	t_poll1("poll", b, POLLIN, 1000);
	return t_done();
}
