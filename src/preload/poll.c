/* SPDX-License-Identifier: Apache-2.0 */
#include "poll.h"
#include "../base/clock.h"
#include <sys/mman.h>

/* ---- which way ------------------------------------------------------------------------------------------------------------------- */

void cv_bracket_leave(struct cv_bracket *b)
{
	while (b->n)
		cv_sock_leave(b->s[--b->n], 0);
}

enum cv_poll_kind cv_poll_add(struct cv_bracket *b, enum cv_poll_kind kind, int fd)
{
	uintptr_t entry = cv_fd_get(fd);
	struct cv_sock *s;

	if (likely(!entry))
		return kind;
	if (cv_fd_tag(entry) == CV_FD_EPOLL)
		cv_epoll_polled(cv_fd_epoll(fd));
	if (cv_fd_tag(entry) != CV_FD_SOCK || kind == CV_POLL_CAREFUL)
		return kind;
	s = cv_fd_sock_of(entry);
	if (unlikely(atomic_load_explicit(&s->foreign, memory_order_relaxed))) {
		cv_sock_fall_back(s, CV_LEAVE_STAY, CV_REASON_FORK, true);
		if (!cv_fd_sock(fd))
			return kind;
	}
	if (b->n < CV_POLL_SMALL && cv_sock_enter(s)) {
		b->s[b->n++] = s;
		return CV_POLL_PLAIN;
	}
	cv_bracket_leave(b);
	return CV_POLL_CAREFUL;
}

void *cv_poll_scratch(size_t size)
{
	void *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return p == MAP_FAILED ? NULL : p;
}

void cv_poll_scratch_free(void *p, size_t size)
{
	munmap(p, size);
}

/* ---- the calls ------------------------------------------------------------------------------------------------------------------- */

/* errno holds through the bracket's end. */
#define BRACKETED(b, call) \
	({ \
		int r_ = (call), err_ = errno; \
		cv_bracket_leave(b); \
		errno = err_; \
		r_; \
	})

static enum cv_poll_kind classify(struct cv_bracket *b, struct pollfd *fds, nfds_t n)
{
	enum cv_poll_kind kind = CV_POLL_NONE;

	b->n = 0;
	if (!fds || n > CV_FD_CHUNK * CV_FD_CHUNKS)
		return kind;
	for (nfds_t i = 0; i < n; i++)
		kind = cv_poll_add(b, kind, fds[i].fd);
	return kind;
}

int64_t cv_poll_left(int64_t timeout_ns, uint64_t began)
{
	uint64_t spent;

	if (timeout_ns < 0)
		return timeout_ns;
	spent = cv_now_ns() - began;
	return spent < (uint64_t)timeout_ns ? timeout_ns - (int64_t)spent : 0;
}

/* All are PLAIN and in the bracket, and the wait may be long. */
static int poll_long(struct cv_bracket *b, struct pollfd *fds, nfds_t n, int64_t timeout_ns, const sigset_t *mask)
{
	struct timespec slice = {.tv_nsec = CV_POLL_SLICE_NS};
	uint64_t began = timeout_ns < 0 ? 0 : cv_now_ns();
	int r = BRACKETED(b, cv_real.ppoll(fds, n, &slice, mask));

	return r ? r : CV_RET(cv_poll_careful(fds, n, cv_poll_left(timeout_ns, began), mask, NULL));
}

int poll(struct pollfd *fds, nfds_t n, int timeout)
{
	int64_t ns = timeout < 0 ? -1 : timeout * INT64_C(1000000);
	struct cv_bracket b;

	switch (cv_on() ? classify(&b, fds, n) : CV_POLL_NONE) {
	case CV_POLL_PLAIN:
		if (cv_poll_long(ns))
			return poll_long(&b, fds, n, ns, NULL);
		return BRACKETED(&b, cv_real.poll(fds, n, timeout));
	case CV_POLL_CAREFUL:
		return CV_RET(cv_poll_careful(fds, n, ns, NULL, NULL));
	default:
		return cv_real.poll(fds, n, timeout);
	}
}

int ppoll(struct pollfd *fds, nfds_t n, const struct timespec *timeout, const sigset_t *mask)
{
	struct cv_bracket b;
	int64_t ns = -1;

	if (!cv_on() || (timeout && (timeout->tv_sec < 0 || (unsigned long)timeout->tv_nsec >= 1000000000u)))
		return cv_real.ppoll(fds, n, timeout, mask);
	if (timeout && timeout->tv_sec < INT64_C(1) << 33)
		ns = timeout->tv_sec * INT64_C(1000000000) + timeout->tv_nsec;
	switch (classify(&b, fds, n)) {
	case CV_POLL_PLAIN:
		if (cv_poll_long(ns))
			return poll_long(&b, fds, n, ns, mask);
		return BRACKETED(&b, cv_real.ppoll(fds, n, timeout, mask));
	case CV_POLL_CAREFUL:
		return CV_RET(cv_poll_careful(fds, n, ns, mask, NULL));
	default:
		return cv_real.ppoll(fds, n, timeout, mask);
	}
}

int __poll_chk(struct pollfd *fds, nfds_t n, int timeout, size_t size)
{
	return size / sizeof(*fds) < n ? cv_real.__poll_chk(fds, n, timeout, size) : poll(fds, n, timeout);
}

int __ppoll_chk(struct pollfd *fds, nfds_t n, const struct timespec *timeout, const sigset_t *mask, size_t size)
{
	return size / sizeof(*fds) < n ? cv_real.__ppoll_chk(fds, n, timeout, mask, size) : ppoll(fds, n, timeout, mask);
}
