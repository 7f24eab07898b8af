/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Time for spinning and deadlines. cv_now_ns() is CLOCK_MONOTONIC through the vDSO; cv_ticks() is the CPU's counter, for budgets of a few
 * microseconds where even the vDSO is too dear. cv_ticks_per_us() measures once, lazily.
 */
#ifndef CV_CLOCK_H
#define CV_CLOCK_H

#include "base.h"
#include <time.h>

static inline uint64_t cv_now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static inline struct timespec cv_timespec(uint64_t ns)
{
	return (struct timespec){.tv_sec = (time_t)(ns / 1000000000u), .tv_nsec = (long)(ns % 1000000000u)};
}

static inline uint64_t cv_ticks(void)
{
#if defined(__x86_64__)
	return __builtin_ia32_rdtsc();
#elif defined(__aarch64__)
	uint64_t v;
	__asm__ __volatile__("mrs %0, cntvct_el0" : "=r"(v));
	return v;
#endif
}

uint64_t cv_ticks_per_us(void);

#endif
