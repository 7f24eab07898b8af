/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How TCP connections come to be tracked: socket() and connect() for ours, accept() for theirs. And the options that decide whether one may stay.
 */
#include "../base/sys.h"
#include "wrap.h"
#include <linux/sockios.h>
#include <netinet/in.h>
#include <netinet/tcp.h>

#ifndef TCP_INQ
#define TCP_INQ 36
#endif

static bool inet(int family)
{
	return family == AF_INET || family == AF_INET6;
}

int socket(int domain, int type, int protocol)
{
	int fd = cv_real.socket(domain, type, protocol);

	cv_fd_fresh(fd);
	if (fd >= 0 && inet(domain) && (type & ~(SOCK_NONBLOCK | SOCK_CLOEXEC)) == SOCK_STREAM && (protocol == 0 || protocol == IPPROTO_TCP) &&
	    cv_up() && !cv_borrowed())
		cv_fd_set(fd, CV_FD_OTHER | CV_FD_OTHER_TCP | (type & SOCK_NONBLOCK ? CV_FD_OTHER_NONBLOCK : 0));
	return fd;
}

int socketpair(int domain, int type, int protocol, int fds[2])
{
	int r = cv_real.socketpair(domain, type, protocol, fds);

	if (r == 0) {
		cv_fd_fresh(fds[0]);
		cv_fd_fresh(fds[1]);
	}
	return r;
}

static bool other_tcp(uintptr_t e)
{
	return cv_fd_tag(e) == CV_FD_OTHER && (e & CV_FD_OTHER_TCP);
}

void cv_sock_connecting(int fd, uintptr_t e)
{
	int err = errno;

	if (cv_borrowed())
		return;
	if (cv_fd_get(fd) == e) {
		struct cv_sock *s;
		int dup;

		cv_sock_new(fd, CV_ROLE_CLIENT, (e & CV_FD_OTHER_NONBLOCK) != 0);
		s = cv_fd_sock(fd);
		/* Its duplicates are the same connection. Without memory for it they are all left alone. */
		while ((e & CV_FD_OTHER_SHARED) && (dup = cv_fd_find(e, -1)) >= 0) {
			if (s)
				cv_sock_dup(s, dup);
			else
				cv_fd_set(dup, CV_FD_OTHER);
		}
	}
	errno = err;
}

int connect(int fd, const struct sockaddr *addr, socklen_t len)
{
	uintptr_t e = cv_fd_get(fd);
	int r;

	/* Dissolves the connection. Looked at only where one is in play, whose callers are past passing wild pointers. */
	if (unlikely(e && cv_fd_tag(e) == CV_FD_SOCK && addr && len >= sizeof(addr->sa_family) && addr->sa_family == AF_UNSPEC))
		cv_fd_to_kernel(fd, CV_LEAVE_STAY, CV_REASON_CALL);
	r = cv_real.connect(fd, addr, len);
	/* EINTR: it goes on without us. */
	if (other_tcp(e) && (r == 0 || errno == EINPROGRESS || errno == EINTR) && inet(addr->sa_family))
		cv_sock_connecting(fd, e);
	return r;
}

int listen(int fd, int backlog)
{
	int r = cv_real.listen(fd, backlog);
	uintptr_t e = cv_fd_get(fd);

	if (r != 0 || cv_borrowed())
		return r;
	if (other_tcp(e))
		cv_fd_other(fd, e, e | CV_FD_OTHER_LISTEN);
	else if (!e && fd < CV_FD_CHUNK)
		cv_fd_swap(fd, 0, CV_FD_OTHER); /* some other kind: accept() need not ask. In the first chunk that costs no system call */
	return r;
}

static bool sock_is(int fd, int option, int value)
{
	int v = -1;
	socklen_t len = sizeof(v);

	return cv_sys5(SYS_getsockopt, fd, SOL_SOCKET, option, &v, &len) == 0 && v == value;
}

/* A listener that somebody else made (inherited, passed). Asked once; the answer is its entry. */
static CV_COLD uintptr_t listener_adopt(int fd, int newfd, const struct sockaddr *peer, const socklen_t *len)
{
	uintptr_t e = CV_FD_OTHER;
	int err = errno;
	bool maybe = true;

	if (peer && len && *len >= sizeof(peer->sa_family))
		maybe = inet(peer->sa_family);
	if (maybe && (sock_is(newfd, SO_DOMAIN, AF_INET) || sock_is(newfd, SO_DOMAIN, AF_INET6)) && sock_is(newfd, SO_TYPE, SOCK_STREAM) &&
	    sock_is(newfd, SO_PROTOCOL, IPPROTO_TCP))
		e |= CV_FD_OTHER_TCP | CV_FD_OTHER_LISTEN;
	if (!cv_borrowed())
		cv_fd_swap(fd, 0, e);
	errno = err;
	return e;
}

static int accepted(int fd, int newfd, const struct sockaddr *peer, const socklen_t *len, bool nonblock)
{
	uintptr_t e;

	if (newfd < 0)
		return newfd;
	cv_fd_fresh(newfd);
	e = cv_fd_get(fd);
	if (unlikely(!e) && !cv_off())
		e = listener_adopt(fd, newfd, peer, len);
	if (other_tcp(e) && cv_up() && !cv_borrowed()) {
		int err = errno;

		cv_sock_new(newfd, CV_ROLE_SERVER, nonblock);
		errno = err;
	}
	return newfd;
}

int accept(int fd, struct sockaddr *addr, socklen_t *len)
{
	return accepted(fd, cv_real.accept(fd, addr, len), addr, len, false);
}

int accept4(int fd, struct sockaddr *addr, socklen_t *len, int flags)
{
	return accepted(fd, cv_real.accept4(fd, addr, len, flags), addr, len, (flags & SOCK_NONBLOCK) != 0);
}

int shutdown(int fd, int how)
{
	struct cv_sock *s = cv_fd_sock(fd);

	if (likely(!s))
		return cv_real.shutdown(fd, how);
	return CV_RET(cv_sock_shutdown(s, fd, how));
}

int sockatmark(int fd)
{
	int at;

	if (!cv_fd_sock(fd))
		return cv_real.sockatmark(fd);
	return ioctl(fd, SIOCATMARK, &at) < 0 ? -1 : at;
}

/* ---- options ------------------------------------------------------------------------------------------------------------------ */

static bool is_timeo(int level, int name)
{
	if (level != SOL_SOCKET)
		return false;
	/* both numberings: with 32-bit and with 64-bit time */
	return name == SO_RCVTIMEO || name == SO_SNDTIMEO || name == 66 || name == 67;
}

/* Options whose effect only the kernel can have: what it stamps, counts or cuts as it receives, and who else handles the bytes. */
static bool keeps_to_kernel(int level, int name, int val)
{
	switch (level) {
	case SOL_SOCKET:
		switch (name) {
		case SO_RCVLOWAT:
			return val > 1;
		case SO_PEEK_OFF:
			return val >= 0;
		case SO_ZEROCOPY:
		case SO_TIMESTAMP:
		case SO_TIMESTAMPNS:
		case SO_TIMESTAMPING:
		case 63: /* the same three with 64-bit time */
		case 64:
		case 65:
			return val != 0;
		}
		return false;
	case IPPROTO_TCP:
		return name == TCP_ULP || (name == TCP_INQ && val) || (name == TCP_REPAIR && val);
	case 282: /* SOL_TLS */
		return true;
	}
	return false;
}

int getsockopt(int fd, int level, int name, void *val, socklen_t *len)
{
	struct cv_sock *s = cv_fd_sock(fd);
	int err;

	if (unlikely(s) && level == SOL_SOCKET && name == SO_ERROR && val && len && *len >= sizeof(err) && (err = cv_sock_error(s, fd)) > 0) {
		__builtin_memcpy(val, &err, sizeof(err));
		*len = sizeof(err);
		return 0;
	}
	return cv_real.getsockopt(fd, level, name, val, len);
}

int setsockopt(int fd, int level, int name, const void *val, socklen_t len)
{
	uintptr_t e = cv_fd_get(fd);
	int r, v = 0;

	if (likely(!e) || cv_fd_tag(e) == CV_FD_EPOLL)
		return cv_real.setsockopt(fd, level, name, val, len);
	if (val && len >= sizeof(v))
		__builtin_memcpy(&v, val, sizeof(v));
	if (unlikely(keeps_to_kernel(level, name, v))) {
		if (other_tcp(e) && !cv_borrowed())
			cv_fd_other(fd, e, CV_FD_OTHER);
		else
			cv_fd_to_kernel(fd, CV_LEAVE_HANDOVER, CV_REASON_OPTION);
	}
	r = cv_real.setsockopt(fd, level, name, val, len);
	if (r == 0 && is_timeo(level, name) && cv_fd_tag(e) == CV_FD_SOCK)
		atomic_store_explicit(&cv_fd_sock_of(e)->timeo_known, false, memory_order_release);
	return r;
}
