/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Small things that every layer uses. No state, no system calls; anybody may call anything here from any thread.
 */
#ifndef CV_BASE_H
#define CV_BASE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define likely(x) __builtin_expect(!!(x), 1)
#define unlikely(x) __builtin_expect(!!(x), 0)
#define CV_EXPORT __attribute__((visibility("default")))
#define CV_COLD __attribute__((cold, noinline))
#define CV_CACHELINE 64
#define CV_ALIGNED __attribute__((aligned(CV_CACHELINE)))
#define cv_container_of(ptr, type, member) ((type *)((char *)(ptr)-offsetof(type, member)))
#define CV_ARRAY_LEN(a) (sizeof(a) / sizeof((a)[0]))

static inline void cv_pause(void)
{
#if defined(__x86_64__) || defined(__i386__)
	__builtin_ia32_pause();
#elif defined(__aarch64__)
	__asm__ __volatile__("isb" ::: "memory");
#endif
}

static inline uint64_t cv_min_u64(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

#endif
