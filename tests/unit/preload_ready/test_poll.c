/* SPDX-License-Identifier: Apache-2.0 */
#include "fake.h"
#include <signal.h>
#include <sys/time.h>

static int setup(void **state)
{
	(void)state;
	atomic_store(&cv_level, CV_LEVEL_ON);
	fake_settings.spin = 0;
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	fake_reset();
	return 0;
}

static struct fake *linked(uint32_t bits)
{
	struct fake *f = fake_new();

	fake_link(f);
	f->bits = bits;
	return f;
}

static struct pollfd pfd(const struct fake *f, short events)
{
	return (struct pollfd){.fd = f->s.fd, .events = events, .revents = -1};
}

static void answers(void **state)
{
	struct fake *f = linked(EPOLLIN | EPOLLRDHUP);
	struct fake *g = linked(EPOLLOUT | EPOLLHUP | EPOLLERR);
	struct pollfd p[3] = {pfd(f, POLLIN | POLLOUT), pfd(g, POLLIN), {.fd = -7, .events = POLLIN, .revents = 9}};

	(void)state;
	assert_int_equal(poll(p, 3, -1), 2);
	assert_int_equal(p[0].revents, POLLIN);
	assert_int_equal(p[1].revents, POLLHUP | POLLERR);
	assert_int_equal(p[2].revents, 0);
	p[0].events = POLLRDNORM | POLLRDHUP;
	p[1].events = POLLWRNORM;
	assert_int_equal(poll(p, 2, 0), 2);
	assert_int_equal(p[0].revents, POLLRDNORM | POLLRDHUP);
	assert_int_equal(p[1].revents, POLLWRNORM | POLLHUP | POLLERR);
	f->bits = 0;
	assert_int_equal(poll(p, 1, 0), 0);
	assert_int_equal(p[0].revents, 0);
	assert_int_equal(poll(p, 1, 2), 0);
}

/* Others in the set: what the kernel knows is in the same answer, closed descriptors too. */
static void mixed(void **state)
{
	struct fake *f = linked(EPOLLIN), *t = fake_new();
	int fd[2];
	struct pollfd p[4];

	(void)state;
	assert_int_equal(cv_real.pipe(fd), 0);
	p[0] = (struct pollfd){.fd = fd[1], .events = POLLOUT};
	p[1] = pfd(f, POLLIN);
	p[2] = (struct pollfd){.fd = 987, .events = POLLIN};
	p[3] = pfd(t, POLLIN | POLLOUT); /* on TCP */
	assert_int_equal(poll(p, 4, -1), 4);
	assert_int_equal(p[0].revents, POLLOUT);
	assert_int_equal(p[1].revents, POLLIN);
	assert_int_equal(p[2].revents, POLLNVAL);
	assert_int_equal(p[3].revents, POLLOUT);
	f->bits = 0;
	cv_sys2(SYS_shutdown, t->peer, SHUT_RDWR);
	assert_int_equal(poll(p, 4, -1), 3);
	assert_int_equal(p[1].revents, 0);
	assert_int_equal(p[3].revents & POLLHUP, POLLHUP);
	cv_sys1(SYS_close, fd[0]);
	cv_sys1(SYS_close, fd[1]);
}

/* Half on its way: each half is asked where it is. */
static void careful(void **state)
{
	struct fake *f = fake_new();
	struct pollfd p = pfd(f, POLLIN | POLLOUT);

	(void)state;
	f->s.mode = CV_CAREFUL;
	f->bits = 0;
	f->twin = EPOLLOUT;
	assert_int_equal(cv_real.write(f->peer, "x", 1), 1); /* a control record: not the program's */
	assert_int_equal(poll(&p, 1, -1), 1);
	assert_int_equal(p.revents, POLLOUT);
	p.events = POLLIN;
	assert_int_equal(poll(&p, 1, 1), 0);
	f->twin = EPOLLIN | EPOLLOUT;
	assert_int_equal(poll(&p, 1, -1), 1);
	assert_int_equal(p.revents, POLLIN);
	f->s.mode = CV_PLAIN;
}

static void brackets_plain(void **state)
{
	struct fake *f = fake_new();
	struct pollfd p = pfd(f, POLLIN);

	(void)state;
	assert_int_equal(poll(&p, 1, 0), 0);
	assert_int_equal(f->s.in_kernel, 0);
	assert_int_equal(cv_real.write(f->peer, "x", 1), 1);
	assert_int_equal(poll(&p, 1, -1), 1);
	assert_int_equal(f->s.in_kernel, 0);
}

struct sleeper {
	pthread_t t;
	struct fake *f;
	int n;
	short events;
	struct pollfd p;
	bool sel;
};

static bool sleeps(struct fake *f)
{
	bool waits;

	cv_lock(&f->s.wait_lock);
	waits = f->s.waiters != NULL;
	cv_unlock(&f->s.wait_lock);
	return waits || (f->want & CV_WANT_RX_FUTEX);
}

static void *sleep_in_poll(void *arg)
{
	struct sleeper *s = arg;
	fd_set r;

	s->p = pfd(s->f, s->events);
	if (s->sel) {
		struct timeval tv = {.tv_sec = 20};

		FD_ZERO(&r);
		FD_SET(s->f->s.fd, &r);
		s->n = select(s->f->s.fd + 1, &r, NULL, NULL, &tv);
		s->p.revents = FD_ISSET(s->f->s.fd, &r) ? POLLIN : 0;
	} else {
		s->n = poll(&s->p, 1, 20000);
	}
	return NULL;
}

static void start(struct sleeper *s, bool plain)
{
	assert_int_equal(pthread_create(&s->t, NULL, sleep_in_poll, s), 0);
	while (plain ? !s->f->s.in_kernel : !sleeps(s->f))
		cv_sys0(SYS_sched_yield);
}

static void woken(void **state)
{
	(void)state;
	for (int i = 0; i < 50; i++) {
		struct sleeper s = {.f = linked(0), .events = POLLIN, .sel = i & 1};

		start(&s, false);
		fake_ring(s.f, EPOLLIN, false); /* through the agent's bell */
		pthread_join(s.t, NULL);
		assert_int_equal(s.n, 1);
		assert_int_equal(s.p.revents, POLLIN);
		assert_int_equal(s.f->want, 0); /* rings for nobody */

		s.f->bits = 0;
		s.sel = false;
		s.events = POLLOUT;
		start(&s, false);
		fake_ring(s.f, EPOLLOUT, true);
		pthread_join(s.t, NULL);
		assert_int_equal(s.n, 1);
		assert_int_equal(s.p.revents, POLLOUT);
		fake_close(s.f);
	}
}

/* It sleeps while the socket is being switched; then it is LINKED and data come. */
static void switched_meanwhile(void **state)
{
	struct sleeper s = {.f = fake_new(), .events = POLLIN};

	(void)state;
	s.f->s.mode = CV_CAREFUL;
	s.f->twin = EPOLLIN | EPOLLOUT;
	start(&s, false);
	fake_link(s.f);
	while (!(s.f->want & CV_WANT_RX_FUTEX))
		cv_sys0(SYS_sched_yield);
	fake_ring(s.f, EPOLLIN, false);
	pthread_join(s.t, NULL);
	assert_int_equal(s.n, 1);
	assert_int_equal(s.p.revents, POLLIN);
}

/*
 * It sleeps when the socket is on TCP and nobody thinks of an upgrade yet: it must neither keep it from being upgraded for long, nor
 * sleep through it.
 */
static void plain_first(void **state)
{
	(void)state;
	for (int i = 0; i < 2; i++) {
		struct sleeper s = {.f = fake_new(), .events = POLLIN, .sel = i == 1};

		start(&s, true);
		while (s.f->s.in_kernel || !sleeps(s.f))
			cv_sys0(SYS_sched_yield);
		fake_link(s.f);
		fake_ring(s.f, EPOLLIN, false);
		while (pthread_tryjoin_np(s.t, NULL)) /* asked for by then */
			fake_ring(s.f, EPOLLIN, false);
		assert_int_equal(s.n, 1);
		assert_int_equal(s.p.revents, POLLIN);
	}
}

/* A socket of an epoll set that somebody polls as well: the ring goes to both, and to the set alone again afterwards. */
static void shared_with_epoll(void **state)
{
	struct sleeper s = {.f = linked(0), .events = POLLIN | POLLOUT}; /* more than one wish: it sleeps on the agent's bell */
	int ep = epoll_create1(0);
	struct epoll_event ev = {.events = EPOLLIN, .data.u64 = 3};
	unsigned bell;

	(void)state;
	assert_int_equal(epoll_ctl(ep, EPOLL_CTL_ADD, s.f->s.fd, &ev), 0);
	bell = s.f->bell;
	assert_int_not_equal(bell, 0);
	start(&s, false);
	while (s.f->bell != 0)
		cv_sys0(SYS_sched_yield);
	fake_ring(s.f, EPOLLIN, false);
	pthread_join(s.t, NULL);
	assert_int_equal(s.n, 1);
	assert_int_equal(s.f->bell, bell);
	assert_int_equal(epoll_wait(ep, &ev, 1, 0), 1);
	cv_epoll_close(cv_fd_epoll(ep), ep);
}

/* An epoll descriptor in the set: readable when something in it is. */
static void polls_a_set(void **state)
{
	struct fake *f = linked(0);
	int ep = epoll_create1(0);
	struct epoll_event ev = {.events = EPOLLIN, .data.u64 = 3};
	struct pollfd p = {.fd = ep, .events = POLLIN};

	(void)state;
	assert_int_equal(epoll_ctl(ep, EPOLL_CTL_ADD, f->s.fd, &ev), 0);
	poll(&p, 1, 0);
	assert_int_equal(epoll_wait(ep, &ev, 1, 0), 0);
	assert_int_equal(poll(&p, 1, 0), 0);
	fake_ring(f, EPOLLIN, false);
	assert_int_equal(poll(&p, 1, -1), 1);
	assert_int_equal(epoll_wait(ep, &ev, 1, 0), 1);
	assert_int_equal(poll(&p, 1, 0), 1);
	f->bits = 0;
	assert_int_equal(epoll_wait(ep, &ev, 1, 0), 0);
	assert_int_equal(poll(&p, 1, 0), 0);
	cv_epoll_close(cv_fd_epoll(ep), ep);
}

static void selects(void **state)
{
	struct fake *f = linked(EPOLLIN | EPOLLOUT), *g = linked(EPOLLIN | EPOLLHUP | EPOLLRDHUP), *h = linked(EPOLLHUP);
	struct timeval tv = {.tv_sec = 1};
	struct timespec ts = {.tv_nsec = 2000000};
	fd_set r, w, x;
	uint64_t t;
	int n = h->s.fd + 10;

	(void)state;
	FD_ZERO(&r);
	FD_ZERO(&w);
	FD_ZERO(&x);
	FD_SET(f->s.fd, &r);
	FD_SET(f->s.fd, &w);
	FD_SET(g->s.fd, &r);
	FD_SET(h->s.fd, &x);
	assert_int_equal(select(n, &r, &w, &x, &tv), 3);
	assert_true(FD_ISSET(f->s.fd, &r) && FD_ISSET(f->s.fd, &w) && FD_ISSET(g->s.fd, &r));
	assert_false(FD_ISSET(h->s.fd, &x)); /* HUP is no exception */
	assert_int_equal(tv.tv_sec, 0);
	assert_in_range(tv.tv_usec, 500000, 999999);
	/* out of time: the sets are empty, and so is the time left */
	FD_SET(h->s.fd, &x);
	FD_ZERO(&w);
	tv = (struct timeval){.tv_usec = 700};
	t = cv_now_ns();
	assert_int_equal(select(n, NULL, &w, &x, &tv), 0);
	assert_in_range(cv_now_ns() - t, 700000, UINT64_MAX);
	assert_false(FD_ISSET(h->s.fd, &x));
	assert_int_equal(tv.tv_sec, 0);
	assert_int_equal(tv.tv_usec, 0);
	FD_SET(h->s.fd, &x);
	assert_int_equal(pselect(n, NULL, NULL, &x, &ts, NULL), 0);
	assert_int_equal(ts.tv_nsec, 2000000);
	/* EBADF leaves everything as it was */
	FD_SET(f->s.fd, &r);
	FD_SET(1000, &r);
	errno = 0;
	assert_int_equal(select(1001, &r, NULL, NULL, NULL), -1);
	assert_int_equal(errno, EBADF);
	assert_true(FD_ISSET(1000, &r));
}

/* The kernel says HUP, which nobody wants to hear: no busy loop, no false answer. */
static void muted_hangup(void **state)
{
	struct fake *f = linked(0);
	struct timeval tv = {.tv_usec = 30000};
	fd_set x;
	int fd[2];
	struct timespec c0, c1;
	uint64_t t = cv_now_ns();

	(void)state;
	assert_int_equal(cv_real.pipe(fd), 0);
	cv_sys1(SYS_close, fd[1]);
	FD_ZERO(&x);
	FD_SET(fd[0], &x);
	FD_SET(f->s.fd, &x);
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &c0);
	assert_int_equal(select(64, NULL, NULL, &x, &tv), 0);
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &c1);
	assert_in_range(cv_now_ns() - t, 30000000, UINT64_MAX);
	assert_in_range((c1.tv_sec - c0.tv_sec) * 1000000000 + c1.tv_nsec - c0.tv_nsec, 0, 10000000);
	cv_sys1(SYS_close, fd[0]);
}

static void on_alarm(int sig)
{
	(void)sig;
	cv_signals_here++;
}

static void signals(void **state)
{
	struct fake *f = linked(0);
	struct itimerval it = {.it_value.tv_usec = 2000};
	struct sigaction sa = {.sa_handler = on_alarm, .sa_flags = SA_RESTART};
	struct timespec zero = {0};
	struct pollfd p = pfd(f, POLLIN);
	sigset_t alarm, empty, old;

	(void)state;
	cv_real.sigaction(SIGALRM, &sa, NULL);
	for (int pass = 0; pass < 2; pass++) {
		fake_settings.spin = pass ? 3000000000u : 0;
		setitimer(ITIMER_REAL, &it, NULL);
		assert_int_equal(poll(&p, 1, 20000), -1);
		assert_int_equal(errno, EINTR);
	}
	sigemptyset(&empty);
	sigemptyset(&alarm);
	sigaddset(&alarm, SIGALRM);
	pthread_sigmask(SIG_BLOCK, &alarm, &old);
	pthread_kill(pthread_self(), SIGALRM);
	fake_settings.spin = 0;
	assert_int_equal(poll(&p, 1, 2), 0);
	f->bits = EPOLLIN;
	assert_int_equal(ppoll(&p, 1, &zero, &empty), 1); /* something is ready: the signal stays pending, as in the kernel */
	f->bits = 0;
	assert_int_equal(ppoll(&p, 1, &zero, &empty), -1);
	assert_int_equal(errno, EINTR);
	pthread_kill(pthread_self(), SIGALRM);
	assert_int_equal(ppoll(&p, 1, NULL, &empty), -1);
	assert_int_equal(errno, EINTR);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
}

static void large(void **state)
{
	static struct pollfd p[300];
	struct fake *f = linked(EPOLLIN);

	(void)state;
	for (int i = 0; i < 300; i++)
		p[i] = (struct pollfd){.fd = -1};
	p[299] = pfd(f, POLLIN);
	assert_int_equal(poll(p, 300, -1), 1);
	assert_int_equal(p[299].revents, POLLIN);
	f->bits = 0;
	assert_int_equal(poll(p, 300, 1), 0);
}

static void *sleep_forever(void *arg)
{
	struct sleeper *s = arg;
	struct pollfd p = pfd(s->f, s->events);

	poll(&p, 1, -1);
	return NULL;
}

/* poll is a cancellation point, however it sleeps: the waiters on the dead stack must be gone. */
static void cancelled(void **state)
{
	struct sleeper s = {.f = linked(0)};
	void *ret;

	(void)state;
#ifdef __SANITIZE_THREAD__
	/* A thread that is cancelled inside one of libtsan's interceptors leaves it in the state "ignore synchronisation": locks then count for nothing. */
	skip();
#endif
	for (int i = 0; i < 2; i++) {
		s.events = i ? POLLIN | POLLOUT : POLLIN;
		s.f->want &= ~(uint32_t)CV_WANT_RX_FUTEX;
		assert_int_equal(pthread_create(&s.t, NULL, sleep_forever, &s), 0);
		while (!sleeps(s.f))
			cv_sys0(SYS_sched_yield);
		pthread_cancel(s.t);
		pthread_join(s.t, &ret);
		assert_ptr_equal(ret, PTHREAD_CANCELED);
		assert_null(s.f->s.waiters);
	}
}

int main(void)
{
#define CASE(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		CASE(answers), CASE(mixed), CASE(careful), CASE(brackets_plain), CASE(woken), CASE(switched_meanwhile), CASE(plain_first),
		CASE(shared_with_epoll), CASE(polls_a_set), CASE(selects), CASE(muted_hangup), CASE(signals), CASE(large), CASE(cancelled),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
