/* SPDX-License-Identifier: Apache-2.0 */
/*
 * culvert's own descriptors: numbered high (programs that count, select() or start with 0-2 closed keep the low ones), CLOEXEC, and known, so that loops
 * which close everything pass them over. Lock-free; any thread.
 */
#ifndef CV_INTERNAL_FD_H
#define CV_INTERNAL_FD_H

#include "agent.h"

/* In a forked child: close what was the parent's own. */
void cv_fd_forked(void);

#endif
