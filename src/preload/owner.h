/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who may use a connection that several processes hold since a fork: its owner cell, in memory that they share.
 *
 * Whichever process first does I/O on it after the fork claims it; only the owner upgrades. Any other that does I/O marks it shared (never upgraded from then
 * on) and, if the owner has it on a link, first has the owner's agent return it to TCP. A connection made after the last fork has no cell and costs one
 * comparison. Cells lie in one table per fork, found by the sock's number, which parent and child have in common.
 */
#ifndef CV_OWNER_H
#define CV_OWNER_H

#include "sock.h"

extern _Atomic uint32_t cv_fork_seq; /* forks in this process's line of ancestors since tracking began */

static inline bool cv_owner_shared(const struct cv_sock *s)
{
	return unlikely(s->fork_seq != atomic_load_explicit(&cv_fork_seq, memory_order_relaxed));
}

/* Before plain I/O on an inherited connection: claim it, or get it back to TCP. 0: it is on TCP, or ours; -errno: it could not be had. No locks held. */
int cv_owner_io(struct cv_sock *s, int fd);
/* Before an upgrade: may we? tx and rx held. NOBODY: not before one of the holders does I/O. */
enum cv_owner { CV_OWNER_US, CV_OWNER_NOBODY, CV_OWNER_OTHER };
enum cv_owner cv_owner_of(const struct cv_sock *s);
/* It went onto a link (false: somebody shares it, leave again) or came off; it is done with here. */
bool cv_owner_linked(struct cv_sock *s);
void cv_owner_unlinked(struct cv_sock *s);
void cv_owner_gone(struct cv_sock *s);

/* Agent's thread: take requests of other processes from now on. False: cannot; then nothing must go onto a link that a child could want back. */
bool cv_owner_listen(void);
/* Around fork. prepare: this process's connections get their cells. */
void cv_owner_fork_prepare(void);
void cv_owner_fork_child(void);

#endif
