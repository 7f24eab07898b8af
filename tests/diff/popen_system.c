/* SPDX-License-Identifier: Apache-2.0 */
/* diff: accelerate=yes reasons=fork,exec */
/* system() and popen() while connections (CLOEXEC and not) are open: they go on undisturbed. */
#include "t.h"

static void talk(int a, int b)
{
	for (int i = 0; i < 50; i++) {
		t_need(send(a, "ping", 4, 0) == 4);
		t_expect(b, "ping");
		t_need(send(b, "pong", 4, 0) == 4);
		t_expect(a, "pong");
	}
}

int main(void)
{
	char line[64] = "";
	int a, b, c, d;
	FILE *p;

	t_init();
	t_warm_pair(&a, &b);
	t_warm_pair(&c, &d);
	fcntl(c, F_SETFD, 0);
	printf("system %d\n", system("exit 3") >> 8);
	talk(a, b);
	talk(c, d);
	p = popen("echo from a child", "r");
	t_need(p && fgets(line, sizeof(line), p));
	printf("popen: %s", line);
	talk(a, b);
	printf("pclose %d\n", pclose(p));
	talk(c, d);
	p = popen("cat >/dev/null", "w");
	t_need(p);
	fprintf(p, "text\n");
	talk(c, d);
	printf("pclose %d\n", pclose(p));
	talk(a, b);
	return t_done();
}
