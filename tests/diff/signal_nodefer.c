/* SPDX-License-Identifier: Apache-2.0 */
/* diff: accelerate=yes reasons=call */
/* A handler with SA_NODEFER, which the same signal may interrupt, writes to the connection that the interrupted code is sending on. */
#include "t.h"

static int fd;
static volatile sig_atomic_t extra;

static void on_signal(int sig)
{
	int e = errno;

	(void)sig;
	if (send(fd, "S", 1, MSG_DONTWAIT) == 1)
		__atomic_fetch_add(&extra, 1, __ATOMIC_RELAXED);
	errno = e;
}

static void peer(int s)
{
	long plain = 0, from_handler = 0, other = 0;
	char buf[4096];
	ssize_t n;

	t_warm_follow(s);
	while ((n = recv(s, buf, sizeof(buf), 0)) > 0) {
		for (ssize_t i = 0; i < n; i++) {
			if (buf[i] == 'p')
				plain++;
			else if (buf[i] == 'S')
				from_handler++;
			else
				other++;
		}
	}
	t_need(send(s, &from_handler, sizeof(from_handler), 0) == sizeof(from_handler));
	printf("plain %ld, other %ld, end %zd\n", plain, other, n);
}

int main(void)
{
	struct itimerval it = { { 0, 200 }, { 0, 200 } }, off = { { 0, 0 }, { 0, 0 } };
	long got = 0;

	t_init();
	fd = t_peer(peer);
	t_warm_lead(fd);
	t_set_handler(SIGALRM, on_signal, SA_RESTART | SA_NODEFER);
	t_need(!setitimer(ITIMER_REAL, &it, NULL));
	for (int i = 0; i < 200000; i++)
		t_need(send(fd, "pppppppp", 8, 0) == 8);
	t_need(!setitimer(ITIMER_REAL, &off, NULL));
	signal(SIGALRM, SIG_IGN);
	shutdown(fd, SHUT_WR);
	t_need(t_recv_all(fd, &got, sizeof(got)) == sizeof(got));
	printf("as many as sent %d\n", got == extra);
	close(fd);
	t_join(0);
	return t_done();
}
