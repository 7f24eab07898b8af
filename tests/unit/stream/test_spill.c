/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "stream/spill.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

static size_t held;   /* bytes given out and not taken back */
static bool no_memory;

static void *give(size_t len)
{
	if (no_memory)
		return NULL;
	held += len;
	return malloc(len);
}

static void take_back(void *p, size_t len)
{
	held -= len;
	free(p);
}

static const struct cv_stream_ops ops = {.alloc = give, .free = take_back};

static uint8_t byte(size_t off)
{
	return (uint8_t)(off * 31 + (off >> 8));
}

static void put(struct cv_spill *q, size_t off, size_t n)
{
	uint8_t buf[20000];
	struct iovec v[2] = {{buf, n / 3}, {buf + n / 3, n - n / 3}};

	for (size_t i = 0; i < n; i++)
		buf[i] = byte(off + i);
	assert_int_equal(cv_spill_put(q, &ops, v, 2, 0, n), 0);
}

static void keeps_order(void **state)
{
	struct cv_spill q = {0};
	uint8_t out[20000];
	struct iovec v = {out, sizeof(out)};
	size_t in = 0, taken = 0;

	(void)state;
	srand(7);
	for (int round = 0; round < 3000; round++) {
		size_t n = (size_t)rand() % (round % 100 ? 300 : 19000);

		put(&q, in, n);
		in += n;
		assert_int_equal(q.len, in - taken);
		n = cv_spill_get(&q, &v, 1, 0, (size_t)rand() % 400, rand() % 4 == 0);
		for (size_t i = 0; i < n; i++)
			assert_int_equal(out[i], byte(taken + i));
		taken = in - q.len;
		if (round % 50 == 0) {
			cv_spill_drop(&q, q.len / 2);
			taken = in - q.len;
			if (q.len)
				assert_int_equal(*cv_spill_front(&q), byte(taken));
		}
	}
	cv_spill_free(&q, &ops);
	assert_int_equal(held, 0);
}

static void skip_reaches_into_the_iovec(void **state)
{
	struct cv_spill q = {0};
	uint8_t a[4] = {9, 9, 9, 9}, b[8] = {9, 9, 9, 9, 9, 9, 9, 9};
	struct iovec v[2] = {{a, 4}, {b, 8}};

	(void)state;
	put(&q, 0, 6);
	assert_int_equal(cv_spill_get(&q, v, 2, 3, 100, true), 6);
	assert_int_equal(a[2], 9);
	assert_int_equal(a[3], byte(0));
	assert_int_equal(b[4], byte(5));
	assert_int_equal(b[5], 9);
	assert_int_equal(q.len, 6);
	assert_int_equal(cv_spill_get(&q, v, 2, 11, 100, false), 1);
	assert_int_equal(q.len, 5);
	cv_spill_free(&q, &ops);
}

static void reserve_then_added(void **state)
{
	struct cv_spill q = {0};
	uint8_t *p, out[8];
	struct iovec v = {out, 8};

	(void)state;
	assert_int_equal(cv_spill_reserve(&q, &ops, 100, &p), 0);
	memcpy(p, "abc", 3);
	cv_spill_added(&q, 3);
	assert_int_equal(cv_spill_get(&q, &v, 1, 0, 8, false), 3);
	assert_memory_equal(out, "abc", 3);
	cv_spill_free(&q, &ops);
}

static void without_memory_nothing_changes(void **state)
{
	struct cv_spill q = {0};
	uint8_t big[10000] = {0}, *p;
	struct iovec v = {big, sizeof(big)};

	(void)state;
	put(&q, 0, 10);
	no_memory = true;
	assert_int_equal(cv_spill_put(&q, &ops, &v, 1, 0, sizeof(big)), -ENOMEM);
	assert_int_equal(cv_spill_reserve(&q, &ops, SIZE_MAX, &p), -ENOMEM);
	no_memory = false;
	assert_int_equal(cv_spill_reserve(&q, &ops, SIZE_MAX / 2 + 2, &p), -ENOMEM);
	assert_int_equal(q.len, 10);
	assert_int_equal(*cv_spill_front(&q), byte(0));
	cv_spill_free(&q, &ops);
	assert_int_equal(held, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(keeps_order),
		cmocka_unit_test(skip_reaches_into_the_iovec),
		cmocka_unit_test(reserve_then_added),
		cmocka_unit_test(without_memory_nothing_changes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
