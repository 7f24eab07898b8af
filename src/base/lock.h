/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A four-byte mutex: one atomic when uncontended, futex when not. Needs no initialisation beyond zero, no pthread, no malloc, so
 * that it works before start-up and in a signal handler's trylock.
 *
 * Lock order (outer first): agent.busy -> sock.tx -> sock.rx -> agent.start -> epoll.lock -> sock.wait_lock; inside any of them, and none inside
 * another: the pending registrations', link.send, link.lock, and those of memory pools and of descriptors in the making. Who holds an epoll.lock
 * only tries a socket's, and does not post to the agent, which may have to be started. fork takes agent.busy, agent.start and every epoll.lock. No
 * lock is held across a system call that can sleep, but for the futex itself.
 */
#ifndef CV_LOCK_H
#define CV_LOCK_H

#include "base.h"
#include "sys.h"
#include <linux/futex.h>

struct cv_lock {
	_Atomic uint32_t word; /* 0 free, 1 held, 2 held and somebody sleeps */
};

/*
 * Locks that this thread holds or is about to take. A signal handler of the program that would run meanwhile could want the same lock: it is put off until
 * the last one is let go (preload/sig.c sets CV_LOCKS_DEFERRED and the hook). initial-exec: four bytes of static TLS.
 */
extern __thread uint32_t cv_locks_held __attribute__((tls_model("initial-exec"), visibility("hidden")));
#define CV_LOCKS_DEFERRED 0x80000000u
extern void (*cv_locks_deferred)(void);

static inline void cv_locks_enter(void)
{
	cv_locks_held++;
	atomic_signal_fence(memory_order_seq_cst);
}

static inline void cv_locks_leave(void)
{
	atomic_signal_fence(memory_order_seq_cst);
	if (unlikely(--cv_locks_held == CV_LOCKS_DEFERRED))
		cv_locks_deferred();
}

/* Only the word; see cv_trylock(). */
static inline bool cv_lock_grab(struct cv_lock *l)
{
	uint32_t zero = 0;

	return atomic_compare_exchange_strong_explicit(&l->word, &zero, 1, memory_order_acquire, memory_order_relaxed);
}

static inline bool cv_trylock(struct cv_lock *l)
{
	cv_locks_enter();
	if (likely(cv_lock_grab(l)))
		return true;
	cv_locks_leave();
	return false;
}

void cv_lock_slow(struct cv_lock *l);
void cv_unlock_slow(struct cv_lock *l);

static inline void cv_lock(struct cv_lock *l)
{
	cv_locks_enter();
	if (unlikely(!cv_lock_grab(l)))
		cv_lock_slow(l);
}

static inline void cv_unlock(struct cv_lock *l)
{
	if (unlikely(atomic_exchange_explicit(&l->word, 0, memory_order_release) == 2))
		cv_unlock_slow(l);
	cv_locks_leave();
}

#endif
