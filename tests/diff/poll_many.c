/* SPDX-License-Identifier: Apache-2.0 */
/* diff: accelerate=yes */
/* poll over connections and pipes together; whichever becomes ready wakes it. */
#include "t.h"

#define N 6

static int a[N], b[N], pr[N], pw[N];

static void *poke(void *arg)
{
	int i = (int)(intptr_t)arg;

	usleep(2000);
	t_need(i < N ? send(a[i], "x", 1, 0) == 1 : write(pw[i - N], "x", 1) == 1);
	return NULL;
}

int main(void)
{
	struct pollfd p[2 * N];
	pthread_t t;
	char c;

	t_init();
	for (int i = 0; i < N; i++) {
		int q[2];

		t_warm_pair(&a[i], &b[i]);
		t_need(!pipe(q));
		pr[i] = q[0];
		pw[i] = q[1];
		p[2 * i] = (struct pollfd){ .fd = b[i], .events = POLLIN };
		p[2 * i + 1] = (struct pollfd){ .fd = pr[i], .events = POLLIN };
	}
	for (int i = 0; i < 2 * N; i++) {
		t_need(!pthread_create(&t, NULL, poke, (void *)(intptr_t)i));
		L("poll", poll(p, 2 * N, -1));
		for (int k = 0; k < 2 * N; k++)
			if (p[k].revents) {
				printf("  %d %s\n", k, t_mask((uint16_t)p[k].revents));
				t_need(read(p[k].fd, &c, 1) == 1);
			}
		pthread_join(t, NULL);
	}
	return t_done();
}
