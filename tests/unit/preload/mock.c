/* SPDX-License-Identifier: Apache-2.0 */
#include "mock.h"
#include "base/sys.h"

struct mock mock;
static struct cv_sock socks[16];
static unsigned socks_used;
static bool internal[4096];

int mock_setup(void **state)
{
	(void)state;
	memset(&mock, 0, sizeof(mock));
	memset(internal, 0, sizeof(internal));
	memset(socks, 0, sizeof(socks));
	socks_used = 0;
	mock.out_max = SIZE_MAX;
	cv_fd_forget();
	atomic_store(&cv_level, CV_LEVEL_ON);
	atomic_store(&cv_tracking, true);
	return 0;
}

struct cv_sock *mock_sock(int fd)
{
	struct cv_sock *s = &socks[socks_used++];

	s->mode = CV_LINKED;
	s->refs = 1;
	s->fd = fd;
	assert_int_equal(cv_fd_set(fd, (uintptr_t)s), 0);
	return s;
}

int mock_pair(int *peer)
{
	int fds[2];

	assert_int_equal(cv_sys4(SYS_socketpair, AF_UNIX, SOCK_STREAM, 0, fds), 0);
	*peer = fds[1];
	return fds[0];
}

void mock_feed(const char *text)
{
	mock.in_len = strlen(text);
	memcpy(mock.in, text, mock.in_len);
}

void mock_internal(int fd, bool on)
{
	internal[fd] = on;
}

/* ---- start.c -------------------------------------------------------------------------------------------------------------------- */

_Atomic bool cv_tracking;
static bool barred;
bool cv_up(void)
{
	return !barred && cv_on();
}
bool cv_off(void)
{
	return barred;
}
void cv_bar(void)
{
	barred = true;
}

/* ---- sock.c, sock_life.c, io.c ----------------------------------------------------------------------------------------------------- */

static ssize_t moved(struct cv_sock *s, int flags, bool *bracket)
{
	mock.last = s;
	mock.flags = flags;
	if (mock.error) {
		errno = mock.error;
		return -1;
	}
	if (!mock.real)
		return 0;
	*bracket = true;
	s->in_kernel++;
	return CV_IO_REAL;
}

ssize_t cv_io_send(struct cv_sock *s, int fd, const struct iovec *iov, int n, int flags, bool *bracket)
{
	ssize_t r = moved(s, flags, bracket);
	size_t done = 0;

	(void)fd;
	for (int i = 0; r == 0 && i < n; i++) {
		size_t len = cv_min_u64(iov[i].iov_len, mock.out_max - done);

		if (len)
			memcpy(mock.out + mock.out_len, iov[i].iov_base, len);
		mock.out_len += len;
		done += len;
	}
	return r < 0 ? r : (ssize_t)done;
}

ssize_t cv_io_recv(struct cv_sock *s, int fd, const struct iovec *iov, int n, int flags, bool *bracket)
{
	ssize_t r = moved(s, flags, bracket);
	size_t done = 0;

	(void)fd;
	for (int i = 0; r == 0 && i < n; i++) {
		size_t len = cv_min_u64(iov[i].iov_len, mock.in_len - done);

		memcpy(iov[i].iov_base, mock.in + done, len);
		done += len;
	}
	if (r == 0 && !(flags & MSG_PEEK)) {
		mock.in_len -= done;
		memmove(mock.in, mock.in + done, mock.in_len);
	}
	return r < 0 ? r : (ssize_t)done;
}

void cv_sock_left_last(struct cv_sock *s)
{
	mock.last = s;
	mock.leaves++;
}

void cv_sock_qualify(struct cv_sock *s)
{
	(void)s;
}

void cv_sock_new(int fd, enum cv_role role, bool nonblock)
{
	mock.news++;
	mock.fd = fd;
	mock.role = (int)role;
	mock.nonblock = nonblock;
	mock_sock(fd);
	errno = ENOTTY; /* the wrappers must not let it through */
}

int cv_sock_fall_back(struct cv_sock *s, enum cv_leave how, enum cv_reason why, bool stay_out)
{
	mock.last = s;
	mock.fall_backs++;
	mock.how = (int)how;
	mock.why = (int)why;
	mock.stay_out = stay_out;
	if (stay_out)
		cv_fd_retag((uintptr_t)s, (uintptr_t)s | CV_FD_OUT);
	return 0;
}

void cv_sock_dup(struct cv_sock *s, int newfd)
{
	mock.dups++;
	s->refs++;
	cv_fd_set(newfd, cv_fd_get(s->fd));
}

static void drop(struct cv_sock *s, int fd)
{
	mock.last = s;
	mock.fd = fd;
	s->refs--;
	cv_fd_set(fd, 0);
	if (s->fd == fd)
		s->fd = cv_fd_find((uintptr_t)s, -1);
	errno = ENOTTY;
}

int cv_sock_close(struct cv_sock *s, int fd)
{
	mock.closed++;
	drop(s, fd);
	return (int)cv_sys1(SYS_close, fd);
}

void cv_sock_vanished(struct cv_sock *s, int fd)
{
	mock.vanished++;
	drop(s, fd);
}

int cv_sock_error(struct cv_sock *s, int fd)
{
	mock.last = s;
	mock.fd = fd;
	return mock.error;
}

int cv_sock_shutdown(struct cv_sock *s, int fd, int how)
{
	mock.last = s;
	mock.fd = fd;
	mock.shut = how + 1;
	return -mock.error;
}

int cv_sock_ioctl(struct cv_sock *s, int fd, unsigned long req, int *out)
{
	(void)fd;
	(void)req;
	mock.last = s;
	*out = (int)mock.in_len;
	return mock.real ? CV_IO_REAL : 0;
}

void cv_sock_fork_prepare(void)
{
	mock.forks += 1;
}
void cv_sock_fork_parent(void)
{
	mock.forks += 10;
}
void cv_sock_fork_child(void)
{
	mock.forks += 100;
}
void cv_sock_uring(void)
{
	mock.uring++;
}
void cv_sock_exit(void)
{
	mock.exits++;
	if (mock.exit_seen)
		++*mock.exit_seen;
}

/* ---- the rest ------------------------------------------------------------------------------------------------------------------------ */

int cv_epoll_close(struct cv_epoll *e, int fd)
{
	(void)e;
	if (fd < 0) {
		mock.ep_vanished++;
		return 0;
	}
	mock.ep_closed++;
	cv_fd_set(fd, 0);
	return (int)cv_sys1(SYS_close, fd);
}
void cv_epoll_dup(struct cv_epoll *e, int newfd)
{
	mock.ep_dups++;
	cv_fd_set(newfd, (uintptr_t)e | CV_FD_EPOLL);
}
void cv_epoll_fork_prepare(void)
{
}
void cv_epoll_fork_parent(void)
{
}
void cv_epoll_forked(void)
{
}
void cv_agent_fork_prepare(void)
{
}
void cv_agent_fork_parent(void)
{
}
void cv_agent_fork_child(void)
{
}
void cv_stats_forked(void)
{
}
void cv_signals_fork_done(void)
{
}

void cv_signals_forked(void)
{
}
_Atomic uint32_t cv_fd_making;

void cv_fd_made(void)
{
}

bool cv_fd_internal(int fd)
{
	return fd >= 0 && fd < (int)CV_ARRAY_LEN(internal) && internal[fd];
}
