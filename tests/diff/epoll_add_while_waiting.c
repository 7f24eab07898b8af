/* SPDX-License-Identifier: Apache-2.0 */
/* diff: accelerate=yes */
/* A thread sleeps in epoll_wait; another adds a ready connection, or sends to one in the set: it wakes. */
#include "t.h"

static _Atomic pid_t tid;
static int ep;

static void *waiter(void *arg)
{
	atomic_store(&tid, gettid());
	t_ep_wait("waiter", ep, -1);
	return arg;
}

int main(void)
{
	int a, b, c, d;
	pthread_t t;

	t_init();
	t_warm_pair(&a, &b);
	t_warm_pair(&c, &d);
	t_need(send(a, "x", 1, 0) == 1);
	t_arrived(b, 1);
	ep = epoll_create1(0);
	t_ep_ctl("add idle", ep, EPOLL_CTL_ADD, d, EPOLLIN, 0xd);
	t_need(!pthread_create(&t, NULL, waiter, NULL));
	t_asleep(&tid);
	t_need(!epoll_ctl(ep, EPOLL_CTL_ADD, b, &(struct epoll_event){ .events = EPOLLIN, .data.u64 = 0xb }));
	pthread_join(t, NULL);
	t_expect(b, "x");
	atomic_store(&tid, 0);
	t_need(!pthread_create(&t, NULL, waiter, NULL));
	t_asleep(&tid);
	t_need(send(c, "y", 1, 0) == 1);
	pthread_join(t, NULL);
	t_expect(d, "y");
	atomic_store(&tid, 0);
	t_need(!epoll_ctl(ep, EPOLL_CTL_MOD, d, &(struct epoll_event){ .events = 0, .data.u64 = 0xd }));
	t_need(!pthread_create(&t, NULL, waiter, NULL));
	t_asleep(&tid);
	t_need(!epoll_ctl(ep, EPOLL_CTL_MOD, d, &(struct epoll_event){ .events = EPOLLOUT, .data.u64 = 0xdd }));
	pthread_join(t, NULL);
	return t_done();
}
