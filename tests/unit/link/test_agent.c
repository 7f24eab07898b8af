/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/lock.h"
#include "link/agent.h"
#include "link/internal_fd.h"
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define MS 1000000ull

/* ---- something done on the agent's thread, and waited for ---------------------------------------------------------------------- */

struct errand {
	struct cv_work work;
	void (*fn)(void *arg);
	void *arg;
	sem_t done;
};

static void run_errand(struct cv_work *w)
{
	struct errand *e = cv_container_of(w, struct errand, work);

	e->fn(e->arg);
	sem_post(&e->done);
}

/* A bound, not a measure: passed only when something never comes. */
static void await(sem_t *s)
{
	struct timespec ts;

	clock_gettime(CLOCK_REALTIME, &ts);
	ts.tv_sec += 60;
	assert_int_equal(sem_timedwait(s, &ts), 0);
}

static void on_agent(void (*fn)(void *arg), void *arg)
{
	struct errand e = {.work.fn = run_errand, .fn = fn, .arg = arg};

	sem_init(&e.done, 0, 0);
	assert_int_equal(cv_agent_post(&e.work), 0);
	await(&e.done);
}

static void nothing(void *arg)
{
	(void)arg;
}

/* ---- posting ------------------------------------------------------------------------------------------------------------------- */

struct seen {
	bool self;
	sigset_t mask;
	pthread_t thread;
};

static void look(void *arg)
{
	struct seen *s = arg;

	s->self = cv_agent_self();
	s->thread = pthread_self();
	pthread_sigmask(SIG_SETMASK, NULL, &s->mask);
}

static void test_thread_of_its_own(void **state)
{
	struct seen s = {0}, again = {0};

	(void)state;
	assert_false(cv_agent_self());
	on_agent(look, &s);
	assert_true(cv_agent_running());
	assert_true(s.self);
	assert_false(cv_agent_self());
	for (int sig = 1; sig < 32; sig++)
		if (sig != SIGKILL && sig != SIGSTOP)
			assert_int_equal(sigismember(&s.mask, sig), 1);
	assert_int_equal(cv_agent_start(), 0); /* and only one */
	on_agent(look, &again);
	assert_true(pthread_equal(s.thread, again.thread));
}

struct counted {
	struct cv_work work;
	_Atomic unsigned runs;
	unsigned at, again;
};

static unsigned clockwork;

static void count(struct cv_work *w)
{
	struct counted *c = cv_container_of(w, struct counted, work);

	atomic_fetch_add(&c->runs, 1);
	c->at = ++clockwork;
	if (c->again) {
		c->again--;
		cv_agent_post(&c->work);
	}
}

static struct counted three[3];

static void post_three(void *arg)
{
	(void)arg;
	for (int i = 0; i < 3; i++)
		cv_agent_post(&three[i].work);
	cv_agent_post(&three[0].work); /* queued already */
}

static void test_order_and_once(void **state)
{
	(void)state;
	memset(three, 0, sizeof(three));
	for (int i = 0; i < 3; i++)
		three[i].work.fn = count;
	on_agent(post_three, NULL); /* from the agent itself: none of them runs before all are queued */
	on_agent(nothing, NULL);
	on_agent(nothing, NULL);
	for (int i = 0; i < 3; i++)
		assert_int_equal(three[i].runs, 1);
	assert_true(three[0].at < three[1].at && three[1].at < three[2].at);
	three[1].again = 5; /* posts itself while it runs */
	cv_agent_post(&three[1].work);
	for (int i = 0; i < 7; i++)
		on_agent(nothing, NULL);
	assert_int_equal(three[1].runs, 7);
}

#define POSTERS 4
#define POSTS 2000

struct poster {
	struct counted c[8];
	_Atomic unsigned asked[8], missed;
};

/* After a post the work runs at least once more: nobody's post is lost between "queued" and the run. */
static void *post_many(void *arg)
{
	struct poster *p = arg;

	for (unsigned i = 0; i < POSTS; i++) {
		struct counted *c = &p->c[i % 8];
		unsigned before = atomic_load(&c->runs);

		cv_agent_post(&c->work);
		if (i % 16 == 0) {
			for (unsigned spins = 0; atomic_load(&c->runs) == before; spins++) {
				if (spins > 30000) {
					p->missed++;
					break;
				}
				nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
			}
		}
	}
	return NULL;
}

static void test_many_posters(void **state)
{
	static struct poster p[POSTERS];
	pthread_t t[POSTERS];

	(void)state;
	for (int i = 0; i < POSTERS; i++) {
		for (int k = 0; k < 8; k++)
			p[i].c[k].work.fn = count;
		assert_int_equal(pthread_create(&t[i], NULL, post_many, &p[i]), 0);
	}
	for (int i = 0; i < POSTERS; i++)
		pthread_join(t[i], NULL);
	on_agent(nothing, NULL);
	for (int i = 0; i < POSTERS; i++) {
		assert_int_equal(p[i].missed, 0);
		for (int k = 0; k < 8; k++) {
			assert_true(p[i].c[k].runs > 0);
			assert_int_equal(p[i].c[k].work.queued, 0);
		}
	}
}

/* ---- timers -------------------------------------------------------------------------------------------------------------------- */

#define TIMERS 3000 /* more than the heap begins with */

static struct alarm {
	struct cv_timer t;
	uint64_t at, ran;
} alarms[TIMERS];
static unsigned alarms_run, out_of_order, too_early, alarms_wanted;
static uint64_t last_at;
static sem_t all_rang;

static void ring(struct cv_timer *t)
{
	struct alarm *a = cv_container_of(t, struct alarm, t);

	a->ran++;
	out_of_order += a->at < last_at;
	too_early += cv_now_ns() < a->at;
	last_at = a->at;
	if (t->at || t->pos)
		out_of_order += 1000; /* it must be free to be set again */
	if (++alarms_run == alarms_wanted)
		sem_post(&all_rang);
}

static void set_alarms(void *arg)
{
	uint64_t now = cv_now_ns();
	uint32_t x = 12345;

	(void)arg;
	for (int i = 0; i < TIMERS; i++) {
		x = x * 1664525 + 1013904223;
		alarms[i] = (struct alarm){.t.fn = ring, .at = now + 60 * MS + (x >> 8) % (20 * MS)};
		cv_agent_timer(&alarms[i].t, alarms[i].at);
	}
	for (int i = 0; i < TIMERS; i += 3) { /* a third moves: sooner or later */
		x = x * 1664525 + 1013904223;
		alarms[i].at = now + 40 * MS + (x >> 8) % (50 * MS);
		cv_agent_timer(&alarms[i].t, alarms[i].at);
	}
	for (int i = 1; i < TIMERS; i += 3) { /* a third is cleared, twice */
		cv_agent_timer(&alarms[i].t, 0);
		cv_agent_timer(&alarms[i].t, 0);
	}
}

static void test_timers(void **state)
{
	(void)state;
	sem_init(&all_rang, 0, 0);
	alarms_wanted = TIMERS - TIMERS / 3;
	on_agent(set_alarms, NULL);
	await(&all_rang);
	on_agent(nothing, NULL);
	assert_int_equal(alarms_run, alarms_wanted);
	assert_int_equal(out_of_order, 0);
	assert_int_equal(too_early, 0);
	for (int i = 0; i < TIMERS; i++)
		assert_int_equal(alarms[i].ran, i % 3 != 1);
}

/* ---- watches ------------------------------------------------------------------------------------------------------------------- */

struct watched {
	struct cv_watch w;
	unsigned calls;
	uint32_t events, want;
	int err;
	sem_t called;
};

static void see(struct cv_watch *w, uint32_t events)
{
	struct watched *x = cv_container_of(w, struct watched, w);
	char c;

	x->calls++;
	x->events = events;
	(void)!read(w->fd, &c, 1);
	sem_post(&x->called);
}

static void set_watch(void *arg)
{
	struct watched *x = arg;

	x->err = cv_agent_watch(&x->w, x->want);
}

static void test_watches(void **state)
{
	struct watched x = {.w.fn = see, .want = EPOLLIN};
	int p[2];

	(void)state;
	assert_int_equal(pipe(p), 0);
	sem_init(&x.called, 0, 0);
	x.w.fd = p[0];
	on_agent(set_watch, &x);
	assert_int_equal(x.err, 0);
	assert_int_equal(write(p[1], "a", 1), 1);
	await(&x.called);
	assert_true(x.events & EPOLLIN);
	on_agent(set_watch, &x); /* no change: nothing to do */
	assert_int_equal(x.err, 0);
	x.want = EPOLLIN | EPOLLET; /* changes */
	on_agent(set_watch, &x);
	assert_int_equal(write(p[1], "bc", 2), 2);
	await(&x.called);
	for (int i = 0; i < 3; i++)
		on_agent(nothing, NULL);
	assert_int_equal(x.calls, 2); /* "c" is there, but an edge is an edge */
	x.want = 0;
	on_agent(set_watch, &x);
	assert_int_equal(x.w.events, 0);
	assert_int_equal(write(p[1], "d", 1), 1);
	for (int i = 0; i < 3; i++)
		on_agent(nothing, NULL);
	assert_int_equal(x.calls, 2);
	x.w.fd = 99999; /* not a descriptor */
	x.want = EPOLLIN;
	on_agent(set_watch, &x);
	assert_int_equal(x.err, -EBADF);
	assert_int_equal(x.w.events, 0);
	close(p[0]);
	close(p[1]);
}

/* ---- fork ---------------------------------------------------------------------------------------------------------------------- */

static struct cv_lock guard;

static void in_and_out(void *arg)
{
	(void)arg;
	cv_lock(&guard);
	nanosleep(&(struct timespec){.tv_nsec = 200000}, NULL);
	cv_unlock(&guard);
}

static struct errand busy_errand = {.work.fn = run_errand, .fn = in_and_out};

static struct cv_timer parents, childs;

static void never(struct cv_timer *t)
{
	(void)t;
	abort();
}

static void set_far(void *arg)
{
	struct cv_timer *t = arg;

	t->fn = never;
	cv_agent_timer(t, cv_now_ns() + (t == &childs ? 7200000 : 3600000) * MS);
}

static void clear(void *arg)
{
	cv_agent_timer(arg, 0);
}

/* The child finds no lock held by an agent that it does not have, and can start its own; the parent's goes on. */
static void test_fork(void **state)
{
	(void)state;
	sem_init(&busy_errand.done, 0, 0);
	on_agent(set_far, &parents);
	for (int i = 0; i < 20; i++) {
		pid_t pid;
		int status;

		cv_agent_post(&busy_errand.work);
		cv_agent_fork_prepare();
		pid = fork();
		if (pid == 0) {
			bool ok;

			alarm(60);
			cv_agent_fork_child();
			cv_fd_forked();
			ok = !cv_agent_running() && !cv_agent_self() && cv_trylock(&guard);
#ifndef __SANITIZE_THREAD__ /* which does not know threads after a fork of many threads */
			struct seen s = {0};

			on_agent(look, &s);
			on_agent(set_far, &childs);
			ok = ok && s.self && cv_agent_running() && childs.pos == 1; /* the first: it inherits no timers */
#endif
			_exit(ok ? 0 : 1);
		}
		cv_agent_fork_parent();
		assert_true(pid > 0);
		assert_int_equal(waitpid(pid, &status, 0), pid);
		assert_int_equal(status, 0);
		on_agent(nothing, NULL);
	}
	assert_int_equal(parents.pos, 1);
	on_agent(clear, &parents);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_thread_of_its_own), cmocka_unit_test(test_order_and_once), cmocka_unit_test(test_many_posters),
		cmocka_unit_test(test_timers),		  cmocka_unit_test(test_watches),	 cmocka_unit_test(test_fork),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
