/* SPDX-License-Identifier: Apache-2.0 */
/* diff: accelerate=yes reasons=call */
/* A signal handler writes to the connection on which the interrupted code is sending: records stay whole. */
#include "t.h"

static int fd;
static volatile sig_atomic_t extra;

static void on_signal(int sig)
{
	int e = errno;

	(void)sig;
	if (send(fd, "SSSSSSSS", 8, MSG_DONTWAIT) == 8)
		extra++;
	errno = e;
}

static void peer(int s)
{
	int plain = 0, from_handler = 0, torn = 0;
	char rec[8];

	t_warm_follow(s);
	while (t_recv_all(s, rec, 8) == 8) {
		if (!memcmp(rec, "pppppppp", 8))
			plain++;
		else if (!memcmp(rec, "SSSSSSSS", 8))
			from_handler++;
		else if (!memcmp(rec, "count", 5))
			printf("as many as sent %d\n", atoi(rec + 5) == from_handler);
		else
			torn++;
	}
	printf("plain %d, torn %d\n", plain, torn);
}

int main(void)
{
	struct itimerval it = { { 0, 500 }, { 0, 500 } }, off = { { 0, 0 }, { 0, 0 } };
	char rec[16];

	t_init();
	fd = t_peer(peer);
	t_warm_lead(fd);
	t_set_handler(SIGPROF, on_signal, SA_RESTART);
	t_need(!setitimer(ITIMER_PROF, &it, NULL));
	for (int i = 0; i < 100000; i++)
		t_need(send(fd, "pppppppp", 8, 0) == 8);
	t_need(!setitimer(ITIMER_PROF, &off, NULL));
	signal(SIGPROF, SIG_IGN);
	snprintf(rec, sizeof(rec), "count%03d", extra % 1000);
	printf("fits %d\n", extra < 1000);
	t_need(send(fd, rec, 8, 0) == 8);
	close(fd);
	t_join(0);
	return t_done();
}
