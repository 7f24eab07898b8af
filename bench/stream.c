/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One direction, as fast as it goes: the client writes blocks of --size bytes, the server reads and counts.
 *
 * Throughput is taken at the receiver: the bytes that it read in the timed window, which begins --warm-ms after its first byte and ends
 * with the last read inside --seconds. Blocking calls, a thread for each connection. An operation is one block.
 */
#include "common.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static const char usage[] =
	"usage: stream server|client [--size BYTES] [--clients N] [--port N] [--addr A]\n"
	"              [--seconds S] [--warm-ms MS] [--count BLOCKS]\n";

static struct bench_options opt;

struct worker {
	int fd;
	pthread_t thread;
	char *buf;
	size_t len;
	uint64_t total; /* bytes */
	uint64_t in_window, elapsed;
};

static void *send_all(void *arg)
{
	struct worker *w = arg;
	uint64_t start = bench_now(), blocks = 0;
	/* A margin, so that the receiver's window, which begins later, is full. */
	uint64_t span = (uint64_t)(opt.seconds * 1e9) + (opt.warm_ms + 100) * 1000000ull;

	while (opt.count ? blocks < opt.count : bench_now() - start < span) {
		for (size_t out = 0; out < w->len;) {
			ssize_t n = write(w->fd, w->buf + out, w->len - out);

			if (n < 0 && errno == EINTR)
				continue;
			if (n <= 0)
				bench_die("write");
			out += (size_t)n;
		}
		w->total += w->len;
		blocks++;
	}
	close(w->fd);
	return NULL;
}

static void *receive_all(void *arg)
{
	struct worker *w = arg;
	uint64_t first = 0, base = 0, start = 0, limit = (uint64_t)(opt.seconds * 1e9);

	for (;;) {
		ssize_t n = read(w->fd, w->buf, w->len);
		uint64_t now;

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			bench_die("read");
		if (n == 0)
			break;
		w->total += (uint64_t)n;
		now = bench_now();
		if (!first)
			first = now;
		if (!start && (opt.count || now - first >= opt.warm_ms * 1000000ull)) {
			start = now;
			base = w->total;
		}
		if (start && (opt.count || now - start <= limit)) {
			w->in_window = w->total - base;
			w->elapsed = now - start;
		}
	}
	close(w->fd);
	return NULL;
}

int main(int argc, char **argv)
{
	struct worker *w;
	uint64_t total = 0, bytes = 0;
	double rate = 0;
	int lfd = -1;

	bench_parse(&opt, argc, argv, usage);
	w = calloc(opt.clients, sizeof(*w));
	if (!w)
		bench_die("memory");
	if (opt.server)
		lfd = bench_listen(&opt);
	for (unsigned i = 0; i < opt.clients; i++) {
		w[i].fd = opt.server ? bench_accept(lfd, false) : bench_connect(&opt, 0, false);
		if (w[i].fd < 0)
			bench_die("connect");
		w[i].len = opt.server && opt.size < 65536 ? 65536 : opt.size;
		w[i].buf = malloc(w[i].len);
		if (!w[i].buf)
			bench_die("memory");
		memset(w[i].buf, 'x', w[i].len);
	}
	for (unsigned i = 1; i < opt.clients; i++) {
		errno = pthread_create(&w[i].thread, NULL, opt.server ? receive_all : send_all, &w[i]);
		if (errno)
			bench_die("thread");
	}
	(opt.server ? receive_all : send_all)(&w[0]);
	for (unsigned i = 0; i < opt.clients; i++) {
		if (i)
			pthread_join(w[i].thread, NULL);
		total += w[i].total;
		bytes += w[i].in_window;
		if (w[i].elapsed)
			rate += (double)w[i].in_window * 1e9 / (double)w[i].elapsed / (double)opt.size;
	}
	if (lfd >= 0)
		close(lfd);
	bench_print("write", opt.server ? "server" : "client", &opt, bytes / opt.size, rate, total / opt.size, NULL);
	return 0;
}
