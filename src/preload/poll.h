/* SPDX-License-Identifier: Apache-2.0 */
/*
 * poll and select over descriptors of which some are tracked sockets. Nothing tracked: the plain call. All of them PLAIN: the plain
 * call, bracketed. Else poll_careful.c: what culvert knows, the kernel for the rest, spin, then sleep with a waiter on every tracked
 * socket.
 */
#ifndef CV_POLL_H
#define CV_POLL_H

#include "epoll.h"
#include "sig.h"
#include "wrap.h"

#define CV_POLL_SMALL 64 /* descriptors that need no memory but the stack */

/* Sockets that a plain call is bracketed for. */
struct cv_bracket {
	unsigned n;
	struct cv_sock *s[CV_POLL_SMALL];
};

enum cv_poll_kind { CV_POLL_NONE, CV_POLL_PLAIN, CV_POLL_CAREFUL };

/* One more descriptor of the set. Kinds only rise: PLAIN means that it is in the bracket. */
enum cv_poll_kind cv_poll_add(struct cv_bracket *b, enum cv_poll_kind kind, int fd);
void cv_bracket_leave(struct cv_bracket *b);

/*
 * accept: per entry the bits that count (select), or NULL: all that poll reports. timeout_ns < 0: none. Number of entries with accepted
 * bits, or -errno.
 */
int cv_poll_careful(struct pollfd *fds, nfds_t n, int64_t timeout_ns, const sigset_t *mask, const uint16_t *accept);

/*
 * A bracketed call keeps its sockets from being upgraded. So it sleeps for a short time only; a wait that turns out to be longer goes
 * on in cv_poll_careful(), which can be woken by a switch. What is left of the time then: timeout_ns < 0: none; began: when the call
 * did (ns).
 */
#define CV_POLL_SLICE_NS 50000000
static inline bool cv_poll_long(int64_t timeout_ns)
{
	return timeout_ns < 0 || timeout_ns > CV_POLL_SLICE_NS;
}
int64_t cv_poll_left(int64_t timeout_ns, uint64_t began);

/* Memory for big sets; NULL when there is none. */
void *cv_poll_scratch(size_t size);
void cv_poll_scratch_free(void *p, size_t size);

#endif
