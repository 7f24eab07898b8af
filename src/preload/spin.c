/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How long to spin before sleeping. The budget follows about twice the waits that end soon; waits that end late, or not at all, shrink
 * it towards nothing. A budget of 0 is one that nothing is known of; 1 stands for "do not spin".
 */
#include "../base/clock.h"
#include "spin.h"

static uint64_t spin_bound(const struct cv_settings *set)
{
	uint64_t ns = set->spin == CV_SPIN_ADAPTIVE ? set->spin_max : set->spin;

	return cv_min_u64(ns * cv_ticks_per_us() / 1000, UINT32_MAX);
}

uint32_t cv_spin_budget(uint32_t budget, const struct cv_settings *set)
{
	uint64_t max = spin_bound(set);

	if (set->spin != CV_SPIN_ADAPTIVE)
		return (uint32_t)max;
	if (unlikely(budget == 0))
		return (uint32_t)max;
	if (unlikely(budget < cv_ticks_per_us())) {
		/*
		 * Not worth it lately. Now and then a try tells whether that has changed, as one that sleeps never learns what a spin
		 * would have seen.
		 */
		return cv_ticks() * 0x9e3779b97f4a7c15u >> 58 == 0 ? (uint32_t)max / 2 : 0;
	}
	return (uint32_t)cv_min_u64(budget, max);
}

void cv_spin_feedback(uint32_t *budget, const struct cv_settings *set, bool paid, uint64_t ticks)
{
	uint64_t max = spin_bound(set), b = *budget ? *budget : max, target;

	if (set->spin != CV_SPIN_ADAPTIVE)
		return;
	if (paid && ticks <= max) {
		target = cv_min_u64(2 * ticks + 2 * cv_ticks_per_us(), max);
		b = target > b ? target : b - (b - target) / 16;
	} else {
		b -= b / 4 + 1;
	}
	*budget = b ? (uint32_t)b : 1;
}

/* Until when (ticks) we take it that others want our CPU, or all of them: hints for all threads of the process. */
static _Atomic uint64_t crowded, busy;

uint64_t cv_spin_first(uint64_t now)
{
	return now < atomic_load_explicit(&crowded, memory_order_relaxed) ? now : now + CV_SPIN_FIRST_US * cv_ticks_per_us();
}

void cv_spin_lost(uint64_t now)
{
	/* A bucket that leaks, in ticks; threads that fall into each other's words do no harm. */
	static _Atomic uint64_t full_until;
	uint64_t t = atomic_load_explicit(&full_until, memory_order_relaxed), each = CV_SPIN_LOSS_US * cv_ticks_per_us();

	t = (t > now ? t : now) + each;
	if (t > now + CV_SPIN_LOSSES * each) {
		t = now + CV_SPIN_LOSSES * each;
		atomic_store_explicit(&busy, now + CV_SPIN_BUSY_US * cv_ticks_per_us(), memory_order_relaxed);
	}
	atomic_store_explicit(&full_until, t, memory_order_relaxed);
}

bool cv_spin_busy(uint64_t now)
{
	return now < atomic_load_explicit(&busy, memory_order_relaxed);
}

bool cv_spin_yield(uint64_t *at)
{
	uint64_t before = cv_ticks(), after, took;

	cv_sys0(SYS_sched_yield);
	after = cv_ticks();
	took = after - before;
	/* Alone it is a few hundred nanoseconds, on slow or virtual machines one or two microseconds. */
	if (likely(took < CV_SPIN_ALONE_US * cv_ticks_per_us())) {
		*at = after + CV_SPIN_EVERY_US * cv_ticks_per_us();
		return false;
	}
	atomic_store_explicit(&crowded, after + CV_SPIN_CROWDED_US * cv_ticks_per_us(), memory_order_relaxed);
	*at = after;
	if (took < CV_SPIN_LONG_US * cv_ticks_per_us())
		return false;
	cv_spin_lost(after);
	return true;
}
