/* SPDX-License-Identifier: Apache-2.0 */
/* diff: accelerate=yes */
/* Four threads send small records on one connection: none is torn, none lost. */
#include "t.h"

#define EACH 2000
static int fd;

static void *writer(void *arg)
{
	char rec[64];

	for (int i = 0; i < EACH; i++) {
		memset(rec, 'a' + (int)(intptr_t)arg, sizeof(rec));
		memcpy(rec, &i, sizeof(i));
		t_need(send(fd, rec, sizeof(rec), 0) == sizeof(rec));
	}
	return NULL;
}

static void peer(int s)
{
	int next[4] = { 0 }, torn = 0, order = 0, n;
	char rec[64];

	t_warm_follow(s);
	for (int i = 0; i < 4 * EACH; i++) {
		t_need(t_recv_all(s, rec, sizeof(rec)) == sizeof(rec));
		for (size_t k = sizeof(n); k < sizeof(rec); k++)
			torn += rec[k] != rec[4];
		memcpy(&n, rec, sizeof(n));
		if (rec[4] < 'a' || rec[4] > 'd' || n != next[rec[4] - 'a']++)
			order++;
	}
	printf("torn %d, out of order %d\n", torn, order);
	t_drain("end", s);
}

int main(void)
{
	pthread_t t[4];

	t_init();
	fd = t_peer(peer);
	t_warm_lead(fd);
	for (int i = 0; i < 4; i++)
		t_need(!pthread_create(&t[i], NULL, writer, (void *)(intptr_t)i));
	for (int i = 0; i < 4; i++)
		pthread_join(t[i], NULL);
	close(fd);
	t_join(0);
	return t_done();
}
