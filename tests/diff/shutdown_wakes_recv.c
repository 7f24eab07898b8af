/* SPDX-License-Identifier: Apache-2.0 */
/* diff: accelerate=yes */
/* shutdown() in one thread wakes a recv that sleeps in another. */
#include "t.h"

static _Atomic pid_t tid;
static int b;

static void *reader(void *arg)
{
	char buf[16];

	atomic_store(&tid, gettid());
	L("recv", recv(b, buf, 16, 0));
	return arg;
}

int main(void)
{
	pthread_t t;
	int a;

	t_init();
	t_warm_pair(&a, &b);
	t_need(!pthread_create(&t, NULL, reader, NULL));
	t_asleep(&tid);
	shutdown(b, SHUT_RD);
	pthread_join(t, NULL);
	L("send back", send(b, "x", 1, 0));
	t_expect(a, "x");
	return t_done();
}
