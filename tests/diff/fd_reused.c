/* SPDX-License-Identifier: Apache-2.0 */
/* diff: accelerate=yes */
/* A closed number comes back as something else: bytes of the old one never show up. */
#include "t.h"

int main(void)
{
	char buf[16];
	int a, b, p[2], c, d;

	t_init();
	for (int i = 0; i < 20; i++) {
		t_warm_pair(&a, &b);
		t_need(send(a, "old bytes", 9, 0) == 9);
		close(b);
		close(a);
		t_need(!pipe(p));
		if (p[0] != a && p[1] != a && p[0] != b && p[1] != b)
			printf("number not reused\n");
		t_need(write(p[1], "pipe", 4) == 4);
		if (read(p[0], buf, 16) != 4 || memcmp(buf, "pipe", 4))
			printf("not the pipe's bytes\n");
		close(p[0]);
		close(p[1]);
		t_pair(&c, &d);
		if (recv(d, buf, 16, MSG_DONTWAIT) != -1 || errno != EAGAIN)
			printf("bytes in a fresh connection\n");
		t_warm(c, d);
		close(c);
		close(d);
	}
	return t_done();
}
