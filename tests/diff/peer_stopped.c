/* SPDX-License-Identifier: Apache-2.0 */
/* diff: accelerate=yes */
/* The peer is stopped with SIGSTOP in the middle and goes on later: nothing is lost, nobody resets. */
#include "t.h"

static void peer(int fd)
{
	char buf[1000];

	t_warm_follow(fd);
	for (int i = 0; i < 400; i++) {
		t_need(t_recv_all(fd, buf, sizeof(buf)) == sizeof(buf));
		t_need(t_send_all(fd, buf, sizeof(buf)) == sizeof(buf));
	}
	t_drain("end", fd);
}

int main(void)
{
	char out[1000], in[1000];
	uint64_t seed = 29, sum = T_SUM_START;
	pid_t pid;
	int fd;

	t_init();
	fd = t_peer(peer);
	pid = t_last_peer();
	t_warm_lead(fd);
	for (int i = 0; i < 400; i++) {
		t_fill(out, sizeof(out), &seed);
		if (i == 100)
			kill(pid, SIGSTOP);
		t_need(t_send_all(fd, out, sizeof(out)) == sizeof(out));
		if (i == 100) {
			t_poll1("stopped", fd, POLLIN, 300);
			kill(pid, SIGCONT);
		}
		t_need(t_recv_all(fd, in, sizeof(in)) == sizeof(in));
		sum = t_sum(sum, in, sizeof(in));
	}
	printf("sum %016llx\n", (unsigned long long)sum);
	close(fd);
	t_join(0);
	return t_done();
}
