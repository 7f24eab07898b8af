/* SPDX-License-Identifier: Apache-2.0 */
/* diff: accelerate=yes */
/* 4 threads, 16 connections to another process, each with its own bytes. */
#include "t.h"

#define CONNS 16
#define BYTES (1u << 20)

static struct t_addr at;
static uint64_t sums[CONNS];

static void *echo(void *arg)
{
	int fd = (int)(intptr_t)arg;
	char buf[8192];
	ssize_t r;

	while ((r = recv(fd, buf, sizeof(buf), 0)) > 0)
		if (t_send_all(fd, buf, (size_t)r) != (size_t)r)
			break;
	close(fd);
	return NULL;
}

static void *client(void *arg)
{
	int first = (int)(intptr_t)arg, fd[4];
	uint64_t seed[4];
	char out[4096], in[4096];

	for (int i = 0; i < 4; i++) {
		fd[i] = t_connect(&at);
		seed[i] = (uint64_t)(first + i + 1);
		sums[first + i] = T_SUM_START;
	}
	for (unsigned done = 0; done < BYTES; done += sizeof(out)) {
		for (int i = 0; i < 4; i++) {
			t_fill(out, sizeof(out), &seed[i]);
			t_need(t_send_all(fd[i], out, sizeof(out)) == sizeof(out));
			t_need(t_recv_all(fd[i], in, sizeof(in)) == sizeof(in));
			if (memcmp(in, out, sizeof(in)))
				printf("different on %d\n", first + i);
			sums[first + i] = t_sum(sums[first + i], in, sizeof(in));
		}
	}
	for (int i = 0; i < 4; i++)
		close(fd[i]);
	return NULL;
}

int main(void)
{
	pthread_t t[4];
	int l;

	t_init();
	l = t_listen(&at);
	if (!t_fork()) {
		pthread_t e[CONNS];

		for (int i = 0; i < CONNS; i++)
			t_need(!pthread_create(&e[i], NULL, echo, (void *)(intptr_t)t_accept(l)));
		for (int i = 0; i < CONNS; i++)
			pthread_join(e[i], NULL);
		t_leave();
	}
	close(l);
	for (int i = 0; i < 4; i++)
		t_need(!pthread_create(&t[i], NULL, client, (void *)(intptr_t)(i * 4)));
	for (int i = 0; i < 4; i++)
		pthread_join(t[i], NULL);
	for (int i = 0; i < CONNS; i++)
		printf("%d %016llx\n", i, (unsigned long long)sums[i]);
	t_join(0);
	return t_done();
}
