/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Everything that reads a socket. cv_io_recv() serves those in play; the rest is the kernel's.
 */
#include "../base/clock.h"
#include "wrap.h"
#include <limits.h>
#include <string.h>

#define SCRATCH 16384 /* what MSG_TRUNC throws away goes through here */

/* The kernel refuses these, or has nothing to do, before it looks at the socket: a plain call is right whatever its state. */
static bool nothing_to_read(const struct iovec *iov, int cnt)
{
	if (unlikely(!iov || cnt <= 0 || cnt > IOV_MAX))
		return true;
	for (int i = 0; i < cnt; i++)
		if (likely(iov[i].iov_len))
			return false;
	return true;
}

/* MSG_TRUNC on TCP: the bytes are consumed (or, with MSG_PEEK, counted) and not copied. */
static CV_COLD ssize_t recv_discard(struct cv_sock *s, int fd, size_t n, int flags, bool *bracket)
{
	char scratch[SCRATCH];
	struct iovec iov[16];
	int cnt = 0;

	if ((flags & MSG_WAITALL) && n > sizeof(scratch) * CV_ARRAY_LEN(iov)) {
		cv_sock_fall_back(s, CV_LEAVE_HANDOVER, CV_REASON_CALL, true);
		return CV_IO_REAL;
	}
	for (; n && cnt < (int)CV_ARRAY_LEN(iov); cnt++) {
		iov[cnt].iov_base = scratch;
		iov[cnt].iov_len = cv_min_u64(n, sizeof(scratch));
		n -= iov[cnt].iov_len;
	}
	return cv_io_recv(s, fd, iov, cnt, flags & ~MSG_TRUNC, bracket);
}

/* Flags that are not the stream's. True: make the plain call. */
static CV_COLD bool recv_kernel_only(struct cv_sock *s, int flags)
{
	if (flags & MSG_ERRQUEUE)
		return true; /* the twin's own queue */
	cv_sock_fall_back(s, CV_LEAVE_STAY, CV_REASON_OOB, true);
	return true;
}

/* recv() of nothing waits for something to be there, and takes none of it. (read() of nothing does not even look.) */
static CV_COLD ssize_t recv_none(struct cv_sock *s, int fd, int flags, bool *bracket)
{
	char byte;
	struct iovec iov = {&byte, 1};
	ssize_t r = cv_io_recv(s, fd, &iov, 1, (flags & ~(MSG_TRUNC | MSG_WAITALL)) | MSG_PEEK, bracket);

	return r > 0 ? 0 : r;
}

static inline ssize_t recv_one(struct cv_sock *s, int fd, void *buf, size_t n, int flags, bool *bracket)
{
	struct iovec iov = {buf, n};

	if (unlikely(flags & (MSG_OOB | MSG_ERRQUEUE)) && recv_kernel_only(s, flags))
		return CV_IO_REAL;
	if (unlikely(n == 0))
		return recv_none(s, fd, flags, bracket);
	if (unlikely(n > SSIZE_MAX || (!buf && !(flags & MSG_TRUNC))))
		return CV_IO_REAL;
	if (unlikely(flags & MSG_TRUNC))
		return recv_discard(s, fd, n, flags, bracket);
	return cv_io_recv(s, fd, &iov, 1, flags, bracket);
}

static __attribute__((noinline)) ssize_t read_tracked(struct cv_sock *s, int fd, void *buf, size_t n)
{
	CV_IO_TRACKED(s, likely(n) ? recv_one(s_, fd, buf, n, 0, &bracket_) : CV_IO_REAL, cv_real.read(fd, buf, n));
}

ssize_t read(int fd, void *buf, size_t n)
{
	struct cv_sock *s = cv_fd_sock(fd);

	return likely(!s) ? cv_real.read(fd, buf, n) : read_tracked(s, fd, buf, n);
}

ssize_t __read_chk(int fd, void *buf, size_t n, size_t size)
{
	if (unlikely(n > size))
		return cv_real.__read_chk(fd, buf, n, size); /* does not return */
	return read(fd, buf, n);
}

static __attribute__((noinline)) ssize_t recv_tracked(struct cv_sock *s, int fd, void *buf, size_t n, int flags)
{
	CV_IO_TRACKED(s, recv_one(s_, fd, buf, n, flags, &bracket_), cv_real.recv(fd, buf, n, flags));
}

ssize_t recv(int fd, void *buf, size_t n, int flags)
{
	struct cv_sock *s = cv_fd_sock(fd);

	return likely(!s) ? cv_real.recv(fd, buf, n, flags) : recv_tracked(s, fd, buf, n, flags);
}

ssize_t __recv_chk(int fd, void *buf, size_t n, size_t size, int flags)
{
	if (unlikely(n > size))
		return cv_real.__recv_chk(fd, buf, n, size, flags);
	return recv(fd, buf, n, flags);
}

/* A TCP socket names no sender. */
static inline ssize_t recv_from(struct cv_sock *s, int fd, void *buf, size_t n, int flags, struct sockaddr *addr, socklen_t *len, bool *bracket)
{
	ssize_t r = recv_one(s, fd, buf, n, flags, bracket);

	if (r >= 0 && addr && len)
		*len = 0;
	return r;
}

ssize_t recvfrom(int fd, void *buf, size_t n, int flags, struct sockaddr *addr, socklen_t *len)
{
	CV_IO_CALL(fd, recv_from(s_, fd, buf, n, flags, addr, len, &bracket_), cv_real.recvfrom(fd, buf, n, flags, addr, len));
}

ssize_t __recvfrom_chk(int fd, void *buf, size_t n, size_t size, int flags, struct sockaddr *addr, socklen_t *len)
{
	if (unlikely(n > size))
		return cv_real.__recvfrom_chk(fd, buf, n, size, flags, addr, len);
	return recvfrom(fd, buf, n, flags, addr, len);
}

static inline ssize_t recv_vec(struct cv_sock *s, int fd, const struct iovec *iov, int cnt, int flags, bool *bracket)
{
	if (unlikely(nothing_to_read(iov, cnt)))
		return CV_IO_REAL;
	return cv_io_recv(s, fd, iov, cnt, flags, bracket);
}

ssize_t readv(int fd, const struct iovec *iov, int cnt)
{
	CV_IO_CALL(fd, recv_vec(s_, fd, iov, cnt, 0, &bracket_), cv_real.readv(fd, iov, cnt));
}

/* Offset -1 is readv with flags; any other offset the kernel refuses. Flags that we do not know may mean anything. */
static ssize_t recv_vec_at(struct cv_sock *s, int fd, const struct iovec *iov, int cnt, off64_t off, int flags, bool *bracket)
{
	if (off != -1)
		return CV_IO_REAL;
	if (flags & ~(RWF_HIPRI | RWF_NOWAIT)) {
		cv_sock_fall_back(s, CV_LEAVE_HANDOVER, CV_REASON_CALL, true);
		return CV_IO_REAL;
	}
	return recv_vec(s, fd, iov, cnt, flags & RWF_NOWAIT ? MSG_DONTWAIT : 0, bracket);
}

ssize_t preadv2(int fd, const struct iovec *iov, int cnt, off_t off, int flags)
{
	CV_IO_CALL(fd, recv_vec_at(s_, fd, iov, cnt, off, flags, &bracket_), cv_real.preadv2(fd, iov, cnt, off, flags));
}

ssize_t preadv64v2(int fd, const struct iovec *iov, int cnt, off64_t off, int flags)
{
	CV_IO_CALL(fd, recv_vec_at(s_, fd, iov, cnt, off, flags, &bracket_), cv_real.preadv64v2(fd, iov, cnt, off, flags));
}

/* ---- messages ----------------------------------------------------------------------------------------------------------------- */

static ssize_t recv_msg(struct cv_sock *s, int fd, struct msghdr *msg, int flags, bool *bracket)
{
	ssize_t r;

	if (unlikely(!msg || msg->msg_iovlen > IOV_MAX))
		return CV_IO_REAL;
	if (unlikely(flags & (MSG_OOB | MSG_ERRQUEUE)) && recv_kernel_only(s, flags))
		return CV_IO_REAL;
	if (unlikely(!msg->msg_iov && msg->msg_iovlen))
		return CV_IO_REAL;
	if (unlikely(nothing_to_read(msg->msg_iov, (int)msg->msg_iovlen))) {
		r = recv_none(s, fd, flags, bracket);
	} else if (unlikely(flags & MSG_TRUNC)) {
		size_t n = 0;

		for (size_t i = 0; i < msg->msg_iovlen; i++)
			n += cv_min_u64(msg->msg_iov[i].iov_len, SSIZE_MAX / IOV_MAX);
		r = recv_discard(s, fd, n, flags, bracket);
	} else {
		r = cv_io_recv(s, fd, msg->msg_iov, (int)msg->msg_iovlen, flags, bracket);
	}
	if (r < 0)
		return r;
	if (msg->msg_name)
		msg->msg_namelen = 0;
	msg->msg_controllen = 0;
	msg->msg_flags = flags & MSG_CMSG_CLOEXEC;
	return r;
}

/* Descriptors came with it: their numbers are new. */
static CV_COLD void recv_rights(struct msghdr *msg)
{
	for (struct cmsghdr *c = CMSG_FIRSTHDR(msg); c; c = CMSG_NXTHDR(msg, c)) {
		int fd, n = c->cmsg_len >= CMSG_LEN(0) ? (int)((c->cmsg_len - CMSG_LEN(0)) / sizeof(fd)) : 0;

		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
			continue;
		for (int i = 0; i < n; i++) {
			memcpy(&fd, CMSG_DATA(c) + (size_t)i * sizeof(fd), sizeof(fd));
			cv_fd_fresh(fd);
		}
	}
}

static ssize_t recv_msg_plain(int fd, struct msghdr *msg, int flags)
{
	ssize_t r = cv_real.recvmsg(fd, msg, flags);

	if (unlikely(r >= 0 && msg->msg_controllen) && cv_tracks())
		recv_rights(msg);
	return r;
}

ssize_t recvmsg(int fd, struct msghdr *msg, int flags)
{
	CV_IO_CALL(fd, recv_msg(s_, fd, msg, flags, &bracket_), recv_msg_plain(fd, msg, flags));
}

/* As the kernel's do_recvmmsg(): the timeout is looked at after each message; an error after the first message is not reported. */
static CV_COLD int recv_many(int fd, struct mmsghdr *vec, unsigned vlen, int flags, struct timespec *timeout)
{
	uint64_t end = 0, now;
	unsigned got = 0;
	int err = errno;

	if (timeout) {
		if (timeout->tv_sec < 0 || (unsigned long)timeout->tv_nsec >= 1000000000u) {
			errno = EINVAL;
			return -1;
		}
		end = cv_now_ns() + (timeout->tv_sec > INT_MAX ? (uint64_t)INT_MAX : (uint64_t)timeout->tv_sec) * 1000000000u + (uint64_t)timeout->tv_nsec;
	}
	for (vlen = vlen > IOV_MAX ? IOV_MAX : vlen; got < vlen; got++) {
		ssize_t r = recvmsg(fd, &vec[got].msg_hdr, flags & ~MSG_WAITFORONE);

		if (r < 0)
			break;
		vec[got].msg_len = (unsigned)r;
		if (flags & MSG_WAITFORONE)
			flags |= MSG_DONTWAIT;
		if (!timeout)
			continue;
		now = cv_now_ns();
		now = now < end ? end - now : 0;
		*timeout = cv_timespec(now);
		if (!now) {
			got++;
			break;
		}
	}
	if (!got && vlen)
		return -1;
	errno = err;
	return (int)got;
}

int recvmmsg(int fd, struct mmsghdr *vec, unsigned vlen, int flags, struct timespec *timeout)
{
	int r;

	if (cv_fd_sock(fd) && vec)
		return recv_many(fd, vec, vlen, flags, timeout);
	r = cv_real.recvmmsg(fd, vec, vlen, flags, timeout);
	if (r > 0 && cv_tracks())
		for (int i = 0; i < r; i++)
			if (vec[i].msg_hdr.msg_controllen)
				recv_rights(&vec[i].msg_hdr);
	return r;
}
