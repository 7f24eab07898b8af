/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Everything that writes a socket. cv_io_send() serves those in play and raises SIGPIPE; the rest is the kernel's.
 */
#include "wrap.h"
#include <limits.h>
#include <string.h>
#include <sys/mman.h>

static inline ssize_t send_one(struct cv_sock *s, int fd, const void *buf, size_t n, int flags, bool *bracket)
{
	struct iovec iov = {(void *)buf, n};

	if (unlikely(flags & MSG_OOB)) {
		cv_sock_fall_back(s, CV_LEAVE_STAY, CV_REASON_OOB, true);
		return CV_IO_REAL;
	}
	if (unlikely(n > SSIZE_MAX || (!buf && n)))
		return CV_IO_REAL; /* EFAULT */
	return cv_io_send(s, fd, &iov, 1, flags, bracket);
}

static __attribute__((noinline)) ssize_t write_tracked(struct cv_sock *s, int fd, const void *buf, size_t n)
{
	CV_IO_TRACKED(s, send_one(s_, fd, buf, n, 0, &bracket_), cv_real.write(fd, buf, n));
}

ssize_t write(int fd, const void *buf, size_t n)
{
	struct cv_sock *s = cv_fd_sock(fd);

	return likely(!s) ? cv_real.write(fd, buf, n) : write_tracked(s, fd, buf, n);
}

static __attribute__((noinline)) ssize_t send_tracked(struct cv_sock *s, int fd, const void *buf, size_t n, int flags)
{
	CV_IO_TRACKED(s, send_one(s_, fd, buf, n, flags, &bracket_), cv_real.send(fd, buf, n, flags));
}

ssize_t send(int fd, const void *buf, size_t n, int flags)
{
	struct cv_sock *s = cv_fd_sock(fd);

	return likely(!s) ? cv_real.send(fd, buf, n, flags) : send_tracked(s, fd, buf, n, flags);
}

/* MSG_FASTOPEN connects. */
static CV_COLD ssize_t fast_open(int fd, uintptr_t e, ssize_t r)
{
	if (cv_fd_tag(e) == CV_FD_OTHER && (e & CV_FD_OTHER_TCP) && (r >= 0 || errno == EINPROGRESS))
		cv_sock_connecting(fd, e);
	return r;
}

static inline ssize_t send_to_plain(int fd, const void *buf, size_t n, int flags, const struct sockaddr *addr, socklen_t len)
{
	uintptr_t e = unlikely(flags & MSG_FASTOPEN) ? cv_fd_get(fd) : 0;
	ssize_t r = cv_real.sendto(fd, buf, n, flags, addr, len);

	return likely(!e) ? r : fast_open(fd, e, r);
}

/* A connected TCP socket does not look at the address. */
ssize_t sendto(int fd, const void *buf, size_t n, int flags, const struct sockaddr *addr, socklen_t len)
{
	CV_IO_CALL(fd, send_one(s_, fd, buf, n, flags, &bracket_), send_to_plain(fd, buf, n, flags, addr, len));
}

/* A vector without a byte in it moves nothing and is not even shown to the socket; what is malformed the kernel refuses. */
static bool nothing_to_send(const struct iovec *iov, int cnt)
{
	if (unlikely(!iov || cnt <= 0 || cnt > IOV_MAX))
		return true;
	for (int i = 0; i < cnt; i++)
		if (likely(iov[i].iov_len))
			return false;
	return true;
}

static inline ssize_t send_vec(struct cv_sock *s, int fd, const struct iovec *iov, int cnt, int flags, bool *bracket)
{
	if (unlikely(nothing_to_send(iov, cnt)))
		return CV_IO_REAL;
	return cv_io_send(s, fd, iov, cnt, flags, bracket);
}

ssize_t writev(int fd, const struct iovec *iov, int cnt)
{
	CV_IO_CALL(fd, send_vec(s_, fd, iov, cnt, 0, &bracket_), cv_real.writev(fd, iov, cnt));
}

static ssize_t send_vec_at(struct cv_sock *s, int fd, const struct iovec *iov, int cnt, off64_t off, int flags, bool *bracket)
{
	if (off != -1)
		return CV_IO_REAL;
	if (flags & ~(RWF_HIPRI | RWF_NOWAIT | RWF_SYNC | RWF_DSYNC)) {
		cv_sock_fall_back(s, CV_LEAVE_STAY, CV_REASON_CALL, true);
		return CV_IO_REAL;
	}
	return send_vec(s, fd, iov, cnt, flags & RWF_NOWAIT ? MSG_DONTWAIT : 0, bracket);
}

ssize_t pwritev2(int fd, const struct iovec *iov, int cnt, off_t off, int flags)
{
	CV_IO_CALL(fd, send_vec_at(s_, fd, iov, cnt, off, flags, &bracket_), cv_real.pwritev2(fd, iov, cnt, off, flags));
}

ssize_t pwritev64v2(int fd, const struct iovec *iov, int cnt, off64_t off, int flags)
{
	CV_IO_CALL(fd, send_vec_at(s_, fd, iov, cnt, off, flags, &bracket_), cv_real.pwritev64v2(fd, iov, cnt, off, flags));
}

/* ---- messages ----------------------------------------------------------------------------------------------------------------- */

static ssize_t send_msg(struct cv_sock *s, int fd, const struct msghdr *msg, int flags, bool *bracket)
{
	static const struct iovec none = {0};

	if (unlikely(!msg || msg->msg_iovlen > IOV_MAX || (!msg->msg_iov && msg->msg_iovlen)))
		return CV_IO_REAL;
	if (unlikely((flags & MSG_OOB) || msg->msg_controllen)) {
		cv_sock_fall_back(s, CV_LEAVE_STAY, flags & MSG_OOB ? CV_REASON_OOB : CV_REASON_CALL, true);
		return CV_IO_REAL;
	}
	return cv_io_send(s, fd, msg->msg_iovlen ? msg->msg_iov : &none, msg->msg_iovlen ? (int)msg->msg_iovlen : 1, flags, bracket);
}

/* Descriptors leave by a unix socket: whoever gets one reads the twin. */
static CV_COLD void send_rights(const struct msghdr *msg)
{
	for (struct cmsghdr *c = CMSG_FIRSTHDR(msg); c; c = CMSG_NXTHDR((struct msghdr *)msg, c)) {
		int fd, n = c->cmsg_len >= CMSG_LEN(0) ? (int)((c->cmsg_len - CMSG_LEN(0)) / sizeof(fd)) : 0;

		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
			continue;
		for (int i = 0; i < n; i++) {
			memcpy(&fd, CMSG_DATA(c) + (size_t)i * sizeof(fd), sizeof(fd));
			cv_fd_to_kernel(fd, CV_LEAVE_HANDOVER, CV_REASON_FD_PASSED);
		}
	}
}

static ssize_t send_msg_plain(int fd, const struct msghdr *msg, int flags)
{
	uintptr_t e = unlikely(flags & MSG_FASTOPEN) ? cv_fd_get(fd) : 0;
	ssize_t r;

	if (cv_tracks() && msg && msg->msg_controllen)
		send_rights(msg);
	r = cv_real.sendmsg(fd, msg, flags);
	return likely(!e) ? r : fast_open(fd, e, r);
}

ssize_t sendmsg(int fd, const struct msghdr *msg, int flags)
{
	CV_IO_CALL(fd, send_msg(s_, fd, msg, flags, &bracket_), send_msg_plain(fd, msg, flags));
}

/* As the kernel's __sys_sendmmsg(): ends after the first message that was not taken whole; an error after the first message is not reported. */
static CV_COLD int send_many(int fd, struct mmsghdr *vec, unsigned vlen, int flags)
{
	unsigned sent = 0;
	int err = errno;

	vlen = vlen > IOV_MAX ? IOV_MAX : vlen;
	while (sent < vlen) {
		struct msghdr *m = &vec[sent].msg_hdr;
		size_t total = 0;
		ssize_t r = sendmsg(fd, m, flags);

		if (r < 0)
			break;
		for (size_t i = 0; i < m->msg_iovlen; i++)
			total += m->msg_iov[i].iov_len;
		vec[sent++].msg_len = (unsigned)r;
		if ((size_t)r < total)
			break;
	}
	if (!sent && vlen)
		return -1;
	errno = err;
	return (int)sent;
}

int sendmmsg(int fd, struct mmsghdr *vec, unsigned vlen, int flags)
{
	if (cv_fd_sock(fd) && vec)
		return send_many(fd, vec, vlen, flags);
	if (cv_tracks() && vec)
		for (unsigned i = 0; i < vlen && i < IOV_MAX; i++)
			if (unlikely(vec[i].msg_hdr.msg_controllen))
				send_rights(&vec[i].msg_hdr);
	return cv_real.sendmmsg(fd, vec, vlen, flags);
}

/* ---- formatted ---------------------------------------------------------------------------------------------------------------- */

/* libc's own form writes from inside libc, past us. flag: of the fortified form (%n is checked), 0 for the plain one. */
extern int __vsnprintf_chk(char *buf, size_t n, int flag, size_t size, const char *fmt, va_list ap);

static CV_COLD int print_to_sock(int fd, int flag, const char *fmt, va_list ap)
{
	char small[2048], *buf = small;
	size_t size = sizeof(small);
	va_list again;
	ssize_t r;
	int len, done;

	va_copy(again, ap);
	len = __vsnprintf_chk(small, sizeof(small), flag, sizeof(small), fmt, ap);
	if (len >= (int)sizeof(small)) {
		size = (size_t)len + 1;
		buf = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		len = buf == MAP_FAILED ? -1 : __vsnprintf_chk(buf, size, flag, size, fmt, again);
	}
	va_end(again);
	for (done = 0; len >= 0 && done < len; done += (int)r) {
		r = write(fd, buf + done, (size_t)(len - done));
		if (r < 0)
			len = -1;
	}
	if (buf != small && buf != MAP_FAILED) {
		int err = errno;

		munmap(buf, size);
		errno = err;
	}
	return len;
}

int vdprintf(int fd, const char *fmt, va_list ap)
{
	return cv_fd_sock(fd) ? print_to_sock(fd, 0, fmt, ap) : cv_real.vdprintf(fd, fmt, ap);
}

int __vdprintf_chk(int fd, int flag, const char *fmt, va_list ap)
{
	return cv_fd_sock(fd) ? print_to_sock(fd, flag, fmt, ap) : cv_real.__vdprintf_chk(fd, flag, fmt, ap);
}

int dprintf(int fd, const char *fmt, ...)
{
	va_list ap;
	int r;

	va_start(ap, fmt);
	r = vdprintf(fd, fmt, ap);
	va_end(ap);
	return r;
}

int __dprintf_chk(int fd, int flag, const char *fmt, ...)
{
	va_list ap;
	int r;

	va_start(ap, fmt);
	r = __vdprintf_chk(fd, flag, fmt, ap);
	va_end(ap);
	return r;
}
