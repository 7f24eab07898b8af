/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One tracked TCP connection in this process: the twin's fd, the stream engine, locks, who waits, and how far its upgrade got.
 *
 * Modes. PLAIN: kernel calls as the program made them, bracketed by `in_kernel`, counted until the policy's threshold. CAREFUL: the peer's culvert
 * has answered, or the stream is on its way back, or the engine has an end to tell that the kernel does not know of: calls hold the half's lock and
 * never block in the kernel. LINKED: both halves in RING; the fast path. Excluded sockets are PLAIN for good; their entries become CV_FD_OUT.
 * Modes change under tx and rx. Only the agent leaves PLAIN while the socket is open, and then lets the engine begin when in_kernel is 0.
 *
 * Type-stable memory: lock, then check the table again (cv_sock_valid, cv_sock_at).
 */
#ifndef CV_SOCK_H
#define CV_SOCK_H

#include "../base/lock.h"
#include "../link/agent.h"
#include "../link/link.h"
#include "../observe/stats.h"
#include "../policy/policy.h"
#include "fd.h"
#include <netinet/in.h>

enum cv_mode { CV_PLAIN, CV_CAREFUL, CV_LINKED };

struct cv_listener;
struct cv_epitem; /* one registration of a socket in an epoll set: epoll.h */

/* A thread that sleeps in the kernel on this socket in a way that only an eventfd can wake (poll, select, CAREFUL blocking calls). */
struct cv_waiter {
	struct cv_waiter *next;
	int wake_fd;
};

struct cv_sock {
	/* hot: read by every call */
	_Atomic uint8_t mode;
	uint8_t role; /* enum cv_role */
	_Atomic bool nonblock;
	_Atomic uint8_t foreign; /* inherited over fork while linked: fall back first */
	int fd;			 /* a live descriptor of the twin; changes under tx+rx */
	_Atomic uint32_t in_kernel;
	uint32_t calls, next_calls; /* PLAIN: racy on purpose: counts need not be exact. Two calls are a request */
	uint64_t bytes, next_bytes;
	uint32_t rest_calls; /* agent's: no further try before */
	uint64_t rest_bytes;
	uint32_t spin;		    /* adaptive spin budget of blocking calls, in ticks */
	_Atomic uint32_t inside;    /* calls that sleep in it: like the kernel's, they keep the connection open past close() */
	_Atomic bool orphan;	    /* closed while some did; fd is our own duplicate */
	_Atomic int refs;	    /* descriptors in the table that hold it */
	const struct cv_link_ops *link_ops; /* of the link that port.link names */
	const struct cv_settings *set;
	struct cv_row *row;
	_Atomic uint64_t rcvtimeo, sndtimeo; /* ns; 0 = none */
	_Atomic bool timeo_known;
	_Atomic bool rd_shut; /* shutdown(SHUT_RD) while on a link: what is there can be read, then EOF */

	struct cv_lock tx CV_ALIGNED;
	struct cv_lock rx CV_ALIGNED;
	struct cv_stream st CV_ALIGNED;

	/* who waits */
	struct cv_lock wait_lock;
	struct cv_waiter *waiters;
	struct cv_epitem *items; /* under wait_lock */

	/* the agent's */
	struct cv_tuple tuple;
	uint8_t seek;  /* enum cv_seek: how far the upgrade got */
	uint8_t tries; /* dials in this round */
	uint8_t rounds;
	struct cv_link *answered; /* the server's: where to offer it once it is quiet */
	bool stay_out;	   /* once RAW, never again */
	bool closing;	   /* the application is done with it; the agent lingers on its own dup of the twin */
	bool late;	   /* lingered as long as it may */
	bool was_linked;   /* counted as upgraded */
	uint32_t fork_seq; /* cv_fork_seq when it was made: see owner.h */
	uint32_t index;	   /* in the pool; the same in parent and child */
	struct cv_port port;
	struct cv_listener *listener;
	struct cv_watch twin;	/* under tx and rx */
	struct cv_work work;
	struct cv_timer timer;	/* agent's thread */
	struct cv_sock *hash_next, *queue_next;
	uint64_t wait_until;	/* policy upgrade-wait: the first call waits until then; 0 = no */
	_Atomic bool used;
};

/* A new connection at fd (accept or connect succeeded or in progress). Never fails visibly: without memory the fd stays untracked. */
void cv_sock_new(int fd, enum cv_role role, bool nonblock);
/* Both halves, in the order that base/lock.h gives. */
static inline void cv_sock_lock(struct cv_sock *s)
{
	cv_lock(&s->tx);
	cv_lock(&s->rx);
}

static inline void cv_sock_unlock(struct cv_sock *s)
{
	cv_unlock(&s->rx);
	cv_unlock(&s->tx);
}

/* After taking a lock: is this socket still at fd, in play or excluded? */
static inline bool cv_sock_at(const struct cv_sock *s, int fd)
{
	return (cv_fd_get(fd) & ~(uintptr_t)3) == (uintptr_t)s;
}

/* Likewise, and in play? */
static inline bool cv_sock_valid(const struct cv_sock *s, int fd)
{
	return cv_fd_get(fd) == (uintptr_t)s;
}

/* SO_RCVTIMEO / SO_SNDTIMEO in ns, 0 = none; asked once. */
uint64_t cv_sock_timeo(struct cv_sock *s, int fd, bool tx);
/* close() of fd shall send a RST. */
void cv_sock_arrange_reset(int fd);
/* A call that slept in the socket returns (it counted itself in s->inside). No locks. */
void cv_sock_outside(struct cv_sock *s);
/* At exit: what close() would tell the peer, without closing. No locks. */
void cv_sock_end(struct cv_sock *s);
/* Free the memory; the row's counts are kept. No locks. */
void cv_sock_free(struct cv_sock *s);
/* Those in use. No locks. by_index: in use or not, NULL when there is none; s->index is the same in parent and child. */
void cv_sock_each(void (*fn)(struct cv_sock *s, void *arg), void *arg);
struct cv_sock *cv_sock_by_index(uint32_t index);
/* In a forked child: the pool's lock. */
void cv_sock_pool_forked(void);

/* PLAIN traffic accounting: at the policy's threshold asks the agent to look. One compare when nothing is due. */
void cv_sock_qualify(struct cv_sock *s);

/* Bracket a plain kernel call that may sleep. enter returns false when the mode is no longer PLAIN (then do it carefully). */
static inline bool cv_sock_enter(struct cv_sock *s)
{
	/* seq_cst on both: the agent stores mode, then loads in_kernel; we count, then load mode. Partner: quiesce(). */
	atomic_fetch_add_explicit(&s->in_kernel, 1, memory_order_seq_cst);
	if (likely(atomic_load_explicit(&s->mode, memory_order_seq_cst) == CV_PLAIN))
		return true;
	atomic_fetch_sub_explicit(&s->in_kernel, 1, memory_order_seq_cst);
	return false;
}
void cv_sock_left_last(struct cv_sock *s); /* the agent waits for in_kernel to drop */
/* n: what the call returned, for the policy's threshold in bytes. */
static inline void cv_sock_leave(struct cv_sock *s, ssize_t n)
{
	if (n > 0)
		s->bytes += (uint64_t)n;
	if (unlikely(atomic_fetch_sub_explicit(&s->in_kernel, 1, memory_order_seq_cst) == 1 &&
		     atomic_load_explicit(&s->mode, memory_order_relaxed) != CV_PLAIN))
		cv_sock_left_last(s);
}

/* Exclude for good: the fds become CV_FD_OUT; plain calls from now on. tx and rx held, both halves RAW. */
void cv_sock_exclude(struct cv_sock *s, enum cv_reason why);
/* Return to TCP before something only the kernel can do. Waits (bounded by handover-timeout) until both halves are RAW. 0 or -ETIMEDOUT (then the
 * connection has been reset). No locks held by the caller. The stream stays excluded afterwards when `stay_out`. */
int cv_sock_fall_back(struct cv_sock *s, enum cv_leave how, enum cv_reason why, bool stay_out);
/* A descriptor was duplicated / closed. last close: ends the stream (FIN or RST in the ring, linger by the agent) and closes fd with the
 * real close; returns its result (-errno). */
void cv_sock_dup(struct cv_sock *s, int newfd);
int cv_sock_close(struct cv_sock *s, int fd);

/* Readiness as poll would say, without sleeping: bits that culvert knows; *twin: bits that the kernel must be asked for. Lock-free when LINKED
 * (a hint that a concurrent call may outdate, as the kernel's own). */
uint32_t cv_sock_poll(struct cv_sock *s, uint32_t *twin);
/* Someone who may sleep on the socket must look again. Wakes waiters, local link waiters, epoll sets. Any thread, engine locks may be held. */
void cv_sock_changed(struct cv_sock *s);
void cv_sock_add_waiter(struct cv_sock *s, struct cv_waiter *w);
void cv_sock_del_waiter(struct cv_sock *s, struct cv_waiter *w);

/* This thread's eventfd for being woken in poll (created at first use; closed when the thread ends). -errno when none can be had. */
int cv_thread_wake_fd(void);

/* io.c: the two calls behind every read and write. flags: MSG_*. Return value and errno as the kernel's. CV_IO_REAL: make the plain call
 * (bracketed already if *bracket: then cv_sock_leave() after it). */
#define CV_IO_REAL (-4097)
ssize_t cv_io_send(struct cv_sock *s, int fd, const struct iovec *iov, int iovcnt, int flags, bool *bracket);
ssize_t cv_io_recv(struct cv_sock *s, int fd, const struct iovec *iov, int iovcnt, int flags, bool *bracket);

static inline struct cv_sock *cv_sock_of(struct cv_stream *st)
{
	return cv_container_of(st, struct cv_sock, st);
}

#endif
