/* SPDX-License-Identifier: Apache-2.0 */
/* diff: accelerate=yes race=either */
/* A program that starts with 0, 1 and 2 closed gets its own files there, never anybody else's. */
#include "t.h"

int main(int argc, char **argv)
{
	char buf[64];
	int a, b, out;

	if (argc < 2) {
		int keep = fcntl(1, F_DUPFD, 60);

		snprintf(buf, sizeof(buf), "%d", keep);
		close(0);
		close(1);
		close(2);
		execl("/proc/self/exe", argv[0], buf, (char *)NULL);
		_exit(97);
	}
	out = atoi(argv[1]);
	t_arm();
	t_warm_pair(&a, &b);
	t_need(send(a, "x", 1, 0) == 1);
	t_expect(b, "x");
	snprintf(buf, sizeof(buf), "%d %d, next %d\ndone\n", a, b, open("/dev/null", O_RDWR));
	t_need(write(out, buf, strlen(buf)) > 0);
	return 0;
}
