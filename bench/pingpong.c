/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Request and answer of the same size, one outstanding on each connection.
 *
 * block: a thread for each connection, blocking calls. spin: one thread calls non-blocking recv on all connections in turn. epoll: one
 * thread, level-triggered. The time of an operation is from one answer to the next: one clock reading each. The first bytes of
 * a message are a sequence number which must come back.
 */
#include "common.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

static const char usage[] =
	"usage: pingpong server|client [--mode block|spin|epoll] [--size BYTES] [--clients N] [--port N] [--addr A]\n"
	"                [--seconds S] [--warm OPS] [--warm-ms MS] [--count OPS]\n";

static const char *const mode_names[] = {"block", "spin", "epoll"};

struct conn {
	int fd;
	char *buf;		/* out and in: only one of them is under way */
	size_t out, in;		/* bytes of this message sent and received */
	bool sending, open;
	bool wants_out;		/* epoll: EPOLLOUT is set */
	uint64_t t0, ops, seq;
};

static struct bench_options opt;

static void stamp(struct conn *c)
{
	c->seq++;
	memcpy(c->buf, &c->seq, opt.size < sizeof(c->seq) ? opt.size : sizeof(c->seq));
}

static void verify(const struct conn *c)
{
	if (memcmp(c->buf, &c->seq, opt.size < sizeof(c->seq) ? opt.size : sizeof(c->seq))) {
		fprintf(stderr, "pingpong: the answer is not the request\n");
		exit(3);
	}
}

static void conn_init(struct conn *c, int fd)
{
	*c = (struct conn){.fd = fd, .open = true, .buf = malloc(opt.size)};
	if (!c->buf)
		bench_die("memory");
	memset(c->buf, 'x', opt.size);
}

/* --- blocking: a thread for each connection --- */

struct worker {
	struct conn c;
	pthread_t thread;
	struct bench_hist *hist;
	uint64_t count, elapsed;
};

static pthread_barrier_t warmed;

static void round_trip(struct conn *c)
{
	stamp(c);
	bench_send_all(c->fd, c->buf, opt.size);
	if (!bench_recv_all(c->fd, c->buf, opt.size)) {
		errno = EPIPE;
		bench_die("server ended");
	}
	verify(c);
	c->ops++;
}

static void *block_client(void *arg)
{
	struct worker *w = arg;
	uint64_t start = bench_now(), now, last;

	if (!opt.count) {
		while (w->c.ops < opt.warm || bench_now() - start < opt.warm_ms * 1000000ull)
			round_trip(&w->c);
		pthread_barrier_wait(&warmed);
	}
	start = last = now = bench_now();
	while (opt.count ? w->count < opt.count : (double)(now - start) < opt.seconds * 1e9) {
		round_trip(&w->c);
		now = bench_now();
		bench_hist_add(w->hist, now - last);
		last = now;
		w->count++;
	}
	w->elapsed = now - start;
	close(w->c.fd);
	return NULL;
}

static void *block_server(void *arg)
{
	struct worker *w = arg;

	while (bench_recv_all(w->c.fd, w->c.buf, opt.size)) {
		bench_send_all(w->c.fd, w->c.buf, opt.size);
		w->c.ops++;
	}
	close(w->c.fd);
	return NULL;
}

/* With one connection the main thread does the work: no second thread, as in the simplest of programs. */
static void block_run(struct worker *w, void *(*body)(void *))
{
	pthread_attr_t attr;

	if (opt.clients == 1) {
		body(w);
		return;
	}
	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, 256 * 1024);
	for (unsigned i = 0; i < opt.clients; i++) {
		errno = pthread_create(&w[i].thread, &attr, body, &w[i]);
		if (errno)
			bench_die("thread");
	}
	for (unsigned i = 0; i < opt.clients; i++)
		pthread_join(w[i].thread, NULL);
}

static void block_main(int lfd)
{
	struct worker *w = calloc(opt.clients, sizeof(*w));
	struct bench_hist *all = bench_hist_new();
	uint64_t count = 0, total = 0;
	double rate = 0;

	if (!w)
		bench_die("memory");
	pthread_barrier_init(&warmed, NULL, opt.clients);
	for (unsigned i = 0; i < opt.clients; i++) {
		int fd = lfd >= 0 ? bench_accept(lfd, true) : bench_connect(&opt, 0, true);

		if (fd < 0)
			bench_die("connect");
		conn_init(&w[i].c, fd);
		if (lfd < 0)
			w[i].hist = bench_hist_new();
	}
	block_run(w, lfd >= 0 ? block_server : block_client);
	for (unsigned i = 0; i < opt.clients; i++) {
		total += w[i].c.ops;
		count += w[i].count;
		if (w[i].hist)
			bench_hist_merge(all, w[i].hist);
		if (w[i].elapsed)
			rate += (double)w[i].count * 1e9 / (double)w[i].elapsed;
	}
	bench_print(mode_names[opt.mode], lfd >= 0 ? "server" : "client", &opt, count, rate, total, all);
}

/* --- non-blocking: one thread for all connections --- */

/* Continue sending; true when the message is out. */
static bool push(struct conn *c)
{
	while (c->out < opt.size) {
		ssize_t n = send(c->fd, c->buf + c->out, opt.size - c->out, MSG_NOSIGNAL);

		if (n < 0 && errno == EAGAIN)
			return false;
		if (n < 0 && errno != EINTR)
			bench_die("send");
		if (n > 0)
			c->out += (size_t)n;
	}
	c->sending = false;
	c->in = 0;
	return true;
}

/* One recv; 1: the message is complete, 0: not yet, -1: end of stream. */
static int pull(struct conn *c)
{
	ssize_t n = recv(c->fd, c->buf + c->in, opt.size - c->in, 0);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return 0;
	if (n == 0 && c->in == 0)
		return -1;
	if (n <= 0)
		bench_die("recv");
	c->in += (size_t)n;
	return c->in == opt.size;
}

static void begin(struct conn *c)
{
	c->out = 0;
	c->sending = true;
	push(c);
}

static struct client_state {
	enum { WARM, TIMED, DRAIN } phase;
	unsigned warm_left; /* connections that have not done their warm-up operations */
	unsigned under_way;
	uint64_t begun, start, end, count, total;
	double elapsed;
	struct bench_hist *hist;
} st;

static void advance(uint64_t now)
{
	if (st.phase == WARM && !st.warm_left && now - st.begun >= opt.warm_ms * 1000000ull) {
		st.phase = TIMED;
		st.start = now;
		st.end = now + (uint64_t)(opt.seconds * 1e9);
	} else if (st.phase == TIMED && !opt.count && now >= st.end) {
		st.phase = DRAIN;
		st.elapsed = (double)(now - st.start);
	}
}

/* An answer is complete: account for it and send the next request, unless the run is over. */
static void client_answer(struct conn *c)
{
	uint64_t now = bench_now();

	verify(c);
	c->ops++;
	st.total++;
	if (st.phase == TIMED) {
		st.count++;
		bench_hist_add(st.hist, now - c->t0);
	} else if (st.phase == WARM && c->ops == opt.warm) {
		st.warm_left--;
	}
	advance(now);
	if (st.phase == DRAIN || (opt.count && c->ops >= opt.count)) {
		st.under_way--;
		if (!st.under_way && opt.count)
			st.elapsed = (double)(now - st.start);
		c->in = 0;
		return;
	}
	c->t0 = now;
	stamp(c);
	begin(c);
}

/* The server echoes; false when the connection has ended. */
static bool server_step(struct conn *c)
{
	int r;

	if (c->sending && !push(c))
		return true;
	r = pull(c);
	if (r > 0) {
		c->ops++;
		begin(c);
	}
	if (r < 0) {
		close(c->fd);
		c->open = false;
	}
	return r >= 0;
}

static void client_step(struct conn *c)
{
	int r;

	if (c->sending && !push(c))
		return;
	r = pull(c);
	if (r < 0) {
		errno = EPIPE;
		bench_die("server ended");
	}
	if (r > 0)
		client_answer(c);
}

static void spin_loop(struct conn *c, bool server)
{
	unsigned left = opt.clients;

	if (server) {
		while (left)
			for (unsigned i = 0; i < opt.clients; i++)
				if (c[i].open && !server_step(&c[i]))
					left--;
		return;
	}
	while (st.under_way)
		for (unsigned i = 0; i < opt.clients; i++)
			client_step(&c[i]);
}

static void epoll_set(int ep, int op, struct conn *c)
{
	struct epoll_event ev = {.events = EPOLLIN | (c->sending ? EPOLLOUT : 0), .data.ptr = c};

	c->wants_out = c->sending;
	if (epoll_ctl(ep, op, c->fd, &ev))
		bench_die("epoll_ctl");
}

static void epoll_loop(struct conn *c, bool server)
{
	struct epoll_event ev[128];
	unsigned left = opt.clients;
	int n, ep = epoll_create1(0);

	if (ep < 0)
		bench_die("epoll_create1");
	for (unsigned i = 0; i < opt.clients; i++)
		epoll_set(ep, EPOLL_CTL_ADD, &c[i]);
	while (server ? left : st.under_way) {
		n = epoll_wait(ep, ev, 128, -1);
		if (n < 0 && errno != EINTR)
			bench_die("epoll_wait");
		for (int i = 0; i < n; i++) {
			struct conn *e = ev[i].data.ptr;

			if (!server)
				client_step(e);
			else if (!server_step(e))
				left--;
			if (e->open && e->sending != e->wants_out)
				epoll_set(ep, EPOLL_CTL_MOD, e);
		}
	}
	close(ep);
}

static void nonblock_main(int lfd)
{
	struct conn *c = calloc(opt.clients, sizeof(*c));
	bool server = lfd >= 0;
	uint64_t total = 0;

	if (!c)
		bench_die("memory");
	for (unsigned i = 0; i < opt.clients; i++) {
		int fd = server ? bench_accept(lfd, true) : bench_connect(&opt, 0, true);

		if (fd < 0)
			bench_die("connect");
		conn_init(&c[i], fd);
		bench_nonblock(fd);
	}
	if (!server) {
		st.hist = bench_hist_new();
		st.under_way = opt.clients;
		st.warm_left = opt.warm && !opt.count ? opt.clients : 0;
		st.begun = st.start = bench_now();
		st.phase = opt.count ? TIMED : WARM;
		for (unsigned i = 0; i < opt.clients; i++) {
			c[i].t0 = bench_now();
			stamp(&c[i]);
			begin(&c[i]);
		}
	}
	if (opt.mode == BENCH_SPIN)
		spin_loop(c, server);
	else
		epoll_loop(c, server);
	for (unsigned i = 0; i < opt.clients; i++) {
		total += c[i].ops;
		if (!server)
			close(c[i].fd);
	}
	bench_print(mode_names[opt.mode], server ? "server" : "client", &opt, st.count, st.elapsed > 0 ? (double)st.count * 1e9 / st.elapsed : 0,
		    total, st.hist);
}

int main(int argc, char **argv)
{
	int lfd = -1;

	bench_parse(&opt, argc, argv, usage);
	if (opt.server)
		lfd = bench_listen(&opt);
	if (opt.mode == BENCH_BLOCK)
		block_main(lfd);
	else
		nonblock_main(lfd);
	if (lfd >= 0)
		close(lfd);
	return 0;
}
