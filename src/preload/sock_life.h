/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the wrappers ask of the sockets outside the data path. Called with no lock held, by any thread of the program; none of them sets errno.
 */
#ifndef CV_SOCK_LIFE_H
#define CV_SOCK_LIFE_H

#include "sock.h"

/* fd, which the table says is s (SOCK or OUT), was closed behind our back or is another file now: drop it, closing nothing. Clears the entry if it still is s. */
void cv_sock_vanished(struct cv_sock *s, int fd);
/* shutdown(2), the kernel's part included. 0 or -errno. */
int cv_sock_shutdown(struct cv_sock *s, int fd, int how);
/* FIONREAD, SIOCOUTQ, SIOCOUTQNSD, SIOCATMARK: 0 and *out, -errno, or CV_IO_REAL: make the plain call. */
int cv_sock_ioctl(struct cv_sock *s, int fd, unsigned long req, int *out);
/* SO_ERROR: the error that is pending here (errno value, taken), or 0: ask the kernel. */
int cv_sock_error(struct cv_sock *s, int fd);
/* Around fork, between cv_agent_fork_*(). A socket's locks are not taken: the child makes them anew, and begins anew with what they guarded. */
void cv_sock_fork_prepare(void);
void cv_sock_fork_parent(void);
void cv_sock_fork_child(void);
/* The process uses io_uring, which we cannot see: accelerate nothing in it from now on. */
void cv_sock_uring(void);
/* The process is about to end: what links still carry goes out (bounded), the stats segment goes. Async-signal-safe; called once. */
void cv_sock_exit(void);

#endif
