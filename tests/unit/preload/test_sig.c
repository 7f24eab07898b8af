/* SPDX-License-Identifier: Apache-2.0 */
/* The wrappers in sig.c are this program's own sigaction() and signal(): cv_real leads to libc's. */
#include "preload/sig.h"
#include "preload/wrap.h"
#include <pthread.h>
#include <setjmp.h>

#include <cmocka.h>

#pragma GCC diagnostic ignored "-Wdeprecated-declarations" /* sigset, siginterrupt */

_Atomic int cv_vforks;
static bool borrowed;
bool cv_borrowed_slow(void)
{
	return borrowed;
}

static volatile int ran, ran_info; /* raise() is declared to run nothing of ours */
static void plain(int sig)
{
	ran = sig;
}
static void other(int sig)
{
	ran = -sig;
}
static void with_info(int sig, siginfo_t *info, void *ctx)
{
	ran_info = info && ctx && info->si_signo == sig && info->si_pid == getpid() ? sig : -1;
}

static void install(int sig, int flags)
{
	struct sigaction sa = {.sa_handler = plain, .sa_flags = flags};

	if (flags & SA_SIGINFO)
		sa.sa_sigaction = with_info;
	sigaddset(&sa.sa_mask, SIGTERM);
	assert_int_equal(sigaction(sig, &sa, NULL), 0);
}

/* What the kernel holds, past the wrapper. */
static void *installed(int sig)
{
	struct sigaction sa;

	assert_int_equal(cv_real.sigaction(sig, NULL, &sa), 0);
	return (void *)sa.sa_sigaction;
}

static void test_before(void **state)
{
	uint32_t seen = cv_signals_seen();

	(void)state;
	install(SIGUSR1, 0);
	assert_ptr_equal(installed(SIGUSR1), plain);
	raise(SIGUSR1);
	assert_int_equal(ran, SIGUSR1);
	assert_int_equal(cv_signals_seen(), seen);
}

/* Handlers that are there already are covered, and look as they did. */
static void test_watch(void **state)
{
	struct sigaction sa;
	uint32_t seen;

	(void)state;
	install(SIGUSR2, SA_RESTART);
	install(SIGHUP, SA_SIGINFO);
	install(SIGSEGV, 0);
	errno = 77;
	cv_signals_watch();
	cv_signals_watch();
	assert_int_equal(errno, 77);
	assert_ptr_not_equal(installed(SIGUSR1), plain);
	assert_ptr_equal(installed(SIGSEGV), plain);
	assert_ptr_equal(installed(SIGCHLD), SIG_DFL);
	assert_int_equal(sigaction(SIGUSR1, NULL, &sa), 0);
	assert_ptr_equal(sa.sa_handler, plain);
	assert_int_equal(sa.sa_flags & (SA_SIGINFO | SA_RESTART), 0);
	assert_true(sigismember(&sa.sa_mask, SIGTERM));
	assert_int_equal(sigaction(SIGHUP, NULL, &sa), 0);
	assert_ptr_equal(sa.sa_sigaction, with_info);
	assert_true(sa.sa_flags & SA_SIGINFO);

	ran = 0;
	seen = cv_signals_seen();
	raise(SIGUSR2);
	assert_int_equal(ran, SIGUSR2);
	assert_int_not_equal(cv_signals_seen(), seen);
	assert_true(cv_signals_restart(seen));
	raise(SIGUSR1);
	assert_int_equal(ran, SIGUSR1);
	assert_false(cv_signals_restart(seen));
	raise(SIGHUP);
	assert_int_equal(ran_info, SIGHUP);
}

static void test_change(void **state)
{
	struct sigaction sa = {.sa_handler = other}, old;

	(void)state;
	assert_int_equal(sigaction(SIGUSR1, &sa, &old), 0);
	assert_ptr_equal(old.sa_handler, plain);
	raise(SIGUSR1);
	assert_int_equal(ran, -SIGUSR1);
	sa.sa_handler = SIG_IGN;
	assert_int_equal(sigaction(SIGUSR1, &sa, &old), 0);
	assert_ptr_equal(old.sa_handler, other);
	assert_ptr_equal(installed(SIGUSR1), SIG_IGN);
	ran = 0;
	raise(SIGUSR1);
	assert_int_equal(ran, 0);
	assert_int_equal(sigaction(SIGUSR1, &old, &sa), 0);
	assert_ptr_equal(sa.sa_handler, SIG_IGN);
	raise(SIGUSR1);
	assert_int_equal(ran, -SIGUSR1);

	errno = 0;
	assert_int_equal(sigaction(SIGKILL, &old, NULL), -1);
	assert_int_equal(errno, EINVAL);
	assert_int_equal(sigaction(0, &old, NULL), -1);
	assert_int_equal(sigaction(1000, &old, NULL), -1);
}

/* libtsan's signal() sets no SA_RESTART and its sigset() returns a handler of its own, without us too: that is not ours to test. */
#ifdef __SANITIZE_THREAD__
#define NOT_UNDER_TSAN() skip()
#else
#define NOT_UNDER_TSAN() ((void)0)
#endif

static void test_signal(void **state)
{
	struct sigaction sa;
	uint32_t seen;

	(void)state;
	NOT_UNDER_TSAN();
	assert_ptr_equal(signal(SIGUSR2, other), plain);
	assert_ptr_equal(signal(SIGUSR2, plain), other);
	sigaction(SIGUSR2, NULL, &sa);
	assert_true(sa.sa_flags & SA_RESTART);
	seen = cv_signals_seen();
	raise(SIGUSR2);
	assert_true(cv_signals_restart(seen));
	assert_int_equal(siginterrupt(SIGUSR2, 1), 0);
	raise(SIGUSR2);
	assert_false(cv_signals_restart(seen));
	assert_ptr_equal(signal(SIGUSR2, other), plain); /* stays interrupting */
	seen = cv_signals_seen();
	raise(SIGUSR2);
	assert_int_equal(ran, -SIGUSR2);
	assert_false(cv_signals_restart(seen));
	assert_int_equal(siginterrupt(SIGUSR2, 0), 0);
	assert_ptr_equal(signal(SIGUSR2, SIG_DFL), other);
	assert_ptr_equal(signal(SIGUSR2, SIG_IGN), SIG_DFL);
	errno = 0;
	assert_ptr_equal(signal(SIGKILL, plain), SIG_ERR);
	assert_int_equal(errno, EINVAL);
}

static void test_sigset(void **state)
{
	sigset_t now;

	(void)state;
	NOT_UNDER_TSAN();
	assert_ptr_equal(sigset(SIGUSR1, plain), other);
	assert_ptr_equal(sigset(SIGUSR1, SIG_HOLD), plain);
	sigprocmask(SIG_BLOCK, NULL, &now);
	assert_true(sigismember(&now, SIGUSR1));
	assert_ptr_equal(sigset(SIGUSR1, other), SIG_HOLD);
	sigprocmask(SIG_BLOCK, NULL, &now);
	assert_false(sigismember(&now, SIGUSR1));
	raise(SIGUSR1);
	assert_int_equal(ran, -SIGUSR1);
}

static void test_reset(void **state)
{
	struct sigaction sa;

	(void)state;
	install(SIGUSR1, SA_RESETHAND | SA_NODEFER);
	raise(SIGUSR1);
	assert_int_equal(ran, SIGUSR1);
	sigaction(SIGUSR1, NULL, &sa);
	assert_ptr_equal(sa.sa_handler, SIG_DFL);
}

static void *count_in_thread(void *arg)
{
	uint32_t seen = cv_signals_seen();

	(void)arg;
	pthread_kill(pthread_self(), SIGUSR1);
	return (void *)(uintptr_t)(cv_signals_seen() - seen);
}

static void test_thread(void **state)
{
	pthread_t t;
	void *n;
	uint32_t seen;

	(void)state;
	install(SIGUSR1, SA_RESTART);
	seen = cv_signals_seen();
	pthread_create(&t, NULL, count_in_thread, NULL);
	pthread_join(t, &n);
	assert_int_equal((uintptr_t)n, 1);
	assert_int_equal(cv_signals_seen(), seen);
}

static sigjmp_buf jump;
static void jumper(int sig)
{
	siglongjmp(jump, sig);
}

static void test_jump(void **state)
{
	uint32_t seen = cv_signals_seen();

	(void)state;
	signal(SIGUSR2, jumper);
	if (!sigsetjmp(jump, 1))
		raise(SIGUSR2);
	assert_int_not_equal(cv_signals_seen(), seen);
}

/* A vfork child changes its own signals, not what we know of its parent's. */
static void test_borrowed(void **state)
{
	struct sigaction sa, old;

	(void)state;
	install(SIGUSR1, 0);
	cv_vforks = 1;
	borrowed = true;
	sa = (struct sigaction){.sa_handler = other};
	assert_int_equal(sigaction(SIGUSR1, &sa, &old), 0);
	assert_ptr_equal(old.sa_handler, plain);
	borrowed = false;
	cv_vforks = 0;
	assert_ptr_equal(installed(SIGUSR1), other);
}

/* Other libraries that interpose (libtsan, libjsig) build signal() upon sigaction(), which is ours. */
static sighandler_t signal_by_sigaction(int sig, sighandler_t fn)
{
	struct sigaction sa = {.sa_handler = fn, .sa_flags = SA_RESTART}, old;

	return sigaction(sig, &sa, &old) < 0 ? SIG_ERR : old.sa_handler;
}

static void test_reentered(void **state)
{
	sighandler_t (*libc)(int, sighandler_t) = cv_real.signal;
	uint32_t seen;

	(void)state;
	install(SIGUSR2, 0);
	cv_real.signal = signal_by_sigaction;
	assert_ptr_equal(signal(SIGUSR2, other), plain);
	assert_ptr_equal(signal(SIGUSR2, plain), other);
	cv_real.signal = libc;
	seen = cv_signals_seen();
	raise(SIGUSR2);
	assert_int_equal(ran, SIGUSR2);
	assert_int_not_equal(cv_signals_seen(), seen);
	assert_true(cv_signals_restart(seen));
}

/* The low half wraps without touching the high half. */
static void test_wrap_around(void **state)
{
	uint32_t seen;

	(void)state;
	install(SIGUSR1, SA_RESTART);
	cv_signals_here |= 0xffff;
	seen = cv_signals_seen();
	raise(SIGUSR1);
	assert_int_not_equal(cv_signals_seen(), seen);
	assert_true(cv_signals_restart(seen));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_before), cmocka_unit_test(test_watch),	cmocka_unit_test(test_change), cmocka_unit_test(test_signal),
		cmocka_unit_test(test_sigset), cmocka_unit_test(test_reset),	cmocka_unit_test(test_thread), cmocka_unit_test(test_jump),
		cmocka_unit_test(test_borrowed), cmocka_unit_test(test_reentered), cmocka_unit_test(test_wrap_around),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
