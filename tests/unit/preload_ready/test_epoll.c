/* SPDX-License-Identifier: Apache-2.0 */
#include "fake.h"
#include <fcntl.h>
#include <signal.h>
#include <sys/time.h>

static struct epoll_event ev[64];

static int setup(void **state)
{
	atomic_store(&cv_level, CV_LEVEL_ON);
	*state = (void *)(intptr_t)epoll_create1(EPOLL_CLOEXEC);
	return 0;
}

static int teardown(void **state)
{
	int ep = (int)(intptr_t)*state;

	fake_reset();
	if (cv_fd_epoll(ep))
		cv_epoll_close(cv_fd_epoll(ep), ep);
	assert_int_equal(fake_bells_open, 0);
	return 0;
}

#define EP ((int)(intptr_t)*state)

static struct fake *linked(void)
{
	struct fake *f = fake_new();

	fake_link(f);
	return f;
}

static void level_triggered(void **state)
{
	struct fake *f = linked();

	assert_int_equal(ctl(EP, EPOLL_CTL_ADD, f, EPOLLIN), 0);
	assert_int_equal(wait0(EP, ev, 8), 0);
	fake_ring(f, EPOLLIN, false);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(wait0(EP, ev, 8), 1);
		assert_int_equal(ev[0].events, EPOLLIN);
		assert_ptr_equal(ev[0].data.ptr, f);
	}
	f->bits = 0;
	assert_int_equal(wait0(EP, ev, 8), 0);
	fake_ring(f, EPOLLIN | EPOLLRDHUP | EPOLLHUP, false);
	assert_int_equal(wait0(EP, ev, 8), 1);
	assert_int_equal(ev[0].events, EPOLLIN | EPOLLHUP);
	/* nothing asked for: errors still show */
	assert_int_equal(ctl(EP, EPOLL_CTL_MOD, f, 0), 0);
	assert_int_equal(wait0(EP, ev, 8), 1);
	assert_int_equal(ev[0].events, EPOLLHUP);
	assert_int_equal(ctl(EP, EPOLL_CTL_MOD, f, EPOLLRDHUP | EPOLLRDNORM), 0);
	assert_int_equal(wait0(EP, ev, 8), 1);
	assert_int_equal(ev[0].events, EPOLLRDHUP | EPOLLRDNORM | EPOLLHUP);
}

static void edge_triggered(void **state)
{
	struct fake *f = linked();

	fake_ring(f, EPOLLIN | EPOLLOUT, false);
	assert_int_equal(ctl(EP, EPOLL_CTL_ADD, f, EPOLLIN | EPOLLOUT | EPOLLET), 0);
	assert_int_equal(wait0(EP, ev, 8), 1);
	assert_int_equal(ev[0].events, EPOLLIN | EPOLLOUT);
	assert_int_equal(wait0(EP, ev, 8), 0);
	fake_ring(f, EPOLLIN | EPOLLOUT, false); /* more data: a new edge, all bits */
	assert_int_equal(wait0(EP, ev, 8), 1);
	assert_int_equal(ev[0].events, EPOLLIN | EPOLLOUT);
	assert_int_equal(wait0(EP, ev, 8), 0);
	assert_int_equal(ctl(EP, EPOLL_CTL_MOD, f, EPOLLIN | EPOLLOUT | EPOLLET), 0); /* re-arms */
	assert_int_equal(wait0(EP, ev, 8), 1);
	/* the program fills the ring, then the peer makes room */
	f->bits = 0;
	assert_int_equal(wait0(EP, ev, 8), 0);
	fake_ring(f, EPOLLOUT, true);
	assert_int_equal(wait0(EP, ev, 8), 1);
	assert_int_equal(ev[0].events, EPOLLOUT);
	assert_int_equal(wait0(EP, ev, 8), 0);
}

static void one_shot(void **state)
{
	struct fake *f = linked();

	assert_int_equal(ctl(EP, EPOLL_CTL_ADD, f, EPOLLIN | EPOLLONESHOT), 0);
	fake_ring(f, EPOLLIN, false);
	assert_int_equal(wait0(EP, ev, 8), 1);
	fake_ring(f, EPOLLIN | EPOLLHUP, false);
	assert_int_equal(wait0(EP, ev, 8), 0); /* not even HUP */
	assert_int_equal(ctl(EP, EPOLL_CTL_MOD, f, EPOLLIN | EPOLLONESHOT), 0);
	assert_int_equal(wait0(EP, ev, 8), 1);
	assert_int_equal(ev[0].events, EPOLLIN | EPOLLHUP);
	assert_int_equal(wait0(EP, ev, 8), 0);
}

#define fails(call, err) \
	do { \
		errno = 0; \
		assert_int_equal(call, -1); \
		assert_int_equal(errno, err); \
	} while (0)

static void errors(void **state)
{
	struct fake *f = linked();
	volatile int most = INT32_MAX; /* the compiler knows better otherwise */

	fails(ctl(EP, EPOLL_CTL_MOD, f, EPOLLIN), ENOENT);
	fails(ctl(EP, EPOLL_CTL_DEL, f, EPOLLIN), ENOENT);
	fails(ctl(EP, EPOLL_CTL_ADD, f, EPOLLIN | EPOLLRDHUP | EPOLLEXCLUSIVE), EINVAL);
	assert_int_equal(ctl(EP, EPOLL_CTL_ADD, f, EPOLLIN), 0);
	fails(ctl(EP, EPOLL_CTL_ADD, f, EPOLLIN), EEXIST);
	fails(ctl(EP, EPOLL_CTL_ADD, f, EPOLLONESHOT | EPOLLEXCLUSIVE), EINVAL);
	fails(ctl(EP, EPOLL_CTL_MOD, f, EPOLLIN | EPOLLEXCLUSIVE), EINVAL);
	fails(epoll_ctl(EP, EPOLL_CTL_MOD, f->s.fd, NULL), EFAULT);
	fails(epoll_ctl(EP, 77, f->s.fd, ev), EINVAL);
	fails(epoll_ctl(f->peer, EPOLL_CTL_ADD, f->s.fd, ev), EINVAL);
	fails(epoll_ctl(999, EPOLL_CTL_ADD, f->s.fd, ev), EBADF);
	fails(epoll_ctl(EP, EPOLL_CTL_ADD, 999, ev), EBADF);
	assert_int_equal(epoll_ctl(EP, EPOLL_CTL_DEL, f->s.fd, NULL), 0);
	fails(ctl(EP, EPOLL_CTL_DEL, f, 0), ENOENT);
	assert_int_equal(ctl(EP, EPOLL_CTL_ADD, f, EPOLLIN | EPOLLEXCLUSIVE), 0);
	fails(ctl(EP, EPOLL_CTL_MOD, f, EPOLLIN), EINVAL);
	fails(epoll_wait(EP, ev, 0, 0), EINVAL);
	fails(epoll_wait(EP, ev, -most, 0), EINVAL);
	fails(epoll_wait(EP, ev, most, 0), EINVAL);
	fails(epoll_wait(999, ev, 1, 0), EBADF);
	fails(epoll_wait(f->peer, ev, 1, 0), EINVAL);
}

/* redis-benchmark's way: the same descriptor goes out and in for every request. */
static void delete_and_add(void **state)
{
	struct fake *f = linked();

	for (int i = 0; i < 5; i++) {
		assert_int_equal(ctl(EP, EPOLL_CTL_ADD, f, EPOLLOUT), 0);
		fake_ring(f, EPOLLOUT, true); /* was asked for, as there was no space */
		assert_int_equal(wait0(EP, ev, 8), 1);
		assert_int_equal(ev[0].events, EPOLLOUT);
		assert_int_equal(ctl(EP, EPOLL_CTL_DEL, f, 0), 0);
		fake_ring(f, EPOLLOUT | EPOLLIN, false);
		assert_int_equal(wait0(EP, ev, 8), 0);
		assert_int_equal(ctl(EP, EPOLL_CTL_ADD, f, EPOLLIN), 0);
		assert_int_equal(wait0(EP, ev, 8), 1);
		assert_int_equal(ev[0].events, EPOLLIN);
		assert_int_equal(ctl(EP, EPOLL_CTL_DEL, f, 0), 0);
	}
	/* a peer that rings for nobody is told to stop, and to go on when somebody comes again */
	for (int i = 0; i < 20; i++) {
		fake_ring(f, EPOLLIN, false);
		assert_int_equal(wait0(EP, ev, 8), 0);
	}
	assert_int_equal(f->want & CV_WANT_RX_BELL, 0);
	assert_int_equal(ctl(EP, EPOLL_CTL_ADD, f, EPOLLIN | EPOLLET), 0);
	assert_int_equal(wait0(EP, ev, 8), 1);
	fake_ring(f, EPOLLIN, false);
	assert_int_equal(wait0(EP, ev, 8), 1);
}

static void round_robin(void **state)
{
	struct fake *f[3];
	int seen[3] = {0};

	for (int i = 0; i < 3; i++) {
		f[i] = linked();
		assert_int_equal(ctl(EP, EPOLL_CTL_ADD, f[i], EPOLLIN), 0);
		fake_ring(f[i], EPOLLIN, false);
	}
	for (int i = 0; i < 9; i++) {
		assert_int_equal(epoll_wait(EP, ev, 1, -1), 1);
		for (int k = 0; k < 3; k++)
			seen[k] += ev[0].data.ptr == f[k];
	}
	for (int k = 0; k < 3; k++)
		assert_int_equal(seen[k], 3);
}

/* Both sides always ready, little room: both get through. */
static void fair_with_kernel(void **state)
{
	struct fake *f[3];
	int pipes[2][2], kernel = 0, ours = 0;

	for (int i = 0; i < 3; i++) {
		f[i] = linked();
		assert_int_equal(ctl(EP, EPOLL_CTL_ADD, f[i], EPOLLIN), 0);
		fake_ring(f[i], EPOLLIN, false);
	}
	for (int i = 0; i < 2; i++) {
		struct epoll_event e = {.events = EPOLLIN, .data.u64 = 1};

		assert_int_equal(cv_real.pipe(pipes[i]), 0);
		assert_int_equal(cv_real.write(pipes[i][1], "x", 1), 1);
		assert_int_equal(epoll_ctl(EP, EPOLL_CTL_ADD, pipes[i][0], &e), 0);
	}
	for (int max = 1; max <= 2; max++) {
		kernel = ours = 0;
		for (int i = 0; i < 200; i++) {
			int n = epoll_wait(EP, ev, max, 100);

			assert_in_range(n, 1, max);
			for (int k = 0; k < n; k++)
				*(ev[k].data.u64 == 1 ? &kernel : &ours) += 1;
		}
		/* as fast as it goes: the clock alone would not see to it */
		assert_true(kernel >= 60);
		assert_true(ours >= 60);
	}
	/* with room for all, all come within one kernel interval, none twice */
	for (int i = 0; i < 50; i++) {
		uint64_t until = cv_ticks() + cv_ep_us(40);
		int n;

		while (cv_ticks() < until)
			;
		n = epoll_wait(EP, ev, 16, 100);
		assert_int_equal(n, 5);
	}
	for (int i = 0; i < 4; i++)
		cv_sys1(SYS_close, pipes[i / 2][i % 2]);
}

static void moves_to_link_and_back(void **state)
{
	struct fake *f = fake_new();
	char c;

	assert_int_equal(ctl(EP, EPOLL_CTL_ADD, f, EPOLLIN), 0);
	assert_int_equal(wait0(EP, ev, 8), 0);
	assert_int_equal(cv_real.write(f->peer, "x", 1), 1);
	assert_int_equal(wait0(EP, ev, 8), 1);
	assert_ptr_equal(ev[0].data.ptr, f);
	fake_link(f);
	assert_int_equal(wait0(EP, ev, 8), 0); /* the twin's bytes are nobody's business now */
	fake_ring(f, EPOLLIN, false);
	assert_int_equal(wait0(EP, ev, 8), 1);
	assert_int_equal(ctl(EP, EPOLL_CTL_MOD, f, EPOLLIN | EPOLLOUT), 0);
	fake_unlink(f);
	assert_int_equal(fake_bells_open, 0);
	assert_int_equal(wait0(EP, ev, 8), 1);
	assert_int_equal(ev[0].events, EPOLLIN | EPOLLOUT);
	assert_ptr_equal(ev[0].data.ptr, f);
	assert_int_equal(cv_real.read(f->s.fd, &c, 1), 1);
	assert_int_equal(ctl(EP, EPOLL_CTL_MOD, f, EPOLLIN), 0);
	assert_int_equal(wait0(EP, ev, 8), 0);
	fake_link(f);
	assert_int_equal(ctl(EP, EPOLL_CTL_DEL, f, 0), 0);
	fake_unlink(f);
	fails(ctl(EP, EPOLL_CTL_MOD, f, EPOLLIN), ENOENT);
	assert_int_equal(ctl(EP, EPOLL_CTL_ADD, f, EPOLLOUT), 0);
	assert_int_equal(wait0(EP, ev, 8), 1);
}

static void one_shot_moves(void **state)
{
	struct fake *f = fake_new(), *g = fake_new();

	/* fired in the kernel: stays fired on the link */
	assert_int_equal(ctl(EP, EPOLL_CTL_ADD, f, EPOLLIN | EPOLLONESHOT), 0);
	assert_int_equal(ctl(EP, EPOLL_CTL_ADD, g, EPOLLIN | EPOLLONESHOT), 0);
	assert_int_equal(cv_real.write(f->peer, "x", 1), 1);
	assert_int_equal(wait0(EP, ev, 8), 1);
	fake_link(f);
	fake_link(g);
	fake_ring(f, EPOLLIN, false);
	fake_ring(g, EPOLLIN, false);
	assert_int_equal(wait0(EP, ev, 8), 1);
	assert_ptr_equal(ev[0].data.ptr, g);
	/* fired on the link: stays fired in the kernel, HUP and all, until it is armed again */
	assert_int_equal(cv_real.write(g->peer, "x", 1), 1);
	cv_sys2(SYS_shutdown, g->peer, SHUT_RDWR);
	fake_unlink(g);
	assert_int_equal(wait0(EP, ev, 8), 0);
	fails(ctl(EP, EPOLL_CTL_ADD, g, EPOLLIN), EEXIST);
	assert_int_equal(ctl(EP, EPOLL_CTL_MOD, g, EPOLLIN | EPOLLONESHOT), 0);
	assert_int_equal(wait0(EP, ev, 8), 1);
	assert_ptr_equal(ev[0].data.ptr, g);
	assert_int_equal(wait0(EP, ev, 8), 0);
	assert_int_equal(ctl(EP, EPOLL_CTL_DEL, g, 0), 0);
	fails(ctl(EP, EPOLL_CTL_DEL, g, 0), ENOENT);
}

/* What was read ahead while switching is readable though the twin is not. */
static void careful_spill(void **state)
{
	struct fake *f = fake_new();

	assert_int_equal(ctl(EP, EPOLL_CTL_ADD, f, EPOLLIN | EPOLLOUT), 0);
	assert_int_equal(wait0(EP, ev, 8), 1);
	assert_int_equal(ev[0].events, EPOLLOUT);
	f->s.mode = CV_CAREFUL;
	f->bits = EPOLLIN;
	f->twin = EPOLLOUT;
	cv_epoll_kick(&f->s);
	for (int i = 0; i < 2; i++) { /* the kernel's part and ours are one event */
		assert_int_equal(wait0(EP, ev, 8), 1);
		assert_int_equal(ev[0].events, EPOLLIN | EPOLLOUT);
	}
	f->bits = 0;
	assert_int_equal(wait0(EP, ev, 8), 1);
	assert_int_equal(ev[0].events, EPOLLOUT);
	f->s.mode = CV_PLAIN;
}

struct sleeper {
	pthread_t t;
	int ep, n;
	struct epoll_event ev[8];
};

static void *sleep_in_wait(void *arg)
{
	struct sleeper *s = arg;

	s->n = epoll_wait(s->ep, s->ev, 8, 10000);
	return NULL;
}

static void start(struct sleeper *s, int ep)
{
	struct cv_epoll *e = cv_fd_epoll(ep);
	uint32_t before = e->sleepers;

	s->ep = ep;
	assert_int_equal(pthread_create(&s->t, NULL, sleep_in_wait, s), 0);
	while (e->sleepers == before)
		cv_sys0(SYS_sched_yield);
}

/* It went to sleep when the socket was on TCP. */
static void wakes_who_slept_before(void **state)
{
	struct sleeper s;
	struct fake *f = fake_new();

	assert_int_equal(ctl(EP, EPOLL_CTL_ADD, f, EPOLLIN), 0);
	start(&s, EP);
	fake_link(f);
	fake_ring(f, EPOLLIN, false);
	pthread_join(s.t, NULL);
	assert_int_equal(s.n, 1);
	assert_ptr_equal(s.ev[0].data.ptr, f);
}

static void wakes_sleepers(void **state)
{
	struct sleeper s[3];
	struct fake *f[3];

	for (int i = 0; i < 3; i++) {
		f[i] = linked();
		assert_int_equal(ctl(EP, EPOLL_CTL_ADD, f[i], EPOLLIN | EPOLLET), 0);
	}
	assert_int_equal(wait0(EP, ev, 8), 0);
	for (int round = 0; round < 200; round++) {
		int got = 0;

		/* three threads, three edges one after another: each must come through, even while others are awake or going to sleep */
		for (int i = 0; i < 3; i++) {
			f[i]->bits = 0;
			start(&s[i], EP);
		}
		for (int i = 0; i < 3; i++)
			fake_ring(f[i], EPOLLIN, false);
		for (int i = 0; i < 3; i++) {
			/* a thread that found nothing left is let go by further edges */
			while (pthread_tryjoin_np(s[i].t, NULL)) {
				fake_ring(f[0], EPOLLIN, false);
				cv_sys0(SYS_sched_yield);
			}
			assert_in_range(s[i].n, 1, 3);
			got += s[i].n;
		}
		while (wait0(EP, ev, 8) > 0)
			;
	}
	/* a socket that is registered while somebody sleeps */
	struct fake *g = linked();

	g->bits = EPOLLIN;
	start(&s[0], EP);
	assert_int_equal(ctl(EP, EPOLL_CTL_ADD, g, EPOLLIN), 0);
	pthread_join(s[0].t, NULL);
	assert_int_equal(s[0].n, 1);
	assert_ptr_equal(s[0].ev[0].data.ptr, g);
}

static void two_sets(void **state)
{
	struct fake *f = linked();
	int other = epoll_create1(0);

	assert_int_equal(ctl(EP, EPOLL_CTL_ADD, f, EPOLLIN), 0);
	assert_int_not_equal(f->bell, 0);
	assert_int_equal(ctl(other, EPOLL_CTL_ADD, f, EPOLLIN | EPOLLET), 0);
	assert_int_equal(f->bell, 0);
	fake_ring(f, EPOLLIN, false);
	assert_int_equal(wait0(EP, ev, 8), 1);
	assert_int_equal(wait0(other, ev, 8), 1);
	assert_int_equal(wait0(other, ev, 8), 0);
	/* one leaves: the other's bell again */
	assert_int_equal(ctl(EP, EPOLL_CTL_DEL, f, 0), 0);
	assert_int_equal(ctl(other, EPOLL_CTL_MOD, f, EPOLLIN), 0);
	assert_int_not_equal(f->bell, 0);
	fake_ring(f, EPOLLIN, false);
	assert_int_equal(wait0(other, ev, 8), 1);
	assert_int_equal(cv_epoll_close(cv_fd_epoll(other), other), 0);
	assert_int_equal(ctl(EP, EPOLL_CTL_ADD, f, EPOLLIN), 0);
	assert_int_equal(wait0(EP, ev, 8), 1);
}

/* dup: the registration lives as long as any descriptor, and answers to its own number only. */
static void dups(void **state)
{
	struct fake *f = fake_new();
	int old = f->s.fd, fd = (int)cv_sys1(SYS_dup, old);

	cv_fd_set(fd, (uintptr_t)&f->s);
	f->s.refs = 2;
	assert_int_equal(ctl(EP, EPOLL_CTL_ADD, f, EPOLLIN), 0);
	/* the first number goes */
	cv_fd_set(old, 0);
	f->s.refs = 1;
	f->s.fd = fd;
	cv_epoll_sock_closed(&f->s);
	cv_sys1(SYS_close, old);
	fails(ctl(EP, EPOLL_CTL_DEL, f, 0), ENOENT);
	assert_int_equal(cv_real.write(f->peer, "x", 1), 1);
	assert_int_equal(wait0(EP, ev, 8), 1);
	fake_link(f);
	assert_int_equal(wait0(EP, ev, 8), 0);
	fake_ring(f, EPOLLIN, false);
	assert_int_equal(wait0(EP, ev, 8), 1);
	fake_close(f);
	assert_int_equal(wait0(EP, ev, 8), 0);
}

/* Registered before connect(), when there was nothing to record it with. */
static void registered_before_connect(void **state)
{
	struct fake *f = fake_new(), *g = fake_new();

	cv_fd_set(f->s.fd, CV_FD_OTHER | CV_FD_OTHER_TCP);
	cv_fd_set(g->s.fd, CV_FD_OTHER | CV_FD_OTHER_TCP);
	assert_int_equal(ctl(EP, EPOLL_CTL_ADD, f, EPOLLIN), 0);
	assert_int_equal(ctl(EP, EPOLL_CTL_ADD, g, EPOLLOUT), 0);
	cv_fd_set(f->s.fd, (uintptr_t)&f->s);
	cv_fd_set(g->s.fd, (uintptr_t)&g->s);
	fake_link(f);
	fake_ring(f, EPOLLIN, false);
	assert_int_equal(wait0(EP, ev, 8), 2);
	assert_int_equal(ctl(EP, EPOLL_CTL_MOD, g, EPOLLIN), 0);
	fake_link(g);
	fake_ring(g, EPOLLIN | EPOLLOUT, false);
	assert_int_equal(wait0(EP, ev, 8), 2);
	assert_int_equal(ev[0].events | ev[1].events, EPOLLIN);
}

static void tag_collision(void **state)
{
	struct fake *f = linked(), *g = fake_new();
	struct epoll_event e = {.events = EPOLLOUT};
	int pipefd[2];

	assert_int_equal(ctl(EP, EPOLL_CTL_ADD, f, EPOLLOUT), 0);
	assert_int_not_equal(cv_ep_tag_base, 0);
	assert_true((cv_ep_tag_base & 0xffffffffu) >= 32u << 20);
	assert_int_equal(cv_real.pipe(pipefd), 0);
	e.data.u64 = cv_ep_tag_base + 3;
	assert_int_equal(epoll_ctl(EP, EPOLL_CTL_ADD, pipefd[1], &e), 0);
	assert_true(f->excluded);
	assert_int_equal(f->s.mode, CV_PLAIN);
	assert_int_equal(wait0(EP, ev, 8), 2); /* the twin is writable, the pipe too */
	assert_int_equal(ctl(EP, EPOLL_CTL_ADD, g, EPOLLOUT), 0);
	assert_true(g->excluded);
	assert_int_equal(wait0(EP, ev, 8), 3);
	cv_sys1(SYS_close, pipefd[0]);
	cv_sys1(SYS_close, pipefd[1]);
}

/* The set inside another: readable as long as something in it is. */
static void nested(void **state)
{
	struct fake *f = linked(), *g = linked();
	struct epoll_event e = {.events = EPOLLIN, .data.u64 = 5};
	int outer = epoll_create1(0);

	assert_int_equal(ctl(EP, EPOLL_CTL_ADD, f, EPOLLIN), 0);
	assert_int_equal(ctl(EP, EPOLL_CTL_ADD, g, EPOLLIN), 0);
	assert_int_equal(wait0(EP, ev, 8), 0);
	assert_int_equal(epoll_ctl(outer, EPOLL_CTL_ADD, EP, &e), 0);
	wait0(outer, ev, 8); /* may be told once too often, when the bells came in */
	wait0(EP, ev, 8);
	assert_int_equal(wait0(outer, ev, 8), 0);
	for (int i = 0; i < 3; i++) {
		fake_ring(f, EPOLLIN, false);
		fake_ring(g, EPOLLIN, false);
		assert_int_equal(wait0(outer, ev, 8), 1);
		assert_int_equal(wait0(EP, ev, 1), 1);
		assert_int_equal(wait0(outer, ev, 8), 1); /* one is left */
		assert_int_equal(wait0(EP, ev, 8), 2);
		assert_int_equal(wait0(outer, ev, 8), 1); /* level-triggered */
		f->bits = g->bits = 0;
		assert_int_equal(wait0(EP, ev, 8), 0);
		assert_int_equal(wait0(outer, ev, 8), 0);
	}
	assert_int_equal(ctl(EP, EPOLL_CTL_MOD, f, EPOLLIN | EPOLLOUT), 0);
	assert_int_equal(wait0(outer, ev, 8), 0);
	fake_ring(f, EPOLLOUT, true);
	assert_int_equal(wait0(outer, ev, 8), 1);
	assert_int_equal(wait0(EP, ev, 8), 1);
	cv_epoll_close(cv_fd_epoll(outer), outer);
}

static void on_alarm(int sig)
{
	(void)sig;
	cv_signals_here++;
}

static uint64_t timed(int ep, int64_t us, int expect)
{
	struct timespec ts = {.tv_nsec = us * 1000};
	uint64_t t = cv_now_ns();
	int n = epoll_pwait2(ep, ev, 8, &ts, NULL);

	assert_int_equal(n, expect);
	return cv_now_ns() - t;
}

static void timeouts_and_signals(void **state)
{
	struct fake *f = linked();
	struct itimerval it = {.it_value.tv_usec = 2000};
	struct sigaction sa = {.sa_handler = on_alarm, .sa_flags = SA_RESTART};
	uint64_t t;

	assert_int_equal(ctl(EP, EPOLL_CTL_ADD, f, EPOLLIN), 0);
	for (int pass = 0; pass < 2; pass++) {
		fake_settings.spin = pass ? 30000000 : 0; /* asleep, then spinning all the time */
		assert_in_range(timed(EP, 300, 0), 300000, UINT64_MAX);
		assert_in_range(timed(EP, 7000, 0), 7000000, UINT64_MAX);
		t = cv_now_ns();
		assert_int_equal(epoll_wait(EP, ev, 8, 3), 0);
		assert_in_range(cv_now_ns() - t, 3000000, UINT64_MAX);
		cv_real.sigaction(SIGALRM, &sa, NULL);
		setitimer(ITIMER_REAL, &it, NULL);
		fails(epoll_wait(EP, ev, 8, 20000), EINTR);
		fake_ring(f, EPOLLIN, false);
		assert_in_range(timed(EP, 500000, 1), 0, 400000000u);
		f->bits = 0;
	}
}

/* A signal that waits for the mask of the call; and one that the mask holds back while the thread would let it in. */
static void masks(void **state)
{
	struct fake *f = linked();
	struct sigaction sa = {.sa_handler = on_alarm};
	sigset_t all, empty, old;

	fake_settings.spin = 3000000;
	assert_int_equal(ctl(EP, EPOLL_CTL_ADD, f, EPOLLIN), 0);
	sigemptyset(&empty);
	sigemptyset(&all);
	sigaddset(&all, SIGALRM);
	cv_real.sigaction(SIGALRM, &sa, NULL);
	pthread_sigmask(SIG_BLOCK, &all, &old);
	pthread_kill(pthread_self(), SIGALRM);
	assert_int_equal(epoll_pwait(EP, ev, 8, 5, NULL), 0);
	fails(epoll_pwait(EP, ev, 8, 5000, &empty), EINTR);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
}

static void idle_bells_go_cold(void **state)
{
	struct fake *f = linked();
	int pipefd[2];
	struct epoll_event e = {.events = EPOLLIN, .data.u64 = 1};
	struct cv_epoll *s = cv_fd_epoll(EP);
	uint64_t until;

	assert_int_equal(ctl(EP, EPOLL_CTL_ADD, f, EPOLLIN), 0);
	assert_int_equal(wait0(EP, ev, 8), 0);
	assert_int_equal(s->nhot, 1);
	until = cv_ticks() + cv_ep_us(CV_EP_COLD_US + 500);
	while (cv_ticks() < until)
		;
	assert_int_equal(wait0(EP, ev, 8), 0);
	assert_int_equal(s->nhot, 0);
	fake_wakes = 0;
	fake_ring(f, EPOLLIN, false);
	assert_int_equal(fake_wakes, 1);
	assert_int_equal(wait0(EP, ev, 8) + wait0(EP, ev, 8) >= 1, 1);
	assert_int_equal(s->nhot, 1);
	fake_ring(f, EPOLLIN, false);
	assert_int_equal(fake_wakes, 1); /* polled now: no further system call of the peer's */
	/* a cold bell is heard between kernel events */
	assert_int_equal(cv_real.pipe(pipefd), 0);
	assert_int_equal(epoll_ctl(EP, EPOLL_CTL_ADD, pipefd[0], &e), 0);
	cv_sys1(SYS_close, pipefd[0]);
	cv_sys1(SYS_close, pipefd[1]);
}

static void spin_budget(void **state)
{
	struct cv_settings set = {.spin = CV_SPIN_ADAPTIVE, .spin_max = 50000};
	uint64_t us = cv_ticks_per_us();
	uint32_t b = 0, before;

	(void)state;
	assert_int_equal(cv_spin_budget(b, &set), 50 * us);
	for (int i = 0; i < 100; i++)
		cv_spin_feedback(&b, &set, false, 50 * us);
	assert_true(b < us);
	for (int i = 0; i < 1000; i++) /* only now and then a try */
		before = cv_spin_budget(b, &set), assert_true(before == 0 || before == 25 * us);
	cv_spin_feedback(&b, &set, true, 10 * us);
	assert_in_range(cv_spin_budget(b, &set), 20 * us, 50 * us);
	before = b;
	cv_spin_feedback(&b, &set, true, 900 * us); /* came, but far too late */
	assert_true(b < before);
	set.spin = 7000;
	assert_int_equal(cv_spin_budget(b, &set), 7 * us);
	set.spin = 0;
	assert_int_equal(cv_spin_budget(b, &set), 0);
}

int main(void)
{
#define CASE(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		CASE(level_triggered), CASE(edge_triggered), CASE(one_shot), CASE(errors), CASE(delete_and_add), CASE(round_robin),
		CASE(fair_with_kernel), CASE(moves_to_link_and_back), CASE(one_shot_moves), CASE(careful_spill),
		CASE(wakes_who_slept_before),
		CASE(wakes_sleepers), CASE(two_sets), CASE(dups), CASE(registered_before_connect), CASE(tag_collision), CASE(nested),
		CASE(timeouts_and_signals), CASE(masks), CASE(idle_bells_go_cold), CASE(spin_budget),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
