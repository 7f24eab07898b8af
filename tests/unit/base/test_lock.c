/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/lock.h"

#define THREADS 4
#define ROUNDS 50000

static void test_zero_is_free(void **state)
{
	struct cv_lock l = { 0 };

	(void)state;
	assert_true(cv_trylock(&l));
	assert_int_equal(l.word, 1);
	assert_false(cv_trylock(&l));
	cv_unlock(&l);
	assert_int_equal(l.word, 0);
	cv_lock(&l);
	assert_false(cv_trylock(&l));
	cv_unlock(&l);
	assert_int_equal(l.word, 0);
}

struct shared {
	struct cv_lock lock;
	uint64_t a, b; /* plain on purpose: only the lock keeps them equal */
	_Atomic int torn;
	_Atomic int ready;
};

static void *count_both(void *arg)
{
	struct shared *s = arg;

	for (int i = 0; i < ROUNDS; i++) {
		cv_lock(&s->lock);
		if (s->a != s->b)
			s->torn = 1;
		s->a++;
		if (i % 256 == 0)
			sched_yield(); /* lose the CPU with the lock held, so that the others come to sleep */
		s->b++;
		cv_unlock(&s->lock);
	}
	return NULL;
}

static void test_excludes_under_threads(void **state)
{
	struct shared s = { 0 };
	pthread_t t[THREADS];

	(void)state;
	for (int i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&t[i], NULL, count_both, &s), 0);
	for (int i = 0; i < THREADS; i++)
		assert_int_equal(pthread_join(t[i], NULL), 0);
	assert_int_equal(s.torn, 0);
	assert_int_equal(s.a, (uint64_t)THREADS * ROUNDS);
	assert_int_equal(s.a, s.b);
	assert_int_equal(s.lock.word, 0);
}

static void *try_both(void *arg)
{
	struct shared *s = arg;

	for (int i = 0; i < ROUNDS;) {
		if (!cv_trylock(&s->lock)) {
			sched_yield();
			continue;
		}
		if (s->a != s->b)
			s->torn = 1;
		s->a++;
		s->b++;
		cv_unlock(&s->lock);
		i++;
	}
	return NULL;
}

/* trylock and lock mixed: an unlock after a trylock must still wake whoever sleeps. */
static void test_trylock_mixes_with_lock(void **state)
{
	struct shared s = { 0 };
	pthread_t t[THREADS];

	(void)state;
	for (int i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&t[i], NULL, i % 2 ? try_both : count_both, &s), 0);
	for (int i = 0; i < THREADS; i++)
		assert_int_equal(pthread_join(t[i], NULL), 0);
	assert_int_equal(s.torn, 0);
	assert_int_equal(s.a, (uint64_t)THREADS * ROUNDS);
	assert_int_equal(s.lock.word, 0);
}

static void *sleep_on_it(void *arg)
{
	struct shared *s = arg;

	cv_lock(&s->lock);
	s->a++;
	cv_unlock(&s->lock);
	return NULL;
}

/* All waiters get through after one unlock each: a wake-up handed to one sleeper must not leave the next one asleep. */
static void test_every_sleeper_wakes(void **state)
{
	struct shared s = { 0 };
	pthread_t t[THREADS];

	(void)state;
	cv_lock(&s.lock);
	for (int i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&t[i], NULL, sleep_on_it, &s), 0);
	while (atomic_load(&s.lock.word) != 2) /* the first one has announced that it sleeps */
		sched_yield();
	cv_unlock(&s.lock);
	for (int i = 0; i < THREADS; i++)
		assert_int_equal(pthread_join(t[i], NULL), 0);
	assert_int_equal(s.a, THREADS);
	assert_int_equal(s.lock.word, 0);
}

static struct cv_lock signal_lock;
static volatile sig_atomic_t in_handler;

static void on_signal(int sig)
{
	(void)sig;
	in_handler = cv_trylock(&signal_lock) ? 2 : 1;
}

static void test_trylock_in_a_handler(void **state)
{
	struct sigaction sa = { .sa_handler = on_signal };

	(void)state;
	assert_int_equal(sigaction(SIGUSR1, &sa, NULL), 0);
	cv_lock(&signal_lock);
	raise(SIGUSR1);
	assert_int_equal(in_handler, 1);
	cv_unlock(&signal_lock);
	raise(SIGUSR1);
	assert_int_equal(in_handler, 2);
	cv_unlock(&signal_lock);
}

/* Held across fork, as the fork protocol does it: both sides own a copy, and either can release its own. */
static void test_held_across_fork(void **state)
{
	static struct cv_lock l;
	int status;
	pid_t pid;

	(void)state;
	cv_lock(&l);
	pid = fork();
	if (pid == 0) {
		bool held = !cv_trylock(&l);

		cv_unlock(&l);
		_exit(held && cv_trylock(&l) ? 0 : 1);
	}
	assert_true(pid > 0);
	cv_unlock(&l);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
	assert_true(cv_trylock(&l));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_zero_is_free),
		cmocka_unit_test(test_excludes_under_threads),
		cmocka_unit_test(test_trylock_mixes_with_lock),
		cmocka_unit_test(test_every_sleeper_wakes),
		cmocka_unit_test(test_trylock_in_a_handler),
		cmocka_unit_test(test_held_across_fork),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
