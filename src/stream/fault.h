/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Deliberate faults, for testing the tests: tests/sim/mutants builds the engine with -DCV_FAULT=n for each n and expects the simulator to find it.
 * In every other build CV_FAULT_IF() is a constant and the faults are gone.
 */
#ifndef CV_FAULT_H
#define CV_FAULT_H

#ifdef CV_FAULT
#define CV_FAULT_IF(n) (CV_FAULT == (n))
#else
#define CV_FAULT_IF(n) 0
#endif

#endif
