/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <limits.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include <netinet/in.h>
#include <cmocka.h>

#include "observe/log.h"

/* What libc says of the same format is right. */
#define SAME(...) \
	do { \
		char ours[256], libcs[256]; \
		int n = snprintf(libcs, sizeof(libcs), __VA_ARGS__); \
		assert_int_equal(cv_format(ours, sizeof(ours), __VA_ARGS__), n); \
		assert_string_equal(ours, libcs); \
	} while (0)

static void test_formats_as_libc_does(void **state)
{
	(void)state;
	SAME("plain");
	SAME("%s and %s", "one", "two");
	SAME("%d %d %d %d", 0, -1, INT_MAX, INT_MIN);
	SAME("%u %x", UINT_MAX, 0xdeadbeefu);
	SAME("%ld %ld %lu %lx", LONG_MAX, LONG_MIN, ULONG_MAX, 0x123456789abcdefL);
	SAME("%lld %llu %zu %zd", -5LL, ULLONG_MAX, (size_t)42, (ssize_t)-42);
	SAME("%c%c %%", 'o', 'k');
	SAME("[%5d] [%-5d] [%05d] [%05d] [%02x]", 42, 42, 42, -42, 7);
	SAME("[%8s] [%-8s] [%.3s] [%.*s]", "abc", "abc", "abcdef", 2, "abcdef");
	SAME("%p", (void *)0x1234);
}

static void test_cuts_and_terminates(void **state)
{
	char *volatile nothing = NULL; /* volatile: the compiler would see it and warn */
	char buf[8];

	(void)state;
	memset(buf, 'x', sizeof(buf));
	assert_int_equal(cv_format(buf, 4, "%s", "abcdef"), 3);
	assert_string_equal(buf, "abc");
	assert_int_equal(buf[4], 'x');
	assert_int_equal(cv_format(buf, 1, "%d", 12345), 0);
	assert_string_equal(buf, "");
	buf[0] = 'y';
	assert_int_equal(cv_format(buf, 0, "z"), 0);
	assert_int_equal(buf[0], 'y');
	assert_int_equal(cv_format(buf, sizeof(buf), "%s", nothing), 6);
}

static void test_unknown_conversion_reads_no_argument(void **state)
{
	char buf[64];
	const char *fmt = "a %q %s";

	(void)state;
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat"
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
#pragma GCC diagnostic ignored "-Wformat-security"
	cv_format(buf, sizeof(buf), fmt);
	assert_string_equal(buf, "a %q %s");
	cv_format(buf, sizeof(buf), "end %");
	assert_string_equal(buf, "end %");
#pragma GCC diagnostic pop
}

static void test_line(void **state)
{
	char want[64], got[2048];
	int p[2];
	ssize_t n;

	(void)state;
	assert_int_equal(pipe(p), 0);
	cv_log_to(p[1]);
	cv_log_level = CV_LOG_WARN;
	cv_log(CV_LOG_INFO, "%s", "below the level");
	errno = 4711;
	cv_log(CV_LOG_WARN, "two\nlines %d", 7);
	assert_int_equal(errno, 4711);
	n = read(p[0], got, sizeof(got) - 1);
	assert_true(n > 0);
	got[n] = '\0';
	snprintf(want, sizeof(want), "culvert[%d]: warn: two?lines 7\n", getpid());
	assert_string_equal(got, want);

	/* A long text is cut, and still ends its line. */
	char big[3000];

	memset(big, 'b', sizeof(big));
	big[sizeof(big) - 1] = '\0';
	cv_log(CV_LOG_ERROR, "%s", big);
	n = read(p[0], got, sizeof(got));
	assert_true(n > 900 && n <= 1024);
	assert_int_equal(got[n - 1], '\n');
	for (int i = 0; i < 3; i++)
		cv_warn_once("once");
	n = read(p[0], got, sizeof(got) - 1);
	got[n] = '\0';
	assert_null(strstr(strchr(got, '\n') + 1, "once"));
	close(p[0]);
	close(p[1]);
}

static void test_reader_gone_is_no_signal(void **state)
{
	sigset_t set;
	int p[2];

	(void)state;
	signal(SIGPIPE, SIG_DFL);
	assert_int_equal(pipe(p), 0);
	close(p[0]);
	cv_log_to(p[1]);
	cv_log(CV_LOG_ERROR, "nobody listens");
	sigpending(&set);
	assert_false(sigismember(&set, SIGPIPE));
	sigprocmask(SIG_BLOCK, NULL, &set);
	assert_false(sigismember(&set, SIGPIPE));
	close(p[1]);
}

static void test_never_into_a_tcp_socket(void **state)
{
	int s = socket(AF_INET, SOCK_DGRAM, 0), in = socket(AF_INET, SOCK_DGRAM, 0), saved = dup(2);
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t len = sizeof(a);
	char buf[16];

	(void)state;
	assert_int_equal(bind(in, (struct sockaddr *)&a, sizeof(a)), 0);
	assert_int_equal(getsockname(in, (struct sockaddr *)&a, &len), 0);
	assert_int_equal(connect(s, (struct sockaddr *)&a, sizeof(a)), 0);
	cv_log_to(-1);
	dup2(s, 2);
	cv_log(CV_LOG_ERROR, "not for the peer");
	dup2(saved, 2);
	assert_int_equal(recv(in, buf, sizeof(buf), MSG_DONTWAIT), -1);
	close(s);
	close(in);
	close(saved);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_formats_as_libc_does),
		cmocka_unit_test(test_cuts_and_terminates),
		cmocka_unit_test(test_unknown_conversion_reads_no_argument),
		cmocka_unit_test(test_line),
		cmocka_unit_test(test_reader_gone_is_no_signal),
		cmocka_unit_test(test_never_into_a_tcp_socket),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
