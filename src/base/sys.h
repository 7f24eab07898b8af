/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Raw system calls for culvert's own use.
 *
 * Inside libculvert.so the names read, write, close, ... are the interposed ones; code below the preload layer must never enter
 * them. These return -errno, do not touch errno, are no cancellation points, and need no start-up.
 */
#ifndef CV_SYS_H
#define CV_SYS_H

#include <stdint.h>
#include <sys/syscall.h>

#if defined(__x86_64__)
static inline long cv_sys6(long n, long a, long b, long c, long d, long e, long f)
{
	long ret;
	register long r10 __asm__("r10") = d;
	register long r8 __asm__("r8") = e;
	register long r9 __asm__("r9") = f;

	__asm__ __volatile__("syscall"
			     : "=a"(ret)
			     : "a"(n), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
			     : "rcx", "r11", "memory");
	return ret;
}
#elif defined(__aarch64__)
static inline long cv_sys6(long n, long a, long b, long c, long d, long e, long f)
{
	register long x8 __asm__("x8") = n;
	register long x0 __asm__("x0") = a;
	register long x1 __asm__("x1") = b;
	register long x2 __asm__("x2") = c;
	register long x3 __asm__("x3") = d;
	register long x4 __asm__("x4") = e;
	register long x5 __asm__("x5") = f;

	__asm__ __volatile__("svc 0"
			     : "+r"(x0)
			     : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5)
			     : "memory");
	return x0;
}
#else
#error "culvert supports x86-64 and AArch64"
#endif

#define CV_SYS_ARG_(x) ((long)(x))
#define cv_sys0(n) cv_sys6(n, 0, 0, 0, 0, 0, 0)
#define cv_sys1(n, a) cv_sys6(n, CV_SYS_ARG_(a), 0, 0, 0, 0, 0)
#define cv_sys2(n, a, b) cv_sys6(n, CV_SYS_ARG_(a), CV_SYS_ARG_(b), 0, 0, 0, 0)
#define cv_sys3(n, a, b, c) cv_sys6(n, CV_SYS_ARG_(a), CV_SYS_ARG_(b), CV_SYS_ARG_(c), 0, 0, 0)
#define cv_sys4(n, a, b, c, d) cv_sys6(n, CV_SYS_ARG_(a), CV_SYS_ARG_(b), CV_SYS_ARG_(c), CV_SYS_ARG_(d), 0, 0)
#define cv_sys5(n, a, b, c, d, e) \
	cv_sys6(n, CV_SYS_ARG_(a), CV_SYS_ARG_(b), CV_SYS_ARG_(c), CV_SYS_ARG_(d), CV_SYS_ARG_(e), 0)

#endif
