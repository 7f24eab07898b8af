/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A four-byte mutex: one atomic when uncontended, futex when not. Needs no initialisation beyond zero, no pthread, no malloc, so
 * that it works before start-up and in a signal handler's trylock.
 *
 * Lock order (outer first): sock.ctl -> sock.tx -> sock.rx -> epoll.lock -> link.lock -> slab locks. Never taken across a system call that
 * can sleep, the futex itself excepted.
 */
#ifndef CV_LOCK_H
#define CV_LOCK_H

#include "base.h"
#include "sys.h"
#include <linux/futex.h>

struct cv_lock {
	_Atomic uint32_t word; /* 0 free, 1 held, 2 held and somebody sleeps */
};

static inline bool cv_trylock(struct cv_lock *l)
{
	uint32_t zero = 0;

	return atomic_compare_exchange_strong_explicit(&l->word, &zero, 1, memory_order_acquire, memory_order_relaxed);
}

void cv_lock_slow(struct cv_lock *l);
void cv_unlock_slow(struct cv_lock *l);

static inline void cv_lock(struct cv_lock *l)
{
	if (unlikely(!cv_trylock(l)))
		cv_lock_slow(l);
}

static inline void cv_unlock(struct cv_lock *l)
{
	if (unlikely(atomic_exchange_explicit(&l->word, 0, memory_order_release) == 2))
		cv_unlock_slow(l);
}

#endif
