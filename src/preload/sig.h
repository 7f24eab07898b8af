/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which signals this thread has handled: a thread that spins sees no EINTR, so it compares counts. Handlers are counted from cv_signals_watch() on, which is
 * called when the process gets its first link: from then on every handler is installed behind one of ours. A program that never has a link
 * keeps its handlers exactly as it set them. Not counted: signals that report a fault of the thread itself, and handlers that were installed past libc.
 */
#ifndef CV_SIG_H
#define CV_SIG_H

#include "../base/base.h"

/* Low half: handlers run by this thread; high half: of those, the ones without SA_RESTART. initial-exec: four bytes of static TLS. */
extern __thread uint32_t cv_signals_here __attribute__((tls_model("initial-exec"), visibility("hidden")));

static inline uint32_t cv_signals_seen(void)
{
	/* atomic: it changes under a loop's feet, by this very thread */
	return __atomic_load_n(&cv_signals_here, __ATOMIC_RELAXED);
}

/* Were all handlers that ran since `before` installed with SA_RESTART? */
static inline bool cv_signals_restart(uint32_t before)
{
	return (cv_signals_seen() ^ before) >> 16 == 0;
}

/* Start counting. Idempotent; any thread; errno preserved. */
void cv_signals_watch(void);
/* In a forked child. */
void cv_signals_forked(void);
/* Last in the child: from here on signals come through again. */
void cv_signals_fork_done(void);

#endif
