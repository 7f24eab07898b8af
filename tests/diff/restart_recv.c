/* SPDX-License-Identifier: Apache-2.0 */
/* diff: accelerate=yes */
/* With SA_RESTART a sleeping recv goes on after the handler. */
#include "t.h"

static atomic_int signals;
static int a;

static void on_signal(int sig)
{
	(void)sig;
	atomic_fetch_add(&signals, 1);
}

static void *writer(void *arg)
{
	while (atomic_load(&signals) < 3)
		usleep(1000);
	t_need(send(a, "after three", 11, 0) == 11);
	return arg;
}

int main(void)
{
	struct t_pester p;
	pthread_t t;
	char buf[16];
	int b;

	t_init();
	t_warm_pair(&a, &b);
	t_set_handler(SIGUSR1, on_signal, SA_RESTART);
	t_need(!pthread_create(&t, NULL, writer, NULL));
	t_pester_start(&p, SIGUSR1);
	LB("recv", recv(b, buf, 16, 0), buf);
	t_pester_stop(&p);
	pthread_join(t, NULL);
	return t_done();
}
