/* SPDX-License-Identifier: Apache-2.0 */
/*
 * threads PORT: four threads make their first socket at the same moment, connect to a Redis there and say PING. It knows nothing of culvert; other_tests.py looks
 * whether all four were seen.
 */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define THREADS 4

static pthread_barrier_t together;
static struct sockaddr_in to = {.sin_family = AF_INET};

static void *ping(void *arg)
{
	char in[16];
	intptr_t good = 0;
	int fd;

	(void)arg;
	pthread_barrier_wait(&together);
	fd = socket(AF_INET, SOCK_STREAM, 0);
	if (connect(fd, (struct sockaddr *)&to, sizeof(to)) == 0 && write(fd, "PING\r\n", 6) == 6)
		good = read(fd, in, sizeof(in)) == 7 && memcmp(in, "+PONG\r\n", 7) == 0;
	close(fd);
	return (void *)good;
}

int main(int argc, char **argv)
{
	pthread_t t[THREADS];
	intptr_t good = 0;
	void *one;

	if (argc != 2)
		return 2;
	to.sin_port = htons((uint16_t)atoi(argv[1]));
	to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	pthread_barrier_init(&together, NULL, THREADS);
	for (int i = 0; i < THREADS; i++)
		if (pthread_create(&t[i], NULL, ping, NULL))
			return 1;
	for (int i = 0; i < THREADS; i++) {
		pthread_join(t[i], &one);
		good += (intptr_t)one;
	}
	return good == THREADS ? 0 : 1;
}
