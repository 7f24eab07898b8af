/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One end of a TCP connection that writes and reads at the same time and verifies every byte. It knows nothing of culvert; handshake_tests.py stops, kills and
 * delays it while its connection is being switched.
 *
 *   duplex accept|connect poll|threads FILE MILLISECONDS
 *
 * Reads commands from stdin: "warm PORT" makes a connection elsewhere and ends it, "go PORT" begins (accept: PORT is not used). Says "port N" (accept), "warm",
 * and at the end "sent N got N bad N read WORD write WORD". FILE holds, as a shared uint64_t, the bytes that the kernel, or whatever acts for it, has
 * accepted: they outlive the process.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define CHUNK 16384u
#define BURST (256u << 10)
#define GIVE_UP 20 /* s */

static int fd = -1;
static _Atomic uint64_t *accepted;
static uint64_t sent, got, limit = UINT64_MAX; /* limit: known once the paced part is over */
static int64_t bad = -1;
static const char *read_end = "", *write_end = "";
static bool connects;
static double begun, pace;

static void die(const char *what)
{
	perror(what);
	exit(2);
}

static double now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec * 1e3 + (double)ts.tv_nsec / 1e6;
}

/* Byte `at` of a direction. */
static uint8_t content(bool of_connector, uint64_t at)
{
	uint64_t x = (at / 8 + 1) * 0x9e3779b97f4a7c15ull ^ (of_connector ? 0x5851f42d4c957f2dull : 0);

	x ^= x >> 29;
	x *= 0xbf58476d1ce4e5b9ull;
	return (uint8_t)(x >> (8 * (at % 8)));
}

static const char *word(int err)
{
	static char other[2][32];

	switch (err) {
	case 0:
		return "EOF";
	case EPIPE:
		return "EPIPE";
	case ECONNRESET:
		return "ECONNRESET";
	default:
		snprintf(other[err & 1], sizeof(other[0]), "errno-%d", err);
		return other[err & 1];
	}
}

static size_t chunk_size(void)
{
	static uint32_t x = 1;

	x = x * 1664525 + 1013904223;
	return 1 + (x >> 8) % (x >> 28 ? 300 : CHUNK);
}

/* What may be written now: paced at first, so that the switch falls into it, then a burst. 0: wait; done when sent == limit. */
static size_t due(void)
{
	if (limit == UINT64_MAX) {
		double t = now() - begun;

		if (t < pace)
			return sent < (uint64_t)(t * 4000) ? chunk_size() : 0;
		limit = sent + BURST;
	}
	return limit - sent < CHUNK ? (size_t)(limit - sent) : CHUNK;
}

/* True when writing has ended. */
static bool write_some(size_t n)
{
	static uint8_t buf[CHUNK];
	ssize_t r;

	for (size_t i = 0; i < n; i++)
		buf[i] = content(connects, sent + i);
	r = send(fd, buf, n, 0);
	if (r < 0 && (errno == EAGAIN || errno == EINTR))
		return false;
	if (r < 0) {
		write_end = word(errno);
		return true;
	}
	atomic_fetch_add(accepted, (uint64_t)r);
	sent += (uint64_t)r;
	if (sent < limit)
		return false;
	write_end = "all";
	if (shutdown(fd, SHUT_WR) < 0 && errno != ENOTCONN) /* reset meanwhile */
		write_end = word(errno);
	return true;
}

static bool read_some(void)
{
	static uint8_t buf[40000];
	ssize_t r = recv(fd, buf, 1 + got % sizeof(buf), 0);

	if (r < 0 && (errno == EAGAIN || errno == EINTR))
		return false;
	if (r <= 0) {
		read_end = word(r ? errno : 0);
		return true;
	}
	for (ssize_t i = 0; i < r && bad < 0; i++)
		if (buf[i] != content(!connects, got + (uint64_t)i))
			bad = (int64_t)got + i;
	got += (uint64_t)r;
	return bad >= 0;
}

static void by_poll(void)
{
	bool writing = true, reading = true;

	fcntl(fd, F_SETFL, O_NONBLOCK);
	while (writing || reading) {
		size_t n = writing ? due() : 0;
		struct pollfd p = {.fd = fd, .events = (short)((reading ? POLLIN : 0) | (n ? POLLOUT : 0))};

		if (poll(&p, 1, writing && !n ? 1 : -1) < 0)
			die("poll");
		if (reading && (p.revents & (POLLIN | POLLHUP | POLLERR)) && read_some())
			reading = false;
		if (n && (p.revents & (POLLOUT | POLLHUP | POLLERR)) && write_some(n))
			writing = false;
	}
}

static void *writer(void *arg)
{
	for (;;) {
		size_t n = due();

		if (!n)
			usleep(1000);
		else if (write_some(n))
			return arg;
	}
}

static void by_threads(void)
{
	pthread_t th;

	if (pthread_create(&th, NULL, writer, NULL))
		die("pthread_create");
	while (!read_some())
		;
	pthread_join(th, NULL);
}

static int connected(int port)
{
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	int s = socket(AF_INET, SOCK_STREAM, 0), one = 1;

	if (s < 0 || connect(s, (struct sockaddr *)&a, sizeof(a)) < 0)
		die("connect");
	setsockopt(s, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	return s;
}

static int listener(void)
{
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t len = sizeof(a);
	int s = socket(AF_INET, SOCK_STREAM, 0);

	if (s < 0 || bind(s, (struct sockaddr *)&a, sizeof(a)) < 0 || listen(s, 8) < 0 || getsockname(s, (struct sockaddr *)&a, &len) < 0)
		die("listen");
	printf("port %d\n", ntohs(a.sin_port));
	return s;
}

static void too_late(int sig)
{
	(void)sig;
	dprintf(1, "hang: sent %llu got %llu read %s write %s\n", (unsigned long long)sent, (unsigned long long)got, read_end, write_end);
	_exit(3);
}

int main(int argc, char **argv)
{
	int lfd = -1, file;
	char line[64];

	if (argc != 5)
		return 2;
	connects = strcmp(argv[1], "connect") == 0;
	file = open(argv[3], O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	if (file < 0 || ftruncate(file, 4096) < 0)
		die(argv[3]);
	accepted = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
	if (accepted == MAP_FAILED)
		die("mmap");
	close(file);
	pace = atof(argv[4]);
	signal(SIGPIPE, SIG_IGN);
	signal(SIGALRM, too_late);
	alarm(GIVE_UP);
	setvbuf(stdout, NULL, _IOLBF, 0);
	if (!connects)
		lfd = listener();
	while (fgets(line, sizeof(line), stdin)) {
		int port = atoi(strchr(line, ' ') ? strchr(line, ' ') : "0");

		if (strncmp(line, "warm", 4) == 0) {
			int s = connected(port);

			if (write(s, "x", 1) != 1)
				die("write");
			close(s);
			printf("warm\n");
			continue;
		}
		fd = connects ? connected(port) : accept(lfd, NULL, NULL);
		if (fd < 0)
			die("accept");
		break;
	}
	begun = now();
	if (strcmp(argv[2], "poll") == 0)
		by_poll();
	else
		by_threads();
	close(fd);
	printf("sent %llu got %llu bad %lld read %s write %s\n", (unsigned long long)sent, (unsigned long long)got, (long long)bad, read_end,
	       write_end);
	return 0;
}
