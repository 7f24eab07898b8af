/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The fd table: what culvert knows of each descriptor. Look-up is two loads, no lock. Entries are tagged words; the objects are type-stable (never unmapped), so
 * a stale pointer can be locked and then checked against the table again.
 *
 * Only close, dup and their kin, and whoever makes a descriptor, change entries; each change is one atomic store or exchange.
 */
#ifndef CV_FD_H
#define CV_FD_H

#include "../base/base.h"

struct cv_sock;
struct cv_epoll;

#define CV_FD_CHUNK 1024
#define CV_FD_CHUNKS 1024 /* fds up to 1,048,575; beyond: never tracked */

enum cv_fd_tag {
	CV_FD_SOCK = 0,	 /* struct cv_sock, in play */
	CV_FD_OUT = 1,	 /* struct cv_sock, excluded for good: plain calls, kept for the stats row and close */
	CV_FD_EPOLL = 2, /* struct cv_epoll */
	CV_FD_OTHER = 3, /* a socket that is not connected: bits above say more; none of them: one that must stay untracked */
};
#define CV_FD_OTHER_TCP ((uintptr_t)1 << 2)	 /* a plain TCP socket: tracked once connected, and so are its accepted ones */
#define CV_FD_OTHER_NONBLOCK ((uintptr_t)1 << 3) /* O_NONBLOCK at creation or by fcntl/ioctl */
#define CV_FD_OTHER_LISTEN ((uintptr_t)1 << 4)
#define CV_FD_OTHER_SHARED ((uintptr_t)1 << 5) /* other descriptors may hold it too (dup): all of them have this very entry, */
#define CV_FD_OTHER_GROUP 6			 /* which a number from this bit up makes theirs alone */

typedef _Atomic uintptr_t cv_fd_chunk[CV_FD_CHUNK];
extern cv_fd_chunk *_Atomic cv_fd_top[CV_FD_CHUNKS];

static inline uintptr_t cv_fd_get(int fd)
{
	if (unlikely((unsigned)fd >= CV_FD_CHUNK * CV_FD_CHUNKS))
		return 0;
	/* acquire: pairs with cv_fd_set's release, so that the object is seen initialised */
	cv_fd_chunk *c = atomic_load_explicit(&cv_fd_top[(unsigned)fd / CV_FD_CHUNK], memory_order_acquire);

	return c ? atomic_load_explicit(&(*c)[(unsigned)fd % CV_FD_CHUNK], memory_order_acquire) : 0;
}

static inline enum cv_fd_tag cv_fd_tag(uintptr_t entry)
{
	return (enum cv_fd_tag)(entry & 3);
}

/* The object of a SOCK or OUT entry. */
static inline struct cv_sock *cv_fd_sock_of(uintptr_t entry)
{
	return (struct cv_sock *)(entry & ~(uintptr_t)3);
}

/* The socket in play at fd, or NULL: make the plain call. */
static inline struct cv_sock *cv_fd_sock(int fd)
{
	uintptr_t e = cv_fd_get(fd);

	return (e & 3) == CV_FD_SOCK ? (struct cv_sock *)e : NULL;
}

static inline struct cv_epoll *cv_fd_epoll(int fd)
{
	uintptr_t e = cv_fd_get(fd);

	return (e & 3) == CV_FD_EPOLL ? (struct cv_epoll *)(e & ~(uintptr_t)3) : NULL;
}

/* Store an entry (object | tag; 0 clears). 0 or -ENOMEM / -EBADF (fd too large). */
int cv_fd_set(int fd, uintptr_t entry);
/* Store `to` if fd still holds `from` (neither need be 0). True when stored. */
bool cv_fd_swap(int fd, uintptr_t from, uintptr_t to);
/* Replace the tag and object of every fd that holds `from` by `to` (e.g. SOCK -> OUT). */
void cv_fd_retag(uintptr_t from, uintptr_t to);
/* Any fd that holds this object, or -1. Slow; for when the sock's fd was closed and a dup lives on. */
int cv_fd_find(uintptr_t entry, int except);
/* Highest fd ever set, plus one. */
int cv_fd_limit(void);
/* In a _Fork child, whose memory is its own: forget everything. */
void cv_fd_forget(void);

#endif
