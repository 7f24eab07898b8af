/* SPDX-License-Identifier: Apache-2.0 */
/* diff: accelerate=yes */
/* Two threads wait in sets of their own (EPOLLEXCLUSIVE) and in a shared one: every byte is read exactly once. */
#include "t.h"

#define N 300
static int b;
static atomic_int got;

static void *worker(void *arg)
{
	int ep = (int)(intptr_t)arg;
	struct epoll_event ev;
	char c;

	while (atomic_load(&got) < N) {
		if (epoll_wait(ep, &ev, 1, 20) < 1)
			continue;
		if (recv(b, &c, 1, MSG_DONTWAIT) == 1)
			atomic_fetch_add(&got, 1);
	}
	return NULL;
}

int main(void)
{
	int a, ep[3];
	pthread_t t[4];
	char c;

	t_init();
	t_warm_pair(&a, &b);
	for (int i = 0; i < 3; i++) {
		ep[i] = epoll_create1(0);
		t_ep_ctl("add", ep[i], EPOLL_CTL_ADD, b, EPOLLIN | (i < 2 ? EPOLLEXCLUSIVE : 0u), (uint64_t)i);
	}
	for (int i = 0; i < 4; i++)
		t_need(!pthread_create(&t[i], NULL, worker, (void *)(intptr_t)ep[i < 3 ? i : 2]));
	for (int i = 0; i < N; i++)
		t_need(send(a, "x", 1, 0) == 1);
	for (int i = 0; i < 4; i++)
		pthread_join(t[i], NULL);
	printf("got %d\n", atomic_load(&got));
	L("more", recv(b, &c, 1, MSG_DONTWAIT));
	return t_done();
}
