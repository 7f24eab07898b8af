/* SPDX-License-Identifier: Apache-2.0 */
#include "clock.h"

uint64_t cv_ticks_per_us(void)
{
	static _Atomic uint64_t cached;
	uint64_t rate = atomic_load_explicit(&cached, memory_order_relaxed);

	if (likely(rate != 0))
		return rate;

	uint64_t n0 = cv_now_ns(), t0 = cv_ticks(), n1, t1;

	do {
		n1 = cv_now_ns();
		t1 = cv_ticks();
	} while (n1 - n0 < 20000);
	rate = (t1 - t0) * 1000 / (n1 - n0);
	rate = rate ? rate : 1;
	atomic_store_explicit(&cached, rate, memory_order_relaxed);
	return rate;
}
