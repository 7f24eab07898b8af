/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/sys.h"
#include "link/internal_fd.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

static void limit(rlim_t n)
{
	struct rlimit rl;

	assert_int_equal(getrlimit(RLIMIT_NOFILE, &rl), 0);
	rl.rlim_cur = n;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &rl), 0);
}

static int setup(void **state)
{
	(void)state;
	limit(1024);
	return 0;
}

static int null(void)
{
	int fd = open("/dev/null", O_RDWR);

	assert_true(fd >= 0);
	return fd;
}

static bool is_open(int fd)
{
	return fcntl(fd, F_GETFD) >= 0;
}

static void test_moves_up(void **state)
{
	int fd = null(), high = cv_fd_high(fd);

	(void)state;
	assert_true(high >= 768 && high < 1024); /* the top quarter */
	assert_false(is_open(fd));
	assert_int_equal(fcntl(high, F_GETFD), FD_CLOEXEC);
	assert_true(cv_fd_internal(high));
	assert_false(cv_fd_internal(high + 1));
	assert_false(cv_fd_internal(high - 1));
	cv_fd_close(high);
	assert_false(is_open(high));
	assert_false(cv_fd_internal(high));
}

/* The number may be the program's now: it must not be passed over any more. */
static void test_closed_is_forgotten(void **state)
{
	int high = cv_fd_high(null());

	(void)state;
	cv_fd_close(high);
	assert_int_equal(dup2(0, high), high);
	assert_false(cv_fd_internal(high));
	close(high);
}

static void test_any_number(void **state)
{
	(void)state;
	assert_false(cv_fd_internal(-1));
	assert_false(cv_fd_internal(INT_MIN));
	assert_false(cv_fd_internal(1 << 20));
	assert_false(cv_fd_internal(INT_MAX));
	cv_fd_close(-1);
	cv_fd_close(-EMFILE);
	cv_fd_close(INT_MAX);
}

static void test_small_limit(void **state)
{
	int high;

	(void)state;
	limit(16);
	high = cv_fd_high(null());
	assert_true(high >= 12 && high < 16);
	cv_fd_close(high);
	limit(1024);
}

/* The top full, it takes a lower one; nothing free, it says so and leaves nothing open. */
static void test_full(void **state)
{
	int taken[64], n = 0, fd = null(), high;

	(void)state;
	limit(64);
	for (int i = 48; i < 64; i++)
		assert_int_equal(dup2(fd, taken[n++] = i), i);
	high = cv_fd_high(dup(fd));
	assert_true(high >= 24 && high < 48);
	cv_fd_close(high);
	for (int i; (i = dup(fd)) >= 0;)
		taken[n++] = i;
	n--;
	assert_int_equal(cv_fd_high(taken[n]), -EMFILE);
	assert_false(is_open(taken[n]));
	for (int i = 0; i < n; i++)
		close(taken[i]);
	close(fd);
	limit(1024);
}

static void test_made_high(void **state)
{
	int fd = cv_fd_new(SYS_dup3, 0, 40, O_CLOEXEC, 0), other;

	(void)state;
	assert_true(fd >= 768 && cv_fd_internal(fd));
	assert_false(is_open(40)); /* where the call had put it */
	assert_int_equal(cv_fd_making, 0);
	other = cv_fd_dup(fd);
	assert_true(other >= 768 && other != fd && is_open(fd));
	assert_int_equal(cv_fd_new(SYS_dup3, -1, 40, 0, 0), -EBADF);
	assert_int_equal(cv_fd_making, 0);
	cv_fd_close(fd);
	cv_fd_close(other);
	cv_fd_make_begin();
	assert_int_equal(cv_fd_making, 1);
	cv_fd_make_end();
	cv_fd_made(); /* nobody is at it: returns */
}

static void test_forked(void **state)
{
	int a = cv_fd_high(null()), b = cv_fd_high(null()), mine = null(), status;
	pid_t pid;

	(void)state;
	limit(4096); /* and one far from them */
	int c = cv_fd_high(null());

	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		bool had = is_open(a) && is_open(b) && is_open(c);

		cv_fd_forked();
		_exit(had && !is_open(a) && !is_open(b) && !is_open(c) && is_open(mine) && !cv_fd_internal(a) && !cv_fd_internal(c) ? 0 : 1);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_true(is_open(a) && is_open(b) && is_open(c));
	cv_fd_close(a);
	cv_fd_close(b);
	cv_fd_close(c);
	close(mine);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_forked, setup), /* first: the others widen the range that is searched */
		cmocka_unit_test_setup(test_moves_up, setup),	cmocka_unit_test_setup(test_closed_is_forgotten, setup),
		cmocka_unit_test_setup(test_any_number, setup), cmocka_unit_test_setup(test_small_limit, setup),
		cmocka_unit_test_setup(test_full, setup),	cmocka_unit_test_setup(test_made_high, setup),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
