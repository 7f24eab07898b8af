/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <pthread.h>

#include "base/clock.h"

static void test_now_is_monotonic(void **state)
{
	uint64_t last = cv_now_ns();
	struct timespec ts;

	(void)state;
	for (int i = 0; i < 100000; i++) {
		uint64_t now = cv_now_ns();

		assert_true(now >= last);
		last = now;
	}
	assert_int_equal(clock_gettime(CLOCK_MONOTONIC, &ts), 0);
	assert_true((uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec >= last);
}

/* The rate has to agree with the clock over an interval a hundred times longer than the one it was measured in. */
/* Both at one moment: again if the CPU was taken away between the two. */
static void read_both(uint64_t *ns, uint64_t *ticks)
{
	do {
		*ns = cv_now_ns();
		*ticks = cv_ticks();
	} while (cv_now_ns() - *ns > 100000);
}

static void test_ticks_agree_with_the_clock(void **state)
{
	uint64_t rate = cv_ticks_per_us(), n0, t0, n1, t1, us;

	(void)state;
	assert_true(rate > 0);
	read_both(&n0, &t0);
	do {
		read_both(&n1, &t1);
	} while (n1 - n0 < 2000000);
	us = (n1 - n0) / 1000;
	/* Wide all the same: a wrong unit is off by a thousand. */
	assert_in_range((t1 - t0) / rate, us / 4, us * 4);
}

static void test_rate_is_measured_once(void **state)
{
	uint64_t rate = cv_ticks_per_us();

	(void)state;
	for (int i = 0; i < 1000; i++)
		assert_int_equal(cv_ticks_per_us(), rate);
}

static void *ask_rate(void *arg)
{
	*(uint64_t *)arg = cv_ticks_per_us();
	return NULL;
}

static void test_rate_from_many_threads(void **state)
{
	uint64_t rate[4];
	pthread_t t[4];

	(void)state;
	for (int i = 0; i < 4; i++)
		assert_int_equal(pthread_create(&t[i], NULL, ask_rate, &rate[i]), 0);
	for (int i = 0; i < 4; i++) {
		assert_int_equal(pthread_join(t[i], NULL), 0);
		assert_true(rate[i] > 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rate_from_many_threads), /* first: it must find the rate unmeasured */
		cmocka_unit_test(test_now_is_monotonic),
		cmocka_unit_test(test_ticks_agree_with_the_clock),
		cmocka_unit_test(test_rate_is_measured_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
