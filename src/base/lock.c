/* SPDX-License-Identifier: Apache-2.0 */
#include "lock.h"

__thread uint32_t cv_locks_held;
void (*cv_locks_deferred)(void);

CV_COLD void cv_lock_slow(struct cv_lock *l)
{
	for (int i = 0; i < 100; i++) {
		if (atomic_load_explicit(&l->word, memory_order_relaxed) == 0 && cv_lock_grab(l))
			return;
		cv_pause();
	}
	/* From here on we own it as 2: whoever unlocks must wake, since we cannot know whether others sleep too. */
	while (atomic_exchange_explicit(&l->word, 2, memory_order_acquire) != 0)
		cv_sys4(SYS_futex, &l->word, FUTEX_WAIT_PRIVATE, 2, 0);
}

CV_COLD void cv_unlock_slow(struct cv_lock *l)
{
	cv_sys3(SYS_futex, &l->word, FUTEX_WAKE_PRIVATE, 1);
}
