/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Short connections: connect, one request, one answer, close.
 *
 * The client closes first, and rotates over --spread loopback addresses: ports in TIME_WAIT are counted per destination. The client tells
 * the server to stop by a request that begins with 'Q'.
 */
#include "common.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char usage[] =
	"usage: connect server|client [--size BYTES] [--clients N] [--port N] [--addr A] [--spread N]\n"
	"               [--seconds S] [--warm OPS] [--warm-ms MS] [--count CONNECTIONS]\n";

static struct bench_options opt;
static pthread_barrier_t warmed;

struct worker {
	pthread_t thread;
	unsigned index;
	uint64_t count, total, elapsed, retries;
	struct bench_hist *hist;
};

static void once(struct worker *w, char *buf, char first)
{
	int fd;

	for (unsigned tries = 0;; tries++) {
		fd = bench_connect(&opt, (unsigned)((w->total + w->index + w->retries) % opt.spread), true);
		if (fd >= 0)
			break;
		/* All ports towards this address are in TIME_WAIT: the next one. */
		if (errno != EADDRNOTAVAIL || tries > 1000)
			bench_die("connect");
		w->retries++;
	}
	buf[0] = first;
	bench_send_all(fd, buf, opt.size);
	if (!bench_recv_all(fd, buf, opt.size)) {
		errno = EPIPE;
		bench_die("no answer");
	}
	if (close(fd))
		bench_die("close");
	w->total++;
}

static void *client(void *arg)
{
	struct worker *w = arg;
	char *buf = calloc(1, opt.size);
	uint64_t start = bench_now(), last, now;

	if (!buf)
		bench_die("memory");
	if (!opt.count) {
		while (w->total < opt.warm || bench_now() - start < opt.warm_ms * 1000000ull)
			once(w, buf, 'r');
		pthread_barrier_wait(&warmed);
	}
	start = last = now = bench_now();
	while (opt.count ? w->count < opt.count : (double)(now - start) < opt.seconds * 1e9) {
		once(w, buf, 'r');
		now = bench_now();
		bench_hist_add(w->hist, now - last);
		last = now;
		w->count++;
	}
	w->elapsed = now - start;
	free(buf);
	return NULL;
}

static void client_main(void)
{
	struct worker *w = calloc(opt.clients, sizeof(*w));
	char *buf = calloc(1, opt.size);
	uint64_t count = 0, total = 0;
	double rate = 0;

	if (!w || !buf)
		bench_die("memory");
	pthread_barrier_init(&warmed, NULL, opt.clients);
	for (unsigned i = 0; i < opt.clients; i++) {
		w[i].index = i;
		w[i].hist = bench_hist_new();
	}
	for (unsigned i = 1; i < opt.clients; i++) {
		errno = pthread_create(&w[i].thread, NULL, client, &w[i]);
		if (errno)
			bench_die("thread");
	}
	client(&w[0]);
	for (unsigned i = 0; i < opt.clients; i++) {
		if (i) {
			pthread_join(w[i].thread, NULL);
			bench_hist_merge(w[0].hist, w[i].hist);
		}
		count += w[i].count;
		total += w[i].total;
		if (w[i].elapsed)
			rate += (double)w[i].count * 1e9 / (double)w[i].elapsed;
	}
	once(&w[0], buf, 'Q');
	bench_print("connect", "client", &opt, count, rate, total, w[0].hist);
}

static pthread_mutex_t done_lock = PTHREAD_MUTEX_INITIALIZER;
static uint64_t served;

static void serve(int lfd)
{
	char *buf = malloc(opt.size), end;
	bool quit = false;

	if (!buf)
		bench_die("memory");
	while (!quit) {
		int fd = bench_accept(lfd, true);

		if (bench_recv_all(fd, buf, opt.size)) {
			quit = buf[0] == 'Q';
			bench_send_all(fd, buf, opt.size);
			bench_recv_all(fd, &end, 1); /* the client closes first */
		}
		close(fd);
		__atomic_fetch_add(&served, 1, __ATOMIC_RELAXED);
	}
	free(buf);
	/* Only one thread gets here: the others wait in accept, and end with the process. */
	pthread_mutex_lock(&done_lock);
	bench_print("connect", "server", &opt, served, 0, served, NULL);
	exit(0);
}

static void *serve_thread(void *arg)
{
	serve(*(int *)arg);
	return NULL;
}

int main(int argc, char **argv)
{
	bench_parse(&opt, argc, argv, usage);
	if (!opt.server) {
		client_main();
		return 0;
	}
	static int lfd;

	lfd = bench_listen(&opt);
	/* One connection at a time for one client; more threads only where clients would wait for each other's close. */
	for (unsigned i = 1; i < opt.clients && i < 4; i++) {
		pthread_t t;

		errno = pthread_create(&t, NULL, serve_thread, &lfd);
		if (errno)
			bench_die("thread");
	}
	serve(lfd);
	return 0;
}
