/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls that move bytes between files inside the kernel, and those that hand a descriptor to code which reads and writes it past us: stdio, aio, io_uring.
 */
#include "../base/sys.h"
#include "wrap.h"

#define PIECE 16384 /* of the stack: threads may have little of it */

/* One piece out, wherever the stream is now. */
static ssize_t file_send(struct cv_sock *s, int fd, const char *buf, size_t n)
{
	struct iovec iov = {(void *)buf, n};
	bool bracket = false;
	ssize_t r = cv_io_send(s, fd, &iov, 1, 0, &bracket);

	if (r != CV_IO_REAL)
		return r;
	r = cv_real.write(fd, buf, n);
	if (bracket)
		cv_sock_leave(s, r);
	return r;
}

/* By hand, from `at` on, which moves on by what was sent. What was read and could not be sent is read again by the next call. */
static ssize_t file_copy(struct cv_sock *s, int out, int in, off64_t *at, size_t n)
{
	char buf[PIECE];
	size_t sent = 0;

	while (sent < n) {
		long got = cv_sys4(SYS_pread64, in, buf, cv_min_u64(n - sent, sizeof(buf)), *at);
		ssize_t r;

		if (got < 0 && !sent)
			return got == -EISDIR ? -EINVAL : got;
		if (got <= 0)
			break;
		r = file_send(s, out, buf, (size_t)got);
		if (r < 0 && !sent)
			return -errno;
		if (r < 0)
			break;
		sent += (size_t)r;
		*at += r;
		if (r < got)
			break;
	}
	return (ssize_t)sent;
}

/* out is in play. CV_IO_REAL: make the plain call. */
static CV_COLD ssize_t file_to_sock(struct cv_sock *s, int out, int in, off64_t *off, size_t n, bool *bracket)
{
	int err = errno;
	off64_t at;
	ssize_t r;

	if (!n || (off && *off < 0))
		return CV_IO_REAL; /* nothing, or EINVAL */
	cv_sock_qualify(s);
	if (cv_sock_enter(s)) {
		*bracket = true;
		return CV_IO_REAL;
	}
	at = off ? *off : cv_sys3(SYS_lseek, in, 0, SEEK_CUR);
	if (at < 0) {
		cv_sock_fall_back(s, CV_LEAVE_STAY, CV_REASON_CALL, true); /* not a file: the kernel knows what to say */
		return CV_IO_REAL;
	}
	r = file_copy(s, out, in, &at, cv_min_u64(n, 0x7ffff000));
	if (r < 0) {
		errno = (int)-r;
		return -1;
	}
	if (off)
		*off = at;
	else
		cv_sys3(SYS_lseek, in, at, SEEK_SET);
	errno = err;
	return r;
}

ssize_t sendfile64(int out, int in, off64_t *off, size_t n)
{
	CV_IO_CALL(out, file_to_sock(s_, out, in, off, n, &bracket_), cv_real.sendfile64(out, in, off, n));
}

_Static_assert(sizeof(off_t) == sizeof(off64_t), "sendfile is sendfile64 where off_t has 64 bits");

ssize_t sendfile(int out, int in, off_t *off, size_t n)
{
	return sendfile64(out, in, off, n);
}

ssize_t splice(int in, off64_t *in_off, int out, off64_t *out_off, size_t n, unsigned flags)
{
	cv_fd_to_kernel(in, CV_LEAVE_HANDOVER, CV_REASON_CALL);
	cv_fd_to_kernel(out, CV_LEAVE_STAY, CV_REASON_CALL);
	return cv_real.splice(in, in_off, out, out_off, n, flags);
}

/* ---- stdio -------------------------------------------------------------------------------------------------------------------- */

FILE *fdopen(int fd, const char *mode)
{
	uintptr_t e = cv_fd_get(fd);

	cv_fd_to_kernel(fd, CV_LEAVE_HANDOVER, CV_REASON_STDIO);
	if (e && cv_fd_tag(e) == CV_FD_OTHER && !cv_borrowed())
		cv_fd_other(fd, e, CV_FD_OTHER); /* not connected yet: nor will it be tracked then */
	return cv_real.fdopen(fd, mode);
}

/* libc closes the descriptor itself. */
int fclose(FILE *f)
{
	int err = errno, fd;
	uintptr_t e;

	if (likely(!cv_tracks()) || !f)
		return cv_real.fclose(f);
	fd = fileno(f);
	errno = err;
	e = fd >= 0 ? cv_fd_get(fd) : 0;
	/* In play: a FILE that never went through fdopen() (freopen, a descriptor put under one by dup2). */
	if (unlikely(e) && cv_fd_tag(e) == CV_FD_SOCK && !cv_borrowed()) {
		cv_fd_to_kernel(fd, CV_LEAVE_HANDOVER, CV_REASON_STDIO);
		e = cv_fd_get(fd);
	}
	if (unlikely(e) && !cv_borrowed())
		cv_fd_stale(fd, e);
	errno = err;
	return cv_real.fclose(f);
}

/* ---- asynchronous I/O: libc's threads, the kernel's rings ------------------------------------------------------------------------ */

int aio_read(struct aiocb *cb)
{
	cv_fd_to_kernel(cb->aio_fildes, CV_LEAVE_HANDOVER, CV_REASON_CALL);
	return cv_real.aio_read(cb);
}

int aio_read64(struct aiocb64 *cb)
{
	cv_fd_to_kernel(cb->aio_fildes, CV_LEAVE_HANDOVER, CV_REASON_CALL);
	return cv_real.aio_read64(cb);
}

int aio_write(struct aiocb *cb)
{
	cv_fd_to_kernel(cb->aio_fildes, CV_LEAVE_STAY, CV_REASON_CALL);
	return cv_real.aio_write(cb);
}

int aio_write64(struct aiocb64 *cb)
{
	cv_fd_to_kernel(cb->aio_fildes, CV_LEAVE_STAY, CV_REASON_CALL);
	return cv_real.aio_write64(cb);
}

/* liburing makes its system calls itself, so that its functions are where we see it. */
int io_uring_queue_init(unsigned entries, void *ring, unsigned flags)
{
	cv_bar();
	cv_sock_uring();
	return cv_real.io_uring_queue_init(entries, ring, flags);
}

int io_uring_queue_init_params(unsigned entries, void *ring, void *params)
{
	cv_bar();
	cv_sock_uring();
	return cv_real.io_uring_queue_init_params(entries, ring, params);
}
