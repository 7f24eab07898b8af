/* SPDX-License-Identifier: Apache-2.0 */
/* diff: accelerate=yes */
/* A thread that sleeps in epoll before the other direction's traffic switches the stream is woken by a late byte. */
#include "t.h"

static _Atomic pid_t tid;
static int fd;

static void *reader(void *arg)
{
	int ep = epoll_create1(0);

	t_ep_ctl("add", ep, EPOLL_CTL_ADD, fd, EPOLLIN, 1);
	atomic_store(&tid, gettid());
	t_ep_wait("epoll_wait", ep, -1);
	t_expect(fd, "late");
	return arg;
}

static void peer(int s)
{
	for (int i = 0; i < 500; i++)
		t_expect(s, "one way");
	L("send", send(s, "late", 4, 0));
	t_drain("end", s);
}

int main(void)
{
	pthread_t t;

	t_init();
	fd = t_peer(peer);
	t_need(!pthread_create(&t, NULL, reader, NULL));
	t_asleep(&tid);
	for (int i = 0; i < 500; i++)
		t_need(send(fd, "one way", 7, 0) == 7);
	pthread_join(t, NULL);
	close(fd);
	t_join(0);
	return t_done();
}
