/* SPDX-License-Identifier: Apache-2.0 */
/* diff: accelerate=yes reasons=stdio */
/* stdio on a socket: fprintf, fgets, and plain calls on the same descriptor afterwards. */
#include "t.h"

static void peer(int fd)
{
	char line[64];
	FILE *f;

	t_warm_follow(fd);
	f = fdopen(fd, "r+");
	t_need(f);
	for (int i = 0; i < 100; i++) {
		t_need(fgets(line, sizeof(line), f));
		if (i % 33 == 0)
			printf("%s", line);
		fprintf(f, "reply to %s", line);
		fflush(f);
	}
	printf("fclose %d\n", fclose(f));
}

int main(void)
{
	char line[64], want[64];
	int fd, same = 0;
	FILE *f;

	t_init();
	fd = t_peer(peer);
	t_warm_lead(fd);
	f = fdopen(dup(fd), "r");
	t_need(f);
	for (int i = 0; i < 100; i++) {
		snprintf(line, sizeof(line), "line %d\n", i);
		snprintf(want, sizeof(want), "reply to line %d\n", i);
		t_need(send(fd, line, strlen(line), 0) == (ssize_t)strlen(line));
		t_need(fgets(line, sizeof(line), f));
		same += !strcmp(line, want);
	}
	printf("same %d\n", same);
	printf("fgets at the end %d\n", fgets(line, sizeof(line), f) ? 1 : 0);
	fclose(f);
	L("recv", recv(fd, line, 1, 0));
	t_join(0);
	return t_done();
}
