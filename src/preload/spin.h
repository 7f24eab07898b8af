/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A spin that shares its CPU. Spinners never sleep, so the scheduler sees no reason to move them apart: two that wait for each other on
 * one CPU would take turns for as long as they run. So a spinner offers its CPU now and then, and if somebody took it for long, it
 * stops spinning: whoever sleeps is woken on an idle CPU.
 */
#ifndef CV_SPIN_H
#define CV_SPIN_H

#include "sock.h"

#define CV_SPIN_FIRST_US 10 /* the first offer, */
#define CV_SPIN_EVERY_US 20 /* and the next */

/* Offer the CPU. True: somebody else needed it. *at: when to offer next (ticks). */
bool cv_spin_yield(uint64_t *at);

#endif
