/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the programs in this directory share. Each shows one behaviour of a TCP socket and prints only facts that do not depend
 * on timing: return values, errno names, event masks, checksums. `run` compares what a program prints on kernel TCP with what
 * it prints under culvert; the programs know nothing of culvert. The comment that starts with "diff:" says what `run` demands.
 */
#ifndef T_H
#define T_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
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
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define T_UNUSED __attribute__((unused))
#define T_DEADLINE 20	 /* seconds a program may run */
#define T_UNTOUCHED 4242 /* errno before a logged call: a call that succeeds must leave it */

/* A fault of the test's own set-up, never of what it looks at. */
#define t_need(cond) \
	do { \
		if (!(cond)) \
			t_die(#cond, __LINE__); \
	} while (0)

static T_UNUSED void t_die(const char *what, int line)
{
	int e = errno;

	fflush(stdout);
	dprintf(2, "line %d: %s: %s\n", line, what, strerror(e));
	_exit(98);
}

#define T_PEERS 16
static struct {
	pid_t pid;
	int log;
} t_peers[T_PEERS] T_UNUSED;

/* Says how far the peers got, so that a hang explains itself. */
static T_UNUSED void t_late(int sig)
{
	static const char text[] = "deadline passed; peers' logs so far:\n";
	char buf[4096];
	ssize_t n;

	(void)sig;
	(void)!write(2, text, sizeof(text) - 1);
	for (int i = 0; i < T_PEERS; i++)
		if (t_peers[i].pid && (n = pread(t_peers[i].log, buf, sizeof(buf), 0)) > 0)
			(void)!write(2, buf, (size_t)n);
	_exit(99);
}

static T_UNUSED void t_arm(void)
{
	struct sigaction sa = { .sa_handler = t_late };

	sigaction(SIGALRM, &sa, NULL);
	alarm(T_DEADLINE);
}

static T_UNUSED void t_init(void)
{
	setvbuf(stdout, NULL, _IOLBF, 1 << 12);
	t_arm();
}

static T_UNUSED int t_done(void)
{
	printf("done\n");
	fflush(stdout);
	return 0;
}

/* ---- the log ---- */

static T_UNUSED const char *t_errname(int e)
{
	const char *s = e == T_UNTOUCHED ? "untouched" : strerrorname_np(e);

	return s ? s : "?";
}

static T_UNUSED long t_log(const char *name, long ret)
{
	int e = errno;

	if (ret < 0)
		printf("%s %ld %s\n", name, ret, t_errname(e));
	else
		printf("%s %ld%s\n", name, ret, e == T_UNTOUCHED ? "" : " (errno touched)");
	errno = e;
	return ret;
}

static T_UNUSED long t_log_bytes(const char *name, long ret, const void *buf)
{
	t_log(name, ret);
	if (ret > 0)
		printf("  \"%.*s\"\n", (int)ret, (const char *)buf);
	return ret;
}

/* L: log a call's return value and errno. LB: and the bytes it put into buf. */
#define L(name, call) t_log(name, (errno = T_UNTOUCHED, (long)(call)))
#define LB(name, call, buf) t_log_bytes(name, (errno = T_UNTOUCHED, (long)(call)), buf)

static T_UNUSED const char *t_mask(uint32_t ev)
{
	static const struct {
		uint32_t bit;
		const char *name;
	} names[] = {
		{ EPOLLIN, "IN" },	   { EPOLLPRI, "PRI" },	      { EPOLLOUT, "OUT" },	 { EPOLLERR, "ERR" },	{ EPOLLHUP, "HUP" },
		{ 0x20, "NVAL" },	   { EPOLLRDNORM, "RDNORM" }, { EPOLLRDBAND, "RDBAND" }, { EPOLLWRNORM, "WRNORM" },
		{ EPOLLWRBAND, "WRBAND" }, { EPOLLRDHUP, "RDHUP" },
	};
	static _Thread_local char out[128];
	size_t n = 0;

	out[0] = '\0';
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (ev & names[i].bit)
			n += (size_t)snprintf(out + n, sizeof(out) - n, "%s%s", n ? "|" : "", names[i].name);
	return n ? out : "0";
}

/* ---- connections ---- */

struct t_addr {
	struct sockaddr_storage ss;
	socklen_t len;
};

/* A listener on the loopback address of the family, port chosen by the kernel. */
static T_UNUSED int t_listen_on(int family, struct t_addr *at)
{
	int one = 1, fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);

	memset(at, 0, sizeof(*at));
	at->ss.ss_family = (sa_family_t)family;
	if (family == AF_INET6) {
		((struct sockaddr_in6 *)&at->ss)->sin6_addr = in6addr_loopback;
		at->len = sizeof(struct sockaddr_in6);
	} else {
		((struct sockaddr_in *)&at->ss)->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
		at->len = sizeof(struct sockaddr_in);
	}
	t_need(fd >= 0);
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	t_need(!bind(fd, (struct sockaddr *)&at->ss, at->len));
	t_need(!listen(fd, 128));
	t_need(!getsockname(fd, (struct sockaddr *)&at->ss, &at->len));
	return fd;
}

static T_UNUSED int t_listen(struct t_addr *at)
{
	return t_listen_on(AF_INET, at);
}

static T_UNUSED int t_connect(const struct t_addr *to)
{
	int fd = socket(to->ss.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);

	t_need(fd >= 0);
	t_need(!connect(fd, (const struct sockaddr *)&to->ss, to->len));
	return fd;
}

static T_UNUSED int t_accept(int listener)
{
	int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);

	t_need(fd >= 0);
	return fd;
}

/* Both ends in this process: *a connected, *b accepted. */
static T_UNUSED void t_pair_on(int family, int *a, int *b)
{
	struct t_addr at;
	int l = t_listen_on(family, &at);

	*a = t_connect(&at);
	*b = t_accept(l);
	close(l);
}

static T_UNUSED void t_pair(int *a, int *b)
{
	t_pair_on(AF_INET, a, b);
}

/* ---- processes ---- */

/* fork(); the child's log goes into a file that t_join() prints. */
static T_UNUSED pid_t t_fork(void)
{
	int log = memfd_create("log", MFD_CLOEXEC), i = 0;
	pid_t pid;

	t_need(log >= 0);
	while (t_peers[i].pid)
		t_need(++i < T_PEERS);
	fflush(stdout);
	pid = fork();
	t_need(pid >= 0);
	if (!pid) {
		memset(t_peers, 0, sizeof(t_peers));
		t_need(dup2(log, 1) == 1);
		close(log);
		t_arm();
		return 0;
	}
	t_peers[i].pid = pid;
	t_peers[i].log = log;
	return pid;
}

/* Wait for the child (0: the oldest), and print its log and how it ended. */
static T_UNUSED void t_join(pid_t pid)
{
	char line[512];
	int i = 0, status;
	FILE *f;

	while (!t_peers[i].pid || (pid && t_peers[i].pid != pid))
		t_need(++i < T_PEERS);
	while (waitpid(t_peers[i].pid, &status, 0) < 0)
		t_need(errno == EINTR);
	lseek(t_peers[i].log, 0, SEEK_SET);
	f = fdopen(t_peers[i].log, "r");
	t_need(f);
	while (fgets(line, sizeof(line), f))
		printf("  peer: %s", line);
	fclose(f);
	t_peers[i].pid = 0;
	if (WIFSIGNALED(status))
		printf("  peer killed by %d\n", WTERMSIG(status));
	else if (WEXITSTATUS(status))
		printf("  peer exit %d\n", WEXITSTATUS(status));
}

static T_UNUSED void t_leave(void)
{
	fflush(stdout);
	exit(0);
}

/* Fork a process that connects to us and runs fn on its end; returns our accepted end. No stream exists before the fork. */
static T_UNUSED int t_peer(void (*fn)(int fd))
{
	struct t_addr at;
	int l = t_listen(&at), fd;

	if (!t_fork()) {
		close(l);
		fn(t_connect(&at));
		t_leave();
	}
	fd = t_accept(l);
	close(l);
	return fd;
}

/* The same with the roles turned: the child accepts, we connect. */
static T_UNUSED int t_peer_accepts(void (*fn)(int fd))
{
	struct t_addr at;
	int l = t_listen(&at);

	if (!t_fork()) {
		int fd = t_accept(l);

		close(l);
		fn(fd);
		t_leave();
	}
	close(l);
	return t_connect(&at);
}

static T_UNUSED pid_t t_last_peer(void)
{
	pid_t pid = 0;

	for (int i = 0; i < T_PEERS; i++)
		if (t_peers[i].pid)
			pid = t_peers[i].pid;
	return pid;
}

/* ---- moving bytes, however they are split ---- */

/* What was moved before an end or an error (errno); the whole of n when all went well. */
static T_UNUSED size_t t_send_all(int fd, const void *buf, size_t n)
{
	size_t done = 0;

	while (done < n) {
		ssize_t r = send(fd, (const char *)buf + done, n - done, MSG_NOSIGNAL);

		if (r < 0 && errno == EAGAIN) {
			struct pollfd p = { .fd = fd, .events = POLLOUT };

			poll(&p, 1, -1);
		} else if (r < 0 && errno != EINTR) {
			break;
		} else if (r > 0) {
			done += (size_t)r;
		}
	}
	return done;
}

static T_UNUSED size_t t_recv_all(int fd, void *buf, size_t n)
{
	size_t done = 0;

	while (done < n) {
		ssize_t r = recv(fd, (char *)buf + done, n - done, 0);

		if (r < 0 && errno == EAGAIN) {
			struct pollfd p = { .fd = fd, .events = POLLIN };

			poll(&p, 1, -1);
		} else if (r == 0 || (r < 0 && errno != EINTR)) {
			break;
		} else if (r > 0) {
			done += (size_t)r;
		}
	}
	return done;
}

/* Exactly n bytes, compared with what is expected. */
static T_UNUSED void t_expect(int fd, const char *text)
{
	char buf[256];
	size_t n = strlen(text);

	t_need(n < sizeof(buf));
	if (t_recv_all(fd, buf, n) != n || memcmp(buf, text, n))
		printf("expected \"%s\", got something else\n", text);
}

/* A few exchanges: either end had its chance to upgrade before the behaviour is looked at. */
#define T_WARM_ROUNDS 6
static T_UNUSED void t_warm_lead(int fd)
{
	for (int i = 0; i < T_WARM_ROUNDS; i++) {
		t_need(t_send_all(fd, "warm-ping", 9) == 9);
		t_expect(fd, "warm-pong");
	}
}

static T_UNUSED void t_warm_follow(int fd)
{
	for (int i = 0; i < T_WARM_ROUNDS; i++) {
		t_expect(fd, "warm-ping");
		t_need(t_send_all(fd, "warm-pong", 9) == 9);
	}
}

static T_UNUSED void t_warm(int a, int b)
{
	for (int i = 0; i < T_WARM_ROUNDS; i++) {
		t_need(t_send_all(a, "warm-ping", 9) == 9);
		t_expect(b, "warm-ping");
		t_need(t_send_all(b, "warm-pong", 9) == 9);
		t_expect(a, "warm-pong");
	}
}

static T_UNUSED void t_warm_pair(int *a, int *b)
{
	t_pair(a, b);
	t_warm(*a, *b);
}

/* Wait until n bytes can be read. */
static T_UNUSED void t_arrived(int fd, int n)
{
	int have = 0;

	while (!ioctl(fd, FIONREAD, &have) && have < n)
		usleep(200);
}

/* Wait until poll() shows one of the bits (asked for or not). */
static T_UNUSED void t_until(int fd, short bits)
{
	struct pollfd p = { .fd = fd, .events = bits };

	do {
		p.revents = 0;
		if (poll(&p, 1, 1000) > 0 && !(p.revents & bits))
			usleep(1000);
	} while (!(p.revents & bits));
}

/* ---- contents ---- */

static T_UNUSED uint32_t t_rand(uint64_t *state)
{
	uint64_t x = *state;

	x ^= x << 13;
	x ^= x >> 7;
	x ^= x << 17;
	*state = x;
	return (uint32_t)(x >> 16);
}

static T_UNUSED void t_fill(void *buf, size_t n, uint64_t *state)
{
	unsigned char *p = buf;

	for (size_t i = 0; i < n; i++)
		p[i] = (unsigned char)t_rand(state);
}

#define T_SUM_START 14695981039346656037ull
/* FNV-1a: depends on every byte and its place, not on how the bytes were split. */
static T_UNUSED uint64_t t_sum(uint64_t sum, const void *buf, size_t n)
{
	const unsigned char *p = buf;

	for (size_t i = 0; i < n; i++)
		sum = (sum ^ p[i]) * 1099511628211ull;
	return sum;
}

/* Read to the end; prints total, checksum and how it ended. */
static T_UNUSED void t_drain(const char *name, int fd)
{
	static char buf[1 << 16];
	uint64_t sum = T_SUM_START;
	size_t total = 0;
	ssize_t r;

	for (;;) {
		errno = T_UNTOUCHED;
		r = recv(fd, buf, sizeof(buf), 0);
		if (r > 0) {
			sum = t_sum(sum, buf, (size_t)r);
			total += (size_t)r;
		} else if (r == 0 || (errno != EINTR && errno != EAGAIN)) {
			break;
		} else if (errno == EAGAIN) {
			t_until(fd, POLLIN);
		}
	}
	printf("%s: %zu bytes, sum %016llx, end %zd %s\n", name, total, (unsigned long long)sum, r, r ? t_errname(errno) : "EOF");
}

/* ---- readiness ---- */

static T_UNUSED void t_ep_ctl(const char *name, int ep, int op, int fd, uint32_t events, uint64_t data)
{
	struct epoll_event ev = { .events = events, .data.u64 = data };

	L(name, epoll_ctl(ep, op, fd, &ev));
}

static T_UNUSED int t_ep_order(const void *x, const void *y)
{
	uint64_t a = ((const struct epoll_event *)x)->data.u64, b = ((const struct epoll_event *)y)->data.u64;

	return a < b ? -1 : a > b;
}

/* One epoll_wait, its events sorted by data. */
static T_UNUSED int t_ep_wait(const char *name, int ep, int timeout)
{
	struct epoll_event ev[32];
	int n = (int)L(name, epoll_wait(ep, ev, 32, timeout));

	if (n > 1)
		qsort(ev, (size_t)n, sizeof(ev[0]), t_ep_order);
	for (int i = 0; i < n; i++)
		printf("  %llx %s\n", (unsigned long long)ev[i].data.u64, t_mask(ev[i].events));
	return n;
}

static T_UNUSED int t_poll1(const char *name, int fd, short events, int timeout)
{
	struct pollfd p = { .fd = fd, .events = events };

	L(name, poll(&p, 1, timeout));

	printf("  %s\n", t_mask((uint16_t)p.revents));
	return p.revents;
}

/* ---- threads and signals ---- */

/* Wait (bounded) until the thread sleeps; outcomes must not depend on it, it only makes the interesting order likely. */
static T_UNUSED void t_asleep(_Atomic pid_t *tid)
{
	char path[64], text[256], *p;
	int still = 0;

	while (!atomic_load(tid))
		usleep(200);
	snprintf(path, sizeof(path), "/proc/self/task/%d/stat", (int)*tid);
	for (int i = 0; i < 500 && still < 20; i++) {
		FILE *f = fopen(path, "re");

		if (f && fgets(text, sizeof(text), f) && (p = strrchr(text, ')')) && p[2] == 'S')
			still++;
		else
			still = 0;
		if (f)
			fclose(f);
		usleep(1000);
	}
}

static T_UNUSED void t_set_handler(int sig, void (*fn)(int), int flags)
{
	struct sigaction sa = { .sa_handler = fn, .sa_flags = flags };

	t_need(!sigaction(sig, &sa, NULL));
}

/* Signals a thread again and again until told to stop, so that none can be missed by coming before the call. */
struct t_pester {
	pthread_t self, target;
	int sig;
	atomic_bool stop;
};

static T_UNUSED void *t_pester_main(void *arg)
{
	struct t_pester *p = arg;

	while (!atomic_load(&p->stop)) {
		usleep(20000);
		if (!atomic_load(&p->stop))
			pthread_kill(p->target, p->sig);
	}
	return NULL;
}

static T_UNUSED void t_pester_start(struct t_pester *p, int sig)
{
	p->target = pthread_self();
	p->sig = sig;
	atomic_store(&p->stop, false);
	t_need(!pthread_create(&p->self, NULL, t_pester_main, p));
}

static T_UNUSED void t_pester_stop(struct t_pester *p)
{
	atomic_store(&p->stop, true);
	pthread_join(p->self, NULL);
}

static T_UNUSED double t_now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

#endif
