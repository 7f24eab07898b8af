/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the hardware allows, without any transport:
 *   cacheline      round trip of one cache line, filled and read out, between two threads pinned on two cores; a line for each direction
 *   memcpy         64 KiB blocks, one core, both buffers in its cache
 *   memcpy-2cores  64 KiB blocks copied into a shared ring on one core and out of it on another: what any transport that copies in and
 *                  out can reach
 */
#include "common.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdalign.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char usage[] = "usage: floor run [--seconds S] [--cpus A,B] [--size BLOCK]\n";

#define RING_BLOCKS 16
#define PASS 1000 /* round trips between two looks at the clock while the rate is measured */

static struct bench_options opt;
/* 56 bytes and the number that says they are new. Lines are two apart, since prefetchers fetch pairs. */
struct line {
	alignas(128) _Atomic uint64_t seq;
	char payload[56];
};

static struct {
	struct line there, back;
	alignas(128) _Atomic bool stop;
	alignas(128) _Atomic uint64_t head;
	alignas(128) _Atomic uint64_t tail;
	alignas(128) char end;
} sh;
static char *ring;

static inline void relax(void)
{
#if defined(__x86_64__) || defined(__i386__)
	__builtin_ia32_pause();
#elif defined(__aarch64__)
	__asm__ volatile("yield");
#endif
}

/* Where another program may hold the other thread's CPU: let it finish. */
static inline void relax_long(unsigned *n)
{
	relax();
	if (++*n % 10000 == 0)
		sched_yield();
}

static void pin(unsigned cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	errno = pthread_setaffinity_np(pthread_self(), sizeof(set), &set);
	if (errno)
		bench_die("pin");
}

static int core_of(unsigned cpu)
{
	static const char *const names[] = {"physical_package_id", "core_id"};
	int id[2] = {0, (int)cpu};
	char path[128];

	for (unsigned i = 0; i < 2; i++) {
		snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu%u/topology/%s", cpu, names[i]);
		FILE *f = fopen(path, "r");

		if (f) {
			if (fscanf(f, "%d", &id[i]) != 1)
				id[i] = 0;
			fclose(f);
		}
	}
	return id[0] * 65536 + id[1];
}

/* The first two CPUs that we may use and that are not threads of one core. */
static void choose_cpus(void)
{
	cpu_set_t set;
	int first = -1;

	if (opt.cpu_given)
		return;
	if (sched_getaffinity(0, sizeof(set), &set))
		bench_die("affinity");
	for (unsigned i = 0; i < CPU_SETSIZE; i++) {
		if (!CPU_ISSET(i, &set))
			continue;
		if (first < 0) {
			first = (int)i;
			opt.cpu[0] = i;
		} else if (core_of(i) != core_of((unsigned)first)) {
			opt.cpu[1] = i;
			return;
		}
	}
	fprintf(stderr, "floor: needs two cores\n");
	exit(77);
}

static void line_send(struct line *l, const char *payload, uint64_t seq)
{
	memcpy(l->payload, payload, sizeof(l->payload));
	atomic_store_explicit(&l->seq, seq, memory_order_release);
}

/* False when told to stop. */
static bool line_recv(struct line *l, char *payload, uint64_t seq)
{
	while (atomic_load_explicit(&l->seq, memory_order_acquire) != seq) {
		if (atomic_load_explicit(&sh.stop, memory_order_relaxed))
			return false;
		relax();
	}
	memcpy(payload, l->payload, sizeof(l->payload));
	return true;
}

static void *echo(void *arg)
{
	char payload[56];

	(void)arg;
	pin(opt.cpu[1]);
	for (uint64_t seq = 1; line_recv(&sh.there, payload, seq); seq++)
		line_send(&sh.back, payload, seq);
	return NULL;
}

static uint64_t line_trip(uint64_t seq)
{
	static char payload[56];

	line_send(&sh.there, payload, seq);
	line_recv(&sh.back, payload, seq);
	return seq + 1;
}

static void start(pthread_t *t, void *(*body)(void *))
{
	errno = pthread_create(t, NULL, body, NULL);
	if (errno)
		bench_die("thread");
}

static void cacheline(void)
{
	struct bench_hist *h = bench_hist_new();
	uint64_t seq = 1, begin, now, last, trips = 0, span = (uint64_t)(opt.seconds * 1e9 / 2);
	struct bench_options line = opt;
	pthread_t t;

	start(&t, echo);
	for (unsigned i = 0; i < 10000; i++)
		seq = line_trip(seq);
	/* The rate without clock readings; then each trip for itself, one reading each, as pingpong does it. */
	begin = now = bench_now();
	while (now - begin < span) {
		for (unsigned i = 0; i < PASS; i++)
			seq = line_trip(seq);
		trips += PASS;
		now = bench_now();
	}
	double rate = (double)trips * 1e9 / (double)(now - begin);

	for (begin = last = now; now - begin < span; last = now) {
		seq = line_trip(seq);
		now = bench_now();
		bench_hist_add(h, now - last);
	}
	atomic_store(&sh.stop, true);
	pthread_join(t, NULL);
	atomic_store(&sh.stop, false);
	line.size = 64;
	bench_print("cacheline", "floor", &line, trips, rate, trips + h->n, h);
}

/*
 * Copies are timed in slices and the best one counts: a floor is what the hardware allows, and a thread that lost its CPU for a
 * while says nothing about that.
 */
struct slices {
	uint64_t span, begin, blocks, total;
	double best;
};

static struct slices slices_begin(void)
{
	return (struct slices){.span = (uint64_t)(opt.seconds * 1e9 / 20), .begin = bench_now()};
}

static void slices_add(struct slices *s, uint64_t blocks)
{
	uint64_t now = bench_now();

	s->blocks += blocks;
	s->total += blocks;
	if (now - s->begin < s->span)
		return;
	double rate = (double)s->blocks * 1e9 / (double)(now - s->begin);

	if (rate > s->best)
		s->best = rate;
	s->blocks = 0;
	s->begin = now;
}

static void copy_one_core(void)
{
	char *a = malloc(opt.size), *b = malloc(opt.size);
	uint64_t begin;
	struct slices s;

	if (!a || !b)
		bench_die("memory");
	memset(a, 1, opt.size);
	memset(b, 2, opt.size);
	s = slices_begin();
	for (begin = s.begin; (double)(s.begin - begin) < opt.seconds * 1e9;) {
		for (unsigned i = 0; i < 16; i++) {
			memcpy(b, a, opt.size);
			__asm__ volatile("" : : "r"(b) : "memory"); /* or the copies are one */
		}
		slices_add(&s, 16);
	}
	bench_print("memcpy", "floor", &opt, s.total, s.best, s.total, NULL);
	free(a);
	free(b);
}

static void *copy_out(void *arg)
{
	char *to = malloc(opt.size);

	(void)arg;
	if (!to)
		bench_die("memory");
	pin(opt.cpu[1]);
	for (uint64_t tail = 0;; tail++) {
		for (unsigned n = 0; atomic_load_explicit(&sh.head, memory_order_acquire) == tail;) {
			if (atomic_load_explicit(&sh.stop, memory_order_relaxed)) {
				free(to);
				return NULL;
			}
			relax_long(&n);
		}
		memcpy(to, ring + tail % RING_BLOCKS * opt.size, opt.size);
		__asm__ volatile("" : : "r"(to) : "memory");
		atomic_store_explicit(&sh.tail, tail + 1, memory_order_release);
	}
}

static void copy_two_cores(void)
{
	char *from = malloc(opt.size);
	uint64_t begin, head = 0;
	struct slices s;
	pthread_t t;

	ring = malloc(opt.size * RING_BLOCKS);
	if (!from || !ring)
		bench_die("memory");
	memset(from, 1, opt.size);
	memset(ring, 0, opt.size * RING_BLOCKS);
	start(&t, copy_out);
	s = slices_begin();
	for (begin = s.begin; (double)(s.begin - begin) < opt.seconds * 1e9;) {
		for (unsigned n = 0; head - atomic_load_explicit(&sh.tail, memory_order_acquire) == RING_BLOCKS;)
			relax_long(&n);
		memcpy(ring + head % RING_BLOCKS * opt.size, from, opt.size);
		atomic_store_explicit(&sh.head, ++head, memory_order_release);
		slices_add(&s, 1); /* as the ring is short, what went in is what came out */
	}
	bench_print("memcpy-2cores", "floor", &opt, s.total, s.best, s.total, NULL);
	atomic_store(&sh.stop, true);
	pthread_join(t, NULL);
	free(from);
	free(ring);
}

int main(int argc, char **argv)
{
	bench_parse(&opt, argc, argv, usage);
	if (opt.size == 64)
		opt.size = 65536; /* the default of the other programs is none for copies */
	choose_cpus();
	pin(opt.cpu[0]);
	cacheline();
	copy_one_core();
	copy_two_cores();
	return 0;
}
