/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The interposed symbols: one table (symbols.def), from which come the exported wrappers' list, the pointers to libc's functions and the start-up
 * look-up. cv_real.NAME is libc's NAME, before the constructor too (real_table.h).
 *
 * Start-up ladder (cv_level): 0 nothing; 1 libc's functions known: wrappers pass through; 2 policy loaded, sockets are tracked (first eligible
 * socket). Below 2 wrappers only pass through. A process where policy admits nothing stays at 1 for good (cv_off).
 */
#ifndef CV_REAL_H
#define CV_REAL_H

#include "real_table.h"

struct cv_policy;

enum cv_level { CV_LEVEL_NONE, CV_LEVEL_PASS, CV_LEVEL_ON };
extern _Atomic int cv_level;
/* Set before CV_LEVEL_ON, never changed afterwards. */
extern const struct cv_policy *cv_policy_now;
/* The program, an absolute path, once CV_LEVEL_ON is reached. */
extern char cv_program[];

static inline bool cv_on(void)
{
	return atomic_load_explicit(&cv_level, memory_order_acquire) == CV_LEVEL_ON;
}

/* Reach CV_LEVEL_ON if policy wants anything; true when on. Called by socket(), accept(), connect() only. errno preserved. */
bool cv_up(void);
/* Nothing will be tracked any more, if ever anything was: policy admits nothing, or cv_bar(). */
bool cv_off(void);
/* From now on cv_up() says no, also when policy was not read yet. */
void cv_bar(void);

/* libc's syscall(); the wrapper jumps through it. */
extern void *cv_syscall_next __attribute__((visibility("hidden")));
void *cv_real_vfork(void);

/* -errno as libc's functions show it. */
#define CV_RET(r) \
	({ \
		__typeof__(r) ret_ = (r); \
		if (unlikely(ret_ < 0)) { \
			errno = (int)-ret_; \
			ret_ = -1; \
		} \
		ret_; \
	})

#endif
