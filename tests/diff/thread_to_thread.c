/* SPDX-License-Identifier: Apache-2.0 */
/* diff: accelerate=yes */
/* Two threads of one process talk over a connection, blocking. */
#include "t.h"

static int b;

static void *echo(void *arg)
{
	char buf[1024];
	ssize_t r;

	while ((r = recv(b, buf, sizeof(buf), 0)) > 0)
		t_need(t_send_all(b, buf, (size_t)r) == (size_t)r);
	L("echo ends", r);
	close(b);
	return arg;
}

int main(void)
{
	char out[1024], in[1024];
	uint64_t seed = 2, sum = T_SUM_START;
	pthread_t t;
	int a;

	t_init();
	t_pair(&a, &b);
	t_need(!pthread_create(&t, NULL, echo, NULL));
	for (int i = 0; i < 1000; i++) {
		size_t n = t_rand(&seed) % sizeof(out) + 1;

		t_fill(out, n, &seed);
		t_need(t_send_all(a, out, n) == n && t_recv_all(a, in, n) == n);
		if (memcmp(in, out, n))
			printf("different in round %d\n", i);
		sum = t_sum(sum, in, n);
	}
	printf("sum %016llx\n", (unsigned long long)sum);
	shutdown(a, SHUT_WR);
	pthread_join(t, NULL);
	t_drain("end", a);
	return t_done();
}
