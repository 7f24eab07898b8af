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

int select(int n, fd_set *r, fd_set *w, fd_set *x, struct timeval *timeout)
{
	struct sets s = {.n = n, .in = (unsigned long *)r, .out = (unsigned long *)w, .ex = (unsigned long *)x};
	struct cv_bracket b;
	unsigned count;
	uint64_t end = 0, now;
	int64_t ns = -1;
	int ret, err;

	if (!cv_on() || (timeout && (timeout->tv_sec < 0 || timeout->tv_usec < 0)))
		return cv_real.select(n, r, w, x, timeout);
	switch (classify(&b, &s, &count)) {
	case CV_POLL_NONE:
		return cv_real.select(n, r, w, x, timeout);
	case CV_POLL_PLAIN:
		ret = cv_real.select(n, r, w, x, timeout);
		err = errno;
		cv_bracket_leave(&b);
		errno = err;
		return ret;
	case CV_POLL_CAREFUL:
		break;
	}
	if (timeout && timeout->tv_sec < INT64_C(1) << 32) {
		ns = timeout->tv_sec * INT64_C(1000000000) + timeout->tv_usec * INT64_C(1000);
		end = cv_now_ns() + (uint64_t)ns;
	}
	ret = select_careful(&s, count, ns, NULL);
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
	struct cv_bracket b;
	unsigned count;
	int64_t ns = -1;
	int ret, err;

	if (!cv_on() || (timeout && (timeout->tv_sec < 0 || (unsigned long)timeout->tv_nsec >= 1000000000u)))
		return cv_real.pselect(n, r, w, x, timeout, mask);
	switch (classify(&b, &s, &count)) {
	case CV_POLL_NONE:
		return cv_real.pselect(n, r, w, x, timeout, mask);
	case CV_POLL_PLAIN:
		ret = cv_real.pselect(n, r, w, x, timeout, mask);
		err = errno;
		cv_bracket_leave(&b);
		errno = err;
		return ret;
	case CV_POLL_CAREFUL:
		break;
	}
	if (timeout && timeout->tv_sec < INT64_C(1) << 33)
		ns = timeout->tv_sec * INT64_C(1000000000) + timeout->tv_nsec;
	return CV_RET(select_careful(&s, count, ns, mask));
}
