/* SPDX-License-Identifier: Apache-2.0 */
/* diff: accelerate=yes */
/* close() in one thread leaves a recv that sleeps in another until bytes come; the peer sees no end before. */
#include "t.h"

static _Atomic pid_t tid;
static int b;

static void *reader(void *arg)
{
	char buf[16];

	atomic_store(&tid, gettid());
	LB("recv", recv(b, buf, 16, 0), buf);
	return arg;
}

int main(void)
{
	pthread_t t;
	char buf[4];
	int a;

	t_init();
	t_warm_pair(&a, &b);
	t_need(!pthread_create(&t, NULL, reader, NULL));
	t_asleep(&tid);
	L("close", close(b));
	L("recv, closed", recv(b, buf, 4, MSG_DONTWAIT));
	L("peer sees no end", recv(a, buf, 4, MSG_DONTWAIT));
	t_need(send(a, "wake", 4, 0) == 4);
	pthread_join(t, NULL);
	t_until(a, POLLIN);
	L("peer recv", recv(a, buf, 4, 0));
	return t_done();
}
