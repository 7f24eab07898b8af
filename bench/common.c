/* SPDX-License-Identifier: Apache-2.0 */
#include "common.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

void bench_die(const char *what)
{
	fprintf(stderr, "%s: %s: %s\n", program_invocation_short_name, what, strerror(errno));
	exit(2);
}

static double number(const char *s, const char *name, double min, double max)
{
	char *end;
	double v = strtod(s, &end);

	if (end == s || *end || v < min || v > max) {
		fprintf(stderr, "%s: --%s %s: want a number from %g to %g\n", program_invocation_short_name, name, s, min, max);
		exit(2);
	}
	return v;
}

enum { O_MODE = 1, O_ADDR, O_PORT, O_CLIENTS, O_SIZE, O_SECONDS, O_WARM, O_WARM_MS, O_COUNT, O_SPREAD, O_CPUS, O_HELP };

static const struct option longs[] = {
	{"mode", 1, 0, O_MODE},	      {"addr", 1, 0, O_ADDR},	{"port", 1, 0, O_PORT},	      {"clients", 1, 0, O_CLIENTS},
	{"size", 1, 0, O_SIZE},	      {"seconds", 1, 0, O_SECONDS}, {"warm", 1, 0, O_WARM},   {"warm-ms", 1, 0, O_WARM_MS},
	{"count", 1, 0, O_COUNT},     {"spread", 1, 0, O_SPREAD}, {"cpus", 1, 0, O_CPUS},     {"help", 0, 0, O_HELP},
	{0, 0, 0, 0},
};

static enum bench_mode mode_named(const char *s)
{
	static const char *const names[] = {"block", "spin", "epoll"};

	for (unsigned i = 0; i < 3; i++)
		if (!strcmp(s, names[i]))
			return (enum bench_mode)i;
	fprintf(stderr, "%s: --mode %s: want block, spin or epoll\n", program_invocation_short_name, s);
	exit(2);
}

static void role_named(struct bench_options *o, int argc, char **argv, const char *usage)
{
	const char *role = optind < argc ? argv[optind] : "";

	o->server = !strcmp(role, "server");
	if (optind + 1 != argc || (!o->server && strcmp(role, "client") && strcmp(role, "run"))) {
		fputs(usage, stderr);
		exit(2);
	}
}

void bench_parse(struct bench_options *o, int argc, char **argv, const char *usage)
{
	int c;

	*o = (struct bench_options){.addr = "127.0.0.1", .clients = 1, .size = 64, .seconds = 1, .warm = 1000, .warm_ms = 200, .spread = 1};
	while ((c = getopt_long(argc, argv, "", longs, NULL)) != -1) {
		switch (c) {
		case O_MODE:
			o->mode = mode_named(optarg);
			break;
		case O_ADDR:
			snprintf(o->addr, sizeof(o->addr), "%s", optarg);
			break;
		case O_PORT:
			o->port = (uint16_t)number(optarg, "port", 0, 65535);
			break;
		case O_CLIENTS:
			o->clients = (unsigned)number(optarg, "clients", 1, 100000);
			break;
		case O_SIZE:
			o->size = (size_t)number(optarg, "size", 1, 1 << 30);
			break;
		case O_SECONDS:
			o->seconds = number(optarg, "seconds", 0.001, 86400);
			break;
		case O_WARM:
			o->warm = (uint64_t)number(optarg, "warm", 0, 1e12);
			break;
		case O_WARM_MS:
			o->warm_ms = (unsigned)number(optarg, "warm-ms", 0, 3600000);
			break;
		case O_COUNT:
			o->count = (uint64_t)number(optarg, "count", 1, 1e12);
			break;
		case O_SPREAD:
			o->spread = (unsigned)number(optarg, "spread", 1, 200);
			break;
		case O_CPUS:
			if (sscanf(optarg, "%u,%u", &o->cpu[0], &o->cpu[1]) != 2) {
				fprintf(stderr, "%s: --cpus %s: want A,B\n", program_invocation_short_name, optarg);
				exit(2);
			}
			o->cpu_given = true;
			break;
		case O_HELP:
			fputs(usage, stdout);
			exit(0);
		default:
			fputs(usage, stderr);
			exit(2);
		}
	}
	role_named(o, argc, argv, usage);
	/* Nobody's benchmark runs for ever, whatever happens to the peer or the driver; counted runs may be under valgrind. */
	alarm(o->count ? 600 : (unsigned)(o->seconds + o->warm_ms / 1000.0) + 120);
}

static struct sockaddr_in address(const struct bench_options *o, unsigned step)
{
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons(o->port)};

	if (inet_pton(AF_INET, o->addr, &a.sin_addr) != 1) {
		errno = EINVAL;
		bench_die(o->addr);
	}
	a.sin_addr.s_addr = htonl(ntohl(a.sin_addr.s_addr) + step);
	return a;
}

static void set_nodelay(int fd)
{
	int one = 1;

	if (setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one)))
		bench_die("TCP_NODELAY");
}

int bench_listen(const struct bench_options *o)
{
	struct sockaddr_in a = address(o, 0);
	socklen_t len = sizeof(a);
	int one = 1, fd = socket(AF_INET, SOCK_STREAM, 0);

	if (o->spread > 1)
		a.sin_addr.s_addr = htonl(INADDR_ANY);
	if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)) || bind(fd, (struct sockaddr *)&a, sizeof(a)) ||
	    listen(fd, 4096) || getsockname(fd, (struct sockaddr *)&a, &len))
		bench_die("listen");
	printf("port %u\n", ntohs(a.sin_port));
	fflush(stdout);
	return fd;
}

int bench_accept(int lfd, bool nodelay)
{
	int fd;

	do
		fd = accept(lfd, NULL, NULL);
	while (fd < 0 && (errno == EINTR || errno == ECONNABORTED));
	if (fd < 0)
		bench_die("accept");
	if (nodelay)
		set_nodelay(fd);
	return fd;
}

int bench_connect(const struct bench_options *o, unsigned step, bool nodelay)
{
	struct sockaddr_in a = address(o, step);
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	if (fd < 0)
		bench_die("socket");
	if (connect(fd, (struct sockaddr *)&a, sizeof(a))) {
		int e = errno;

		close(fd);
		errno = e;
		return -1;
	}
	if (nodelay)
		set_nodelay(fd);
	return fd;
}

void bench_nonblock(int fd)
{
	int fl = fcntl(fd, F_GETFL);

	if (fl < 0 || fcntl(fd, F_SETFL, fl | O_NONBLOCK))
		bench_die("O_NONBLOCK");
}

void bench_send_all(int fd, const void *buf, size_t size)
{
	const char *p = buf;

	while (size) {
		ssize_t n = send(fd, p, size, MSG_NOSIGNAL);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			bench_die("send");
		p += n;
		size -= (size_t)n;
	}
}

int bench_recv_all(int fd, void *buf, size_t size)
{
	char *p = buf;

	for (size_t got = 0; got < size;) {
		ssize_t n = recv(fd, p + got, size - got, 0);

		if (n < 0 && errno == EINTR)
			continue;
		if (n == 0 && got == 0)
			return 0;
		if (n == 0)
			errno = EPROTO; /* the peer ended in the middle of a message */
		if (n <= 0)
			bench_die("recv");
		got += (size_t)n;
	}
	return 1;
}

struct bench_hist *bench_hist_new(void)
{
	struct bench_hist *h = calloc(1, sizeof(*h));

	if (!h)
		bench_die("memory");
	return h;
}

void bench_hist_merge(struct bench_hist *into, const struct bench_hist *from)
{
	for (size_t i = 0; i < BENCH_HIST_BUCKETS; i++)
		into->bucket[i] += from->bucket[i];
	into->n += from->n;
	if (from->max > into->max)
		into->max = from->max;
}

static double bucket_ns(size_t i)
{
	size_t octave, step;

	if (i < 1024)
		return (double)i;
	octave = (i - 1024) / 512 + 1;
	step = (i - 1024) % 512 + 512;
	return ((double)step + 0.5) * (double)(1ull << octave);
}

double bench_hist_percentile_us(const struct bench_hist *h, double percentile)
{
	double want = (double)h->n * percentile / 100;
	uint64_t seen = 0;

	for (size_t i = 0; i < BENCH_HIST_BUCKETS; i++) {
		seen += h->bucket[i];
		if (seen && (double)seen >= want) {
			double ns = bucket_ns(i);

			return (ns < (double)h->max ? ns : (double)h->max) / 1000;
		}
	}
	return 0;
}

void bench_print(const char *op, const char *role, const struct bench_options *o, uint64_t count, double rate, uint64_t total,
		 const struct bench_hist *h)
{
	printf("{\"op\":\"%s\",\"role\":\"%s\",\"clients\":%u,\"size\":%zu,\"count\":%llu,\"rate\":%.3f,\"total\":%llu", op, role, o->clients,
	       o->size, (unsigned long long)count, rate, (unsigned long long)total);
	if (h && h->n)
		printf(",\"p50_us\":%.3f,\"p99_us\":%.3f,\"p999_us\":%.3f,\"max_us\":%.3f", bench_hist_percentile_us(h, 50),
		       bench_hist_percentile_us(h, 99), bench_hist_percentile_us(h, 99.9), (double)h->max / 1000);
	puts("}");
	fflush(stdout);
}
