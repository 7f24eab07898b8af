/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the small load programs share: options, loopback sockets, a latency histogram, JSON output.
 *
 * These programs are plain socket programs, as anybody would write them: they must not know that culvert exists, so that they measure what
 * an unmodified program gets. One process is the server, one the client; the server prints "port N" when it listens. Errors end the process
 * with a message: a benchmark that limps on measures nothing.
 */
#ifndef BENCH_COMMON_H
#define BENCH_COMMON_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

enum bench_mode { BENCH_BLOCK, BENCH_SPIN, BENCH_EPOLL };

struct bench_options {
	bool server;
	enum bench_mode mode;
	char addr[64];
	uint16_t port;
	unsigned clients;  /* connections */
	size_t size;	   /* bytes of one message or write */
	double seconds;	   /* length of the timed window */
	uint64_t warm;	   /* at least so many operations before it, on each connection, ... */
	unsigned warm_ms;  /* ... and at least so long */
	uint64_t count;	   /* != 0: no warm-up and no window, exactly so many operations on each connection */
	unsigned spread;   /* connect: rotate over so many loopback addresses, so that ports do not run out */
	unsigned cpu[2];   /* floor: the two CPUs */
	bool cpu_given;
};

/* Parses argv; `usage` is printed for --help and after mistakes. Also bounds the life of the process (alarm). */
void bench_parse(struct bench_options *o, int argc, char **argv, const char *usage);

_Noreturn void bench_die(const char *what);

static inline uint64_t bench_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* A listening socket on o->addr:o->port (0: any), announced on stdout. */
int bench_listen(const struct bench_options *o);
int bench_accept(int lfd, bool nodelay);
/* Connects to o->addr plus `step` (127.0.0.1, step 3 -> 127.0.0.4); -1 with errno when the connection fails. */
int bench_connect(const struct bench_options *o, unsigned step, bool nodelay);
void bench_nonblock(int fd);

/* Blocking: all of the bytes or bust. recv: 1 = read, 0 = end of stream before the first byte. */
void bench_send_all(int fd, const void *buf, size_t size);
int bench_recv_all(int fd, void *buf, size_t size);

/*
 * Latencies in nanoseconds: exact below 1024, above it 512 steps for each power of two (0.2 %).
 */
#define BENCH_HIST_BUCKETS (1024 + 512 * 31)
struct bench_hist {
	uint64_t n, max;
	uint64_t bucket[BENCH_HIST_BUCKETS];
};

struct bench_hist *bench_hist_new(void);
void bench_hist_merge(struct bench_hist *into, const struct bench_hist *from);
double bench_hist_percentile_us(const struct bench_hist *h, double percentile);

static inline void bench_hist_add(struct bench_hist *h, uint64_t ns)
{
	size_t i = ns;

	if (ns >= 1024) {
		unsigned shift = 63 - (unsigned)__builtin_clzll(ns) - 9;

		i = 1024 + (size_t)(shift - 1) * 512 + ((ns >> shift) - 512);
		if (i >= BENCH_HIST_BUCKETS)
			i = BENCH_HIST_BUCKETS - 1;
	}
	h->bucket[i]++;
	h->n++;
	if (ns > h->max)
		h->max = ns;
}

/* The result line. h may be NULL (no latencies). total: operations of the whole life of the process, for CPU per operation. */
void bench_print(const char *op, const char *role, const struct bench_options *o, uint64_t count, double rate, uint64_t total,
		 const struct bench_hist *h);

#endif
