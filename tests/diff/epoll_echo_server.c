/* SPDX-License-Identifier: Apache-2.0 */
/* diff: accelerate=yes */
/* A small edge-triggered echo server with 32 clients, as libevent programs are built. */
#include "t.h"

#define CLIENTS 32
#define ROUNDS 60

static void serve(int l)
{
	static char buf[4096];
	struct epoll_event ev[8];
	int ep = epoll_create1(EPOLL_CLOEXEC), open = 0, seen = 0;

	fcntl(l, F_SETFL, O_NONBLOCK);
	t_need(!epoll_ctl(ep, EPOLL_CTL_ADD, l, &(struct epoll_event){ .events = EPOLLIN, .data.fd = l }));
	while (seen < CLIENTS || open) {
		int n = epoll_wait(ep, ev, 8, -1);

		for (int i = 0; i < n; i++) {
			int fd = ev[i].data.fd;
			ssize_t r;

			if (fd == l) {
				while ((fd = accept4(l, NULL, NULL, SOCK_NONBLOCK)) >= 0) {
					struct epoll_event e = { .events = EPOLLIN | EPOLLET | EPOLLRDHUP, .data.fd = fd };

					t_need(!epoll_ctl(ep, EPOLL_CTL_ADD, fd, &e));
					open++;
					seen++;
				}
				continue;
			}
			while ((r = read(fd, buf, sizeof(buf))) > 0)
				t_need(t_send_all(fd, buf, (size_t)r) == (size_t)r);
			if (r == 0) {
				close(fd);
				open--;
			} else {
				t_need(errno == EAGAIN);
			}
		}
	}
	printf("served %d\n", seen);
}

int main(void)
{
	char out[2000], in[2000];
	uint64_t seed = 6, sum = T_SUM_START;
	struct t_addr at;
	int l, fd[CLIENTS];

	t_init();
	l = t_listen(&at);
	if (!t_fork()) {
		serve(l);
		t_leave();
	}
	close(l);
	for (int i = 0; i < CLIENTS; i++)
		fd[i] = t_connect(&at);
	for (int k = 0; k < ROUNDS; k++) {
		for (int i = 0; i < CLIENTS; i++) {
			size_t n = t_rand(&seed) % sizeof(out) + 1;

			t_fill(out, n, &seed);
			t_need(t_send_all(fd[i], out, n) == n && t_recv_all(fd[i], in, n) == n);
			if (memcmp(in, out, n))
				printf("different: round %d client %d\n", k, i);
			sum = t_sum(sum, in, n);
		}
	}
	printf("sum %016llx\n", (unsigned long long)sum);
	for (int i = 0; i < CLIENTS; i++)
		close(fd[i]);
	t_join(0);
	return t_done();
}
