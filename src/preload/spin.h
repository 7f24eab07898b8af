/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A spin that shares its CPU. Spinners never sleep, so two that wait for each other on one CPU would burn it in turns. So a spinner
 * offers its CPU now and then. If somebody takes it for a short time, that may be the very one it waits for: it goes on offering, as
 * handing over is cheaper than sleeping and being woken. If somebody takes it for long, it stops spinning: who sleeps is woken in time,
 * and on an idle CPU.
 */
#ifndef CV_SPIN_H
#define CV_SPIN_H

#include "sock.h"

#define CV_SPIN_FIRST_US 10 /* the first offer, */
#define CV_SPIN_EVERY_US 20 /* and the next */
#define CV_SPIN_ALONE_US 5  /* an offer that ends sooner was not taken, */
#define CV_SPIN_LONG_US 50  /* and one that ends later was taken by somebody else's work */
#define CV_SPIN_CROWDED_US 1000 /* after one was taken, the next waits begin with an offer */
#define CV_SPIN_GAP_US 20   /* a spinner that finds so much time gone has lost its CPU; */
#define CV_SPIN_LOSS_US 1000 /* if that happens more often than once in this time, */
#define CV_SPIN_LOSSES 8     /* by so many times, then all CPUs are busy, */
#define CV_SPIN_BUSY_US 10000 /* for as long as this */

/* Adaptive spinning: call with the ticks spent and whether it paid; keeps *budget within settings. */
void cv_spin_feedback(uint32_t *budget, const struct cv_settings *set, bool paid, uint64_t ticks);
/* The budget to use now (0: do not spin). */
uint32_t cv_spin_budget(uint32_t budget, const struct cv_settings *set);
/* When to offer first (ticks). */
uint64_t cv_spin_first(uint64_t now);
/* Offer the CPU. True: somebody else needs it. *at: when to offer next (ticks). */
bool cv_spin_yield(uint64_t *at);
/* The scheduler took our CPU from us. */
void cv_spin_lost(uint64_t now);
/* More threads want to run than there are CPUs. */
bool cv_spin_busy(uint64_t now);

#endif
