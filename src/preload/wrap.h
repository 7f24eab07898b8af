/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the wrappers' files share among themselves.
 */
#ifndef CV_WRAP_H
#define CV_WRAP_H

#include "real.h"
#include "sock_life.h"
#include <errno.h>

/* CV_LEVEL_ON was reached: there may be entries in the table and descriptors of our own, whatever became of the level since. */
extern _Atomic bool cv_tracking;
static inline bool cv_tracks(void)
{
	return atomic_load_explicit(&cv_tracking, memory_order_acquire);
}

/*
 * Every call of the read and write families: `io` serves a socket in play (it may use s_ and &bracket_), `plain` is libc's call with the program's arguments.
 * A thread that is cancelled inside a bracketed plain call leaves the bracket open: its socket then merely stays on TCP.
 */
#define CV_IO_CALL(fd, io, plain) \
	do { \
		struct cv_sock *tracked_ = cv_fd_sock(fd); \
\
		if (likely(!tracked_)) \
			return plain; \
		CV_IO_TRACKED(tracked_, io, plain); \
	} while (0)

/* The rest of it, for the four calls that keep it out of line: what is not ours then costs a look-up and a jump. */
#define CV_IO_TRACKED(s, io, plain) \
	do { \
		struct cv_sock *s_ = s; \
		bool bracket_ = false; \
		ssize_t done_; \
\
		done_ = io; \
		if (likely(done_ != CV_IO_REAL)) \
			return done_; \
		done_ = plain; \
		if (bracket_) \
			cv_sock_leave(s_, done_); \
		return done_; \
	} while (0)

/* fdcalls.c */

/* A call returned fd as new: an entry that is still there is of a descriptor that was closed behind our back. */
void cv_fd_stale(int fd, uintptr_t entry);
static inline void cv_fd_fresh(int fd)
{
	uintptr_t e = fd >= 0 ? cv_fd_get(fd) : 0;

	if (unlikely(e))
		cv_fd_stale(fd, e);
}
/* to is a new duplicate of fd. */
void cv_fd_duplicated(int fd, int to);
/* What is known of an unconnected socket changes from e to now, at fd and at its duplicates. */
void cv_fd_other(int fd, uintptr_t e, uintptr_t now);
/* O_NONBLOCK was set or cleared. */
void cv_fd_nonblock(int fd, bool on);
/*
 * Only the kernel can do what comes next (fd in play, or not): back to TCP, for good. STAY: writing, and what does not touch the stream, may follow; what has
 * arrived is still ours to read. HANDOVER: somebody may read the twin.
 */
static inline void cv_fd_to_kernel(int fd, enum cv_leave how, enum cv_reason why)
{
	struct cv_sock *s = cv_fd_sock(fd);

	if (unlikely(s))
		cv_sock_fall_back(s, how, why, true);
}

/* sockcalls.c: the kernel has begun to connect fd, whose entry was e (OTHER_TCP). errno preserved. */
void cv_sock_connecting(int fd, uintptr_t e);

/* proc.c */

/* In a vfork child: the tables are the parent's, and not to be changed. Costs a system call only between the parent's vfork and its return. */
bool cv_borrowed_slow(void);
extern _Atomic int cv_vforks;
static inline bool cv_borrowed(void)
{
	return unlikely(atomic_load_explicit(&cv_vforks, memory_order_relaxed)) && cv_borrowed_slow();
}
/* Descriptors without FD_CLOEXEC pass to another program. errno preserved. */
void cv_proc_before_exec(void);
/* fd passes to another program, which will use it: it stays on TCP. errno preserved. */
void cv_proc_hand_over(int fd);
/* The fork protocol, for children that are made past fork(). */
void cv_proc_fork_prepare(void);
void cv_proc_fork_parent(void);
void cv_proc_fork_child(void);
/* At CV_LEVEL_ON, once. */
void cv_proc_start(void);

#endif
