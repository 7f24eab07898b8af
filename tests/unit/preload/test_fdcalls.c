/* SPDX-License-Identifier: Apache-2.0 */
/* fdcalls.c, proc.c, spawn.c: what descriptors and processes do to the table. */
#include "mock.h"
#include "base/sys.h"
#include <linux/close_range.h>
#include <sys/resource.h>
#include <sys/syscall.h>

static bool is_open(int fd)
{
	return cv_sys2(SYS_fcntl, fd, F_GETFD) >= 0;
}

/* A pipe's read end, moved to a number of our choice. */
static int open_at(int fd)
{
	int p[2];

	assert_int_equal(cv_sys2(SYS_pipe2, p, 0), 0);
	assert_int_equal(cv_sys3(SYS_dup3, p[0], fd, 0), fd);
	cv_sys1(SYS_close, p[0]);
	cv_sys1(SYS_close, p[1]);
	return fd;
}

/* Where the tests put theirs; nothing else is open up there. */
#define BASE 300

static int low_and_quiet(void **state)
{
	cv_sys3(SYS_close_range, BASE, ~0u, 0);
	return mock_setup(state);
}

static void test_close(void **state)
{
	int fd = open_at(BASE);
	struct cv_sock *s = mock_sock(fd);

	(void)state;
	assert_int_equal(close(fd), 0);
	assert_ptr_equal(mock.last, s);
	assert_int_equal(mock.closed, 1);
	assert_false(is_open(fd));
	assert_int_equal(close(fd), -1);
	assert_int_equal(errno, EBADF);
	/* excluded ones too, and those that nothing is known of */
	open_at(fd);
	cv_fd_set(fd, (uintptr_t)mock_sock(fd) | CV_FD_OUT);
	assert_int_equal(close(fd), 0);
	assert_int_equal(mock.closed, 2);
	open_at(fd);
	cv_fd_set(fd, CV_FD_OTHER | CV_FD_OTHER_TCP);
	assert_int_equal(close(fd), 0);
	assert_int_equal(cv_fd_get(fd), 0);
	open_at(fd);
	cv_fd_set(fd, (uintptr_t)s | CV_FD_EPOLL);
	assert_int_equal(close(fd), 0);
	assert_int_equal(mock.ep_closed, 1);
	assert_false(is_open(fd));
	/* what the engine reports is what close() says */
	mock_sock(fd);
	assert_int_equal(close(fd), -1);
	assert_int_equal(errno, EBADF);
}

static void test_internal(void **state)
{
	int fd = open_at(BASE), other = open_at(BASE + 1);

	(void)state;
	mock_internal(fd, true);
	assert_int_equal(close(fd), -1);
	assert_int_equal(errno, EBADF);
	assert_int_equal(dup(fd), -1);
	assert_int_equal(errno, EBADF);
	assert_int_equal(fcntl(fd, F_DUPFD, 3), -1);
	assert_int_equal(errno, EBADF);
	assert_int_equal(dup2(fd, other), -1);
	assert_int_equal(errno, EBADF);
	assert_int_equal(dup2(other, fd), -1);
	assert_int_equal(errno, EBUSY);
	assert_int_equal(dup3(other, fd, 0), -1);
	assert_int_equal(errno, EBUSY);
	assert_true(is_open(fd));
	assert_true(is_open(other));
}

static void test_close_range(void **state)
{
	(void)state;
	for (int i = 0; i < 10; i++)
		open_at(BASE + i);
	mock_internal(BASE + 2, true);
	mock_internal(BASE + 9, true);
	mock_sock(BASE + 4);
	mock_sock(BASE + 5);
	cv_fd_set(BASE + 6, CV_FD_OTHER | CV_FD_OTHER_TCP);
	/* CLOEXEC closes nothing */
	assert_int_equal(close_range(BASE, BASE + 8, CLOSE_RANGE_CLOEXEC), 0);
	assert_int_equal(mock.closed, 0);
	assert_true(cv_sys2(SYS_fcntl, BASE + 4, F_GETFD) & FD_CLOEXEC);
	errno = 5;
	assert_int_equal(close_range(BASE + 1, ~0u, 0), 0);
	assert_int_equal(errno, 5);
	assert_int_equal(mock.closed, 2);
	for (int i = 0; i < 10; i++)
		assert_int_equal(is_open(BASE + i), i == 0 || i == 2 || i == 9);
	assert_int_equal(cv_fd_get(BASE + 4), 0);
	assert_int_equal(cv_fd_get(BASE + 6), 0);
	assert_int_equal(close_range(5, 4, 0), -1);
	assert_int_equal(errno, EINVAL);
	assert_int_equal(close_range(BASE, BASE, 64), -1);
	assert_int_equal(errno, EINVAL);
	assert_true(is_open(BASE));
	/* the ends of the range, exactly */
	open_at(BASE + 1);
	mock_internal(BASE + 2, false);
	mock_internal(BASE + 1, true);
	assert_int_equal(close_range(BASE, BASE + 1, 0), 0);
	assert_false(is_open(BASE));
	assert_true(is_open(BASE + 1));
	assert_true(is_open(BASE + 2));
	assert_int_equal(close_range(BASE + 1, BASE + 2, 0), 0);
	assert_true(is_open(BASE + 1));
	assert_false(is_open(BASE + 2));
}

static void test_closefrom(void **state)
{
	(void)state;
	for (int i = 0; i < 4; i++)
		open_at(BASE + i);
	mock_internal(BASE + 2, true);
	mock_sock(BASE + 1);
	closefrom(BASE + 1);
	assert_true(is_open(BASE));
	assert_false(is_open(BASE + 1));
	assert_true(is_open(BASE + 2));
	assert_false(is_open(BASE + 3));
	assert_int_equal(mock.closed, 1);
}

static void test_dup(void **state)
{
	int fd = open_at(BASE), d;
	struct cv_sock *s = mock_sock(fd);

	(void)state;
	d = dup(fd);
	assert_ptr_equal(cv_fd_sock(d), s);
	assert_int_equal(close(d), 0);
	d = fcntl(fd, F_DUPFD_CLOEXEC, BASE + 10);
	assert_int_equal(d, BASE + 10);
	assert_ptr_equal(cv_fd_sock(d), s);
	d = fcntl64(fd, F_DUPFD, BASE + 20);
	assert_ptr_equal(cv_fd_sock(d), s);
	assert_int_equal(dup2(fd, BASE + 30), BASE + 30);
	assert_ptr_equal(cv_fd_sock(BASE + 30), s);
	assert_int_equal(dup3(fd, BASE + 31, O_CLOEXEC), BASE + 31);
	assert_int_equal(mock.dups, 5);
	assert_int_equal(s->refs, 5);
	/* the same onto itself: nothing happens */
	assert_int_equal(dup2(fd, fd), fd);
	assert_int_equal(dup3(fd, fd, 0), -1);
	assert_int_equal(errno, EINVAL);
	assert_int_equal(mock.dups, 5);
	assert_int_equal(dup2(-1, fd), -1);
	assert_int_equal(errno, EBADF);
	assert_ptr_equal(cv_fd_sock(fd), s);
	/* epoll and unconnected ones */
	cv_fd_set(BASE + 30, 0);
	cv_fd_set(BASE + 31, (uintptr_t)s | CV_FD_EPOLL);
	assert_int_equal(dup2(BASE + 31, BASE + 32), BASE + 32);
	assert_int_equal(mock.ep_dups, 1);
	cv_fd_set(BASE + 30, CV_FD_OTHER | CV_FD_OTHER_TCP);
	assert_int_equal(dup2(BASE + 30, BASE + 33), BASE + 33);
	assert_int_equal(cv_fd_get(BASE + 33) & ((1 << CV_FD_OTHER_GROUP) - 1), CV_FD_OTHER | CV_FD_OTHER_TCP | CV_FD_OTHER_SHARED);
	assert_int_equal(cv_fd_get(BASE + 30), cv_fd_get(BASE + 33));
}

/* Onto a socket in play: it is closed in our sense, by another descriptor, after the kernel's one step. */
static void test_dup_over(void **state)
{
	int fd = open_at(BASE), to = open_at(BASE + 1);
	struct cv_sock *s = mock_sock(to), *t;

	(void)state;
	assert_int_equal(dup2(fd, to), to);
	assert_int_equal(mock.dups, 1);
	assert_int_equal(mock.vanished, 1);
	assert_int_equal(mock.closed, 1);
	assert_int_equal(s->refs, 0);
	assert_true(mock.fd >= 512); /* the last one dropped, by a close that can linger, was the further one */
	assert_int_equal(cv_fd_get(to), 0);
	assert_int_equal(cv_fd_find((uintptr_t)s, -1), -1);
	assert_true(is_open(to));
	/* another socket takes its place */
	t = mock_sock(fd);
	s = mock_sock(to);
	assert_int_equal(dup3(fd, to, 0), to);
	assert_ptr_equal(cv_fd_sock(to), t);
	assert_int_equal(s->refs, 0);
	assert_int_equal(t->refs, 2);
	/* a duplicate of itself */
	assert_int_equal(dup2(fd, to), to);
	assert_ptr_equal(cv_fd_sock(to), t);
	assert_int_equal(t->refs, 2);
	/* nothing to put there: it stays */
	assert_int_equal(dup2(BASE + 50, to), -1);
	assert_int_equal(errno, EBADF);
	assert_ptr_equal(cv_fd_sock(to), t);
	assert_int_equal(t->refs, 2);
}

/* stdio writes 0 to 2 past us. */
static void test_dup_stdio(void **state)
{
	int fd = open_at(BASE), keep = (int)cv_sys3(SYS_fcntl, 0, F_DUPFD_CLOEXEC, 100);

	(void)state;
	mock_sock(fd);
	assert_int_equal(dup2(fd, 0), 0);
	assert_int_equal(mock.fall_backs, 1);
	assert_int_equal(mock.how, CV_LEAVE_HANDOVER);
	assert_int_equal(mock.why, CV_REASON_STDIO);
	assert_int_equal(cv_fd_tag(cv_fd_get(0)), CV_FD_OUT);
	cv_fd_set(0, 0);
	if (keep >= 0)
		assert_int_equal(cv_sys3(SYS_dup3, keep, 0, 0), 0);
	else
		cv_sys1(SYS_close, 0);
	cv_sys1(SYS_close, keep);
}

/* A number comes back that we thought taken. */
static void test_stale(void **state)
{
	int fd, fds[2];

	(void)state;
	fd = dup(1);
	cv_sys1(SYS_close, fd);
	mock_sock(fd);
	assert_int_equal(eventfd(0, 0), fd);
	assert_int_equal(mock.vanished, 1);
	assert_int_equal(mock.fd, fd);
	cv_sys1(SYS_close, fd);
	mock_sock(fd);
	errno = 3;
	assert_int_equal(socket(AF_UNIX, SOCK_STREAM, 0), fd);
	assert_int_equal(errno, 3);
	assert_int_equal(mock.vanished, 2);
	cv_sys1(SYS_close, fd);
	cv_fd_set(fd, (uintptr_t)mock.last | CV_FD_EPOLL);
	assert_int_equal(pipe(fds), 0);
	assert_int_equal(fds[0], fd);
	assert_int_equal(mock.ep_vanished, 1);
	assert_int_equal(cv_fd_get(fd), 0);
	mock_sock(fds[1]);
	cv_sys1(SYS_close, fds[1]);
	assert_int_equal(dup(fd), fds[1]);
	assert_int_equal(mock.vanished, 3);
	cv_sys1(SYS_close, fds[0]);
	cv_sys1(SYS_close, fds[1]);
}

/* ---- processes ------------------------------------------------------------------------------------------------------------------------- */

static int status_of(pid_t pid)
{
	int status = -1;

	assert_int_equal(waitpid(pid, &status, 0), pid);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + status;
}

/* libtsan makes a fork of every vfork, without us too: its child shares no memory. */
#ifdef __SANITIZE_THREAD__
#define VFORK_SHARES 0
#else
#define VFORK_SHARES 1
#endif

/* In a vfork child everything is the kernel's, and the parent's table stays. */
static void test_vfork(void **state)
{
	int fd = open_at(BASE), other = open_at(BASE + 1);
	struct cv_sock *s = mock_sock(fd);
	volatile int bad = 0;
	pid_t pid;

	(void)state;
	mock_internal(BASE + 5, true);
	pid = vfork();
	if (pid == 0) {
		bad |= close(fd) || is_open(fd) ? 1 : 0;
		bad |= dup2(other, fd) != fd ? 2 : 0;
		bad |= dup(other) < 0 ? 4 : 0;
		bad |= close_range(BASE, ~0u, 0) || is_open(other) ? 8 : 0;
		bad |= socket(AF_INET, SOCK_STREAM, 0) < 0 ? 16 : 0;
		bad |= mock.closed || mock.dups || mock.vanished ? 32 : 0;
		_exit(7);
	}
	assert_int_equal(bad, 0);
	assert_int_equal(status_of(pid), 7);
	assert_int_equal(mock.exits, 0);
	assert_ptr_equal(cv_fd_sock(fd), s);
	assert_true(is_open(fd));
	/* and the parent is itself again */
	assert_int_equal(close(fd), 0);
	assert_int_equal(mock.closed, 1);
	assert_int_equal(cv_vforks, 0);
	pid = __vfork();
	if (pid == 0)
		_exit(3);
	assert_int_equal(status_of(pid), 3);
	assert_false(cv_borrowed());
	assert_int_equal(cv_vforks, 0);
}

/* A vfork child that gives a socket in play to the program it becomes. */
static void test_vfork_exec(void **state)
{
	int fd = open_at(BASE);
	struct cv_sock *s = mock_sock(fd);
	pid_t pid;

	(void)state;
	pid = vfork();
	if (pid == 0) {
		dup2(fd, 0);
		execl("/bin/true", "true", (char *)NULL);
		_exit(99);
	}
	assert_int_equal(status_of(pid), 0);
	if (!VFORK_SHARES)
		skip();
	assert_int_equal(mock.fall_backs, 1); /* the dup2; then fd itself, which has no CLOEXEC, is out already */
	assert_ptr_equal(mock.last, s);
	assert_int_equal(mock.how, CV_LEAVE_HANDOVER);
	assert_int_equal(mock.why, CV_REASON_EXEC);
	assert_true(mock.stay_out); /* we live on beside the program that uses it */
	assert_int_equal(cv_fd_get(fd), (uintptr_t)s | CV_FD_OUT);
	assert_int_equal(cv_fd_get(0), 0);
}

static void test_fork(void **state)
{
	pid_t pid = fork();

	(void)state;
	if (pid == 0)
		_exit(mock.forks == 101 ? 0 : 1);
	assert_int_equal(status_of(pid), 0);
	assert_int_equal(mock.forks, 11);
	pid = _Fork();
	if (pid == 0)
		cv_real._exit(cv_tracks() || !cv_off() || mock.forks != 11 ? 1 : 0);
	assert_int_equal(status_of(pid), 0);
	assert_true(cv_tracks());
}

/* The child forgets: what it does to its numbers is nobody's business. */
static void test_raw_fork(void **state)
{
	int fd = open_at(BASE);
	pid_t pid;

	(void)state;
	mock_sock(fd);
	pid = _Fork();
	if (pid == 0)
		cv_real._exit(close(fd) || mock.closed || cv_fd_get(fd) ? 1 : 0);
	assert_int_equal(status_of(pid), 0);
	assert_non_null(cv_fd_sock(fd));
}

/* Whichever way a process ends, once. */
static void test_exit(void **state)
{
	int *seen = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	pid_t pid;

	(void)state;
	mock.exit_seen = seen;
	for (int how = 0; how < 4; how++) {
		*seen = 0;
		pid = fork();
		if (pid == 0) {
			if (how == 0)
				_exit(5);
			if (how == 1)
				_Exit(5);
			if (how == 2)
				syscall(SYS_exit_group, 5);
			exit(5); /* the destructor */
		}
		assert_int_equal(status_of(pid), 5);
		assert_int_equal(*seen, 1);
	}
	*seen = 0;
	pid = vfork();
	if (pid == 0)
		_exit(5);
	assert_int_equal(status_of(pid), 5);
	if (VFORK_SHARES)
		assert_int_equal(*seen, 0);
	munmap(seen, 4096);
}

extern char **environ;

static void test_exec(void **state)
{
	int fd = open_at(BASE), safe = open_at(BASE + 1), plain = open_at(BASE + 2);
	struct cv_sock *s = mock_sock(fd);

	(void)state;
	mock_sock(safe);
	cv_sys3(SYS_fcntl, safe, F_SETFD, FD_CLOEXEC);
	mock_sock(plain)->mode = CV_PLAIN;
	assert_int_equal(execl("/nonexistent", "x", (char *)NULL), -1);
	assert_int_equal(errno, ENOENT);
	assert_int_equal(mock.fall_backs, 1);
	assert_ptr_equal(mock.last, s);
	assert_int_equal(mock.why, CV_REASON_EXEC);
	assert_int_equal(mock.how, CV_LEAVE_HANDOVER);
	assert_false(mock.stay_out);
	mock.fall_backs = 0;
	assert_int_equal(syscall(SYS_execve, "/nonexistent", NULL, NULL), -1);
	assert_int_equal(mock.fall_backs, 1);
	assert_int_equal(system("exit 6") >> 8, 6);
	assert_int_equal(mock.fall_backs, 2);
}

/* Every form hands on what it was given. */
static void test_execl_args(void **state)
{
	static char *env[] = {"CV_T=given", NULL};
	const char *script = "[ $# = 2 ] && [ $1 = a ] && [ \"$2\" = 'b c' ] && [ \"$CV_T\" = \"$0\" ]";
	pid_t pid;

	(void)state;
	setenv("CV_T", "own", 1);
	pid = fork();
	if (pid == 0) {
		execl("/bin/sh", "sh", "-c", script, "own", "a", "b c", (char *)NULL);
		_exit(99);
	}
	assert_int_equal(status_of(pid), 0);
	pid = fork();
	if (pid == 0) {
		execlp("sh", "sh", "-c", script, "own", "a", "b c", (char *)NULL);
		_exit(99);
	}
	assert_int_equal(status_of(pid), 0);
	pid = fork();
	if (pid == 0) {
		execle("/bin/sh", "sh", "-c", script, "given", "a", "b c", (char *)NULL, env);
		_exit(99);
	}
	assert_int_equal(status_of(pid), 0);
}

static void test_spawn(void **state)
{
	int fd = open_at(BASE), other = open_at(BASE + 1);
	posix_spawn_file_actions_t fa, fb;
	char *argv[] = {"sh", "-c", "exit 4", NULL};
	struct cv_sock *s = mock_sock(fd);
	pid_t pid;

	(void)state;
	mock_sock(other);
	cv_sys3(SYS_fcntl, fd, F_SETFD, FD_CLOEXEC);
	cv_sys3(SYS_fcntl, other, F_SETFD, FD_CLOEXEC);
	assert_int_equal(posix_spawn_file_actions_init(&fa), 0);
	assert_int_equal(posix_spawn_file_actions_init(&fb), 0);
	assert_int_equal(posix_spawn_file_actions_adddup2(&fa, fd, 0), 0);
	assert_int_equal(posix_spawn(&pid, "/bin/sh", &fb, NULL, argv, environ), 0);
	assert_int_equal(status_of(pid), 4);
	assert_int_equal(mock.fall_backs, 0);
	assert_int_equal(posix_spawnp(&pid, "sh", &fa, NULL, argv, environ), 0);
	assert_int_equal(status_of(pid), 4);
	assert_int_equal(mock.fall_backs, 1);
	assert_ptr_equal(mock.last, s);
	assert_true(mock.stay_out);
	assert_int_equal(posix_spawn_file_actions_destroy(&fa), 0);
	assert_int_equal(posix_spawn_file_actions_init(&fa), 0);
	assert_int_equal(posix_spawn(&pid, "/bin/sh", &fa, NULL, argv, environ), 0);
	assert_int_equal(status_of(pid), 4);
	assert_int_equal(mock.fall_backs, 1);
	/* more than we can remember: everybody falls back, and nobody is forgotten */
	for (int i = 0; i < 65; i++)
		assert_int_equal(posix_spawn_file_actions_adddup2(&fb, other, BASE + 10), 0); /* fd is out already */
	assert_int_equal(posix_spawn(&pid, "/bin/sh", NULL, NULL, argv, environ), 0);
	assert_int_equal(status_of(pid), 4);
	assert_int_equal(mock.fall_backs, 2);
	posix_spawn_file_actions_destroy(&fa);
	posix_spawn_file_actions_destroy(&fb);
}

static void test_daemon(void **state)
{
	int p[2];
	char c[2] = "";
	pid_t pid;

	(void)state;
	assert_int_equal(cv_sys2(SYS_pipe2, p, 0), 0);
	pid = fork();
	if (pid == 0) {
		if (daemon(0, 0) == 0) {
			char cwd[8] = "";

			c[0] = getsid(0) != getppid() && getcwd(cwd, sizeof(cwd)) && !strcmp(cwd, "/") ? '1' : '0';
			c[1] = cv_sys3(SYS_write, 1, "x", 1) == 1 && cv_sys3(SYS_read, 0, cwd, 1) == 0 ? '1' : '0';
			cv_sys3(SYS_write, p[1], c, 2);
			cv_real._exit(0);
		}
		cv_real._exit(9);
	}
	assert_int_equal(status_of(pid), 0);
	cv_sys1(SYS_close, p[1]);
	assert_int_equal(cv_sys3(SYS_read, p[0], c, 2), 2);
	assert_memory_equal(c, "11", 2);
	cv_sys1(SYS_close, p[0]);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup(f, low_and_quiet)
	const struct CMUnitTest tests[] = {
		T(test_close),	   T(test_internal), T(test_close_range), T(test_closefrom), T(test_dup),	   T(test_dup_over),
		T(test_dup_stdio), T(test_stale),    T(test_vfork),	  T(test_vfork_exec), T(test_fork),	   T(test_raw_fork),
		T(test_exit),	   T(test_exec),     T(test_execl_args),  T(test_spawn),     T(test_daemon),
	};

	cv_proc_start();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
