/* SPDX-License-Identifier: Apache-2.0 */
#include "preload/fd.h"
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#define MAX (CV_FD_CHUNK * CV_FD_CHUNKS)

static char objects[8][64] __attribute__((aligned(64)));

static uintptr_t sock(int i)
{
	return (uintptr_t)objects[i];
}

static void test_empty(void **state)
{
	(void)state;
	assert_int_equal(cv_fd_get(0), 0);
	assert_int_equal(cv_fd_get(-1), 0);
	assert_int_equal(cv_fd_get(MAX), 0);
	assert_null(cv_fd_sock(5));
	assert_null(cv_fd_epoll(5));
	assert_int_equal(cv_fd_limit(), 0);
}

static void test_tags(void **state)
{
	(void)state;
	assert_int_equal(cv_fd_set(5, sock(0) | CV_FD_SOCK), 0);
	assert_ptr_equal(cv_fd_sock(5), objects[0]);
	assert_null(cv_fd_epoll(5));
	assert_int_equal(cv_fd_set(5, sock(0) | CV_FD_OUT), 0);
	assert_null(cv_fd_sock(5));
	assert_ptr_equal(cv_fd_sock_of(cv_fd_get(5)), objects[0]);
	assert_int_equal(cv_fd_set(5, sock(1) | CV_FD_EPOLL), 0);
	assert_ptr_equal(cv_fd_epoll(5), objects[1]);
	assert_null(cv_fd_sock(5));
	assert_int_equal(cv_fd_set(5, CV_FD_OTHER | CV_FD_OTHER_TCP), 0);
	assert_null(cv_fd_sock(5));
	assert_null(cv_fd_epoll(5));
	assert_int_equal(cv_fd_tag(cv_fd_get(5)), CV_FD_OTHER);
	assert_int_equal(cv_fd_set(5, 0), 0);
	assert_int_equal(cv_fd_get(5), 0);
	assert_int_equal(cv_fd_limit(), 6);
}

static void test_range(void **state)
{
	(void)state;
	assert_int_equal(cv_fd_set(MAX - 1, sock(0)), 0);
	assert_ptr_equal(cv_fd_sock(MAX - 1), objects[0]);
	assert_int_equal(cv_fd_limit(), MAX);
	assert_int_equal(cv_fd_set(MAX, sock(0)), -EBADF);
	assert_int_equal(cv_fd_set(-1, sock(0)), -EBADF);
	assert_int_equal(cv_fd_set(MAX, 0), 0);
	assert_int_equal(cv_fd_set(MAX - 1, 0), 0);
	/* Clearing what never was costs no memory. */
	assert_int_equal(cv_fd_set(500 * CV_FD_CHUNK, 0), 0);
	assert_null(cv_fd_top[500]);
}

static void test_swap(void **state)
{
	(void)state;
	assert_true(cv_fd_swap(7, 0, sock(0)));
	assert_false(cv_fd_swap(7, 0, sock(1)));
	assert_false(cv_fd_swap(7, sock(1), 0));
	assert_ptr_equal(cv_fd_sock(7), objects[0]);
	assert_true(cv_fd_swap(7, sock(0), 0));
	assert_false(cv_fd_swap(-1, 0, sock(0)));
	assert_false(cv_fd_swap(MAX, 0, sock(0)));
}

static void test_retag_find(void **state)
{
	(void)state;
	cv_fd_set(3, sock(2));
	cv_fd_set(1500, sock(2));
	cv_fd_set(4, sock(3));
	assert_int_equal(cv_fd_find(sock(2), -1), 3);
	assert_int_equal(cv_fd_find(sock(2), 3), 1500);
	cv_fd_retag(sock(2), sock(2) | CV_FD_OUT);
	assert_int_equal(cv_fd_find(sock(2), -1), -1);
	assert_int_equal(cv_fd_get(3), sock(2) | CV_FD_OUT);
	assert_int_equal(cv_fd_get(1500), sock(2) | CV_FD_OUT);
	assert_ptr_equal(cv_fd_sock(4), objects[3]);
	cv_fd_forget();
	assert_int_equal(cv_fd_get(4), 0);
	assert_int_equal(cv_fd_get(1500), 0);
}

#define THREADS 4

static void *fill(void *arg)
{
	int me = (int)(uintptr_t)arg;

	/* Interleaved, so that every chunk is made by all at once. */
	for (int fd = 100 * CV_FD_CHUNK + me; fd < 140 * CV_FD_CHUNK; fd += THREADS)
		cv_fd_set(fd, sock(me));
	return NULL;
}

static void test_threads(void **state)
{
	pthread_t t[THREADS];

	(void)state;
	for (uintptr_t i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&t[i], NULL, fill, (void *)i), 0);
	for (int i = 0; i < THREADS; i++)
		pthread_join(t[i], NULL);
	for (int fd = 100 * CV_FD_CHUNK; fd < 140 * CV_FD_CHUNK; fd++)
		assert_int_equal(cv_fd_get(fd), sock(fd % THREADS));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_empty), cmocka_unit_test(test_tags),	 cmocka_unit_test(test_range),
		cmocka_unit_test(test_swap),  cmocka_unit_test(test_retag_find), cmocka_unit_test(test_threads),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
