/* SPDX-License-Identifier: Apache-2.0 */
/* select and pselect: bits to pollfds and back, by the kernel's own equations (fs/select.c). */
#include "poll.h"
#include "../base/clock.h"
#include <string.h>

#define IN_SET (POLLRDNORM | POLLRDBAND | POLLIN | POLLHUP | POLLERR)
#define OUT_SET (POLLWRBAND | POLLWRNORM | POLLOUT | POLLERR)
#define EX_SET POLLPRI
#define WORD_BITS (8 * (int)sizeof(unsigned long))

static const unsigned long none[1];

struct sets {
	int n;
	unsigned long *in, *out, *ex;
};

static unsigned long word(const unsigned long *set, int w)
{
	return set ? set[w] : none[0];
}

static unsigned long any_word(const struct sets *s, int w)
{
	unsigned long bits = word(s->in, w) | word(s->out, w) | word(s->ex, w);
	int rest = s->n - w * WORD_BITS;

	return rest < WORD_BITS ? bits & ((1ul << rest) - 1) : bits;
}

static bool has(const unsigned long *set, int fd)
{
	return set && (set[fd / WORD_BITS] >> (fd % WORD_BITS) & 1);
}

static enum cv_poll_kind classify(struct cv_bracket *b, const struct sets *s, unsigned *count)
{
	enum cv_poll_kind kind = CV_POLL_NONE;

	b->n = 0;
	*count = 0;
	if (s->n <= 0 || s->n > CV_FD_CHUNK * CV_FD_CHUNKS)
		return kind;
	for (int w = 0; w * WORD_BITS < s->n; w++) {
		for (unsigned long bits = any_word(s, w); bits; bits &= bits - 1) {
			kind = cv_poll_add(b, kind, w * WORD_BITS + __builtin_ctzl(bits));
			++*count;
		}
	}
	return kind;
}

static void clear(unsigned long *set, int n)
{
	if (set)
		memset(set, 0, (size_t)((n + WORD_BITS - 1) / WORD_BITS) * sizeof(long));
}

static int mark(unsigned long *set, const struct pollfd *p, short events, short bits)
{
	if (!(p->events & events) || !(p->revents & bits))
		return 0;
	set[p->fd / WORD_BITS] |= 1ul << (p->fd % WORD_BITS);
	return 1;
}

static int select_careful(const struct sets *s, unsigned count, int64_t timeout_ns, const sigset_t *mask)
{
	struct pollfd small_p[CV_POLL_SMALL], *p = small_p;
	uint16_t small_a[CV_POLL_SMALL], *accept = small_a;
	size_t size = 0;
	nfds_t n = 0;
	int r;

	if (count > CV_POLL_SMALL) {
		size = count * (sizeof(*p) + sizeof(*accept));
		p = cv_poll_scratch(size);
		if (!p)
			return -ENOMEM;
		accept = (uint16_t *)(p + count);
	}
	for (int w = 0; w * WORD_BITS < s->n; w++) {
		for (unsigned long bits = any_word(s, w); bits && n < count; bits &= bits - 1, n++) {
			int fd = w * WORD_BITS + __builtin_ctzl(bits);
			bool in = has(s->in, fd), out = has(s->out, fd), ex = has(s->ex, fd);

			p[n].fd = fd;
			p[n].events = (short)((in ? POLLIN | POLLRDNORM | POLLRDBAND : 0) | (out ? POLLOUT | POLLWRNORM | POLLWRBAND : 0) |
					      (ex ? POLLPRI : 0));
			accept[n] = (uint16_t)((in ? IN_SET : 0) | (out ? OUT_SET : 0) | (ex ? EX_SET : 0));
		}
	}
	r = cv_poll_careful(p, n, timeout_ns, mask, accept);
	for (nfds_t i = 0; r > 0 && i < n; i++)
		if (p[i].revents & POLLNVAL)
			r = -EBADF;
	if (r >= 0) {
		clear(s->in, s->n);
		clear(s->out, s->n);
		clear(s->ex, s->n);
	}
	if (r > 0) {
		r = 0;
		for (nfds_t i = 0; i < n; i++) {
			r += mark(s->in, &p[i], POLLIN, IN_SET);
			r += mark(s->out, &p[i], POLLOUT, OUT_SET);
			r += mark(s->ex, &p[i], POLLPRI, EX_SET);
		}
	}
	if (size)
		cv_poll_scratch_free(p, size);
	return r;
}

/* All are PLAIN and in the bracket. -EAGAIN: nothing yet, and the wait goes on; the sets are as they were. */
static int select_plain(struct cv_bracket *b, const struct sets *s, int64_t timeout_ns, const sigset_t *mask)
{
	struct timespec slice = {.tv_nsec = CV_POLL_SLICE_NS};
	unsigned long *set[3] = {s->in, s->out, s->ex}, copy[3][FD_SETSIZE / WORD_BITS];
	size_t size = (size_t)((s->n + WORD_BITS - 1) / WORD_BITS) * sizeof(long);
	int r;

	if (size > sizeof(copy[0])) { /* more than we keep here */
		cv_bracket_leave(b);
		return -EAGAIN;
	}
	if (!cv_poll_long(timeout_ns))
		slice.tv_nsec = timeout_ns;
	for (int i = 0; i < 3; i++)
		if (set[i])
			memcpy(copy[i], set[i], size);
	r = cv_real.pselect(s->n, (fd_set *)s->in, (fd_set *)s->out, (fd_set *)s->ex, &slice, mask);
	r = r < 0 ? -errno : r;
	cv_bracket_leave(b);
	if (r || !cv_poll_long(timeout_ns))
		return r;
	for (int i = 0; i < 3; i++)
		if (set[i])
			memcpy(set[i], copy[i], size);
	return -EAGAIN;
}

static int select_tracked(struct cv_bracket *b, enum cv_poll_kind kind, const struct sets *s, unsigned count, int64_t timeout_ns,
			  const sigset_t *mask)
{
	uint64_t began = timeout_ns > 0 ? cv_now_ns() : 0;
	int r = kind == CV_POLL_PLAIN ? select_plain(b, s, timeout_ns, mask) : -EAGAIN;

	return r == -EAGAIN ? select_careful(s, count, cv_poll_left(timeout_ns, began), mask) : r;
}

int select(int n, fd_set *r, fd_set *w, fd_set *x, struct timeval *timeout)
{
	struct sets s = {.n = n, .in = (unsigned long *)r, .out = (unsigned long *)w, .ex = (unsigned long *)x};
	enum cv_poll_kind kind = CV_POLL_NONE;
	struct cv_bracket b;
	unsigned count;
	uint64_t end = 0, now;
	int64_t ns = -1;
	int ret;

	if (cv_on() && !(timeout && (timeout->tv_sec < 0 || timeout->tv_usec < 0)))
		kind = classify(&b, &s, &count);
	if (kind == CV_POLL_NONE)
		return cv_real.select(n, r, w, x, timeout);
	if (timeout && timeout->tv_sec < INT64_C(1) << 32) {
		ns = timeout->tv_sec * INT64_C(1000000000) + timeout->tv_usec * INT64_C(1000);
		end = cv_now_ns() + (uint64_t)ns;
	}
	ret = select_tracked(&b, kind, &s, count, ns, NULL);
	if (ns >= 0) { /* Linux tells how much was left */
		now = cv_now_ns();
		now = now < end ? end - now : 0;
		timeout->tv_sec = (time_t)(now / 1000000000u);
		timeout->tv_usec = (suseconds_t)(now % 1000000000u / 1000);
	}
	return CV_RET(ret);
}

int pselect(int n, fd_set *r, fd_set *w, fd_set *x, const struct timespec *timeout, const sigset_t *mask)
{
	struct sets s = {.n = n, .in = (unsigned long *)r, .out = (unsigned long *)w, .ex = (unsigned long *)x};
	enum cv_poll_kind kind = CV_POLL_NONE;
	struct cv_bracket b;
	unsigned count;
	int64_t ns = -1;

	if (cv_on() && !(timeout && (timeout->tv_sec < 0 || (unsigned long)timeout->tv_nsec >= 1000000000u)))
		kind = classify(&b, &s, &count);
	if (kind == CV_POLL_NONE)
		return cv_real.pselect(n, r, w, x, timeout, mask);
	if (timeout && timeout->tv_sec < INT64_C(1) << 33)
		ns = timeout->tv_sec * INT64_C(1000000000) + timeout->tv_nsec;
	return CV_RET(select_tracked(&b, kind, &s, count, ns, mask));
}
