/* SPDX-License-Identifier: Apache-2.0 */
#include "fd.h"
#include "../base/sys.h"
#include <errno.h>
#include <sys/mman.h>

/* The first chunk costs no system call: programs in a sandbox have few descriptors. */
static cv_fd_chunk fd_first;
cv_fd_chunk *_Atomic cv_fd_top[CV_FD_CHUNKS] = {&fd_first};
static _Atomic int fd_limit;

static cv_fd_chunk *fd_chunk(int fd, bool make)
{
	cv_fd_chunk *_Atomic *top = &cv_fd_top[(unsigned)fd / CV_FD_CHUNK];
	cv_fd_chunk *have = atomic_load_explicit(top, memory_order_acquire);
	long p;

	if (likely(have) || !make)
		return have;
	p = cv_sys6(SYS_mmap, 0, sizeof(cv_fd_chunk), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (p < 0 && p > -4096)
		return NULL;
	/* release: the zeroes before the pointer. Partner: cv_fd_get() */
	if (atomic_compare_exchange_strong_explicit(top, &have, (cv_fd_chunk *)p, memory_order_acq_rel, memory_order_acquire))
		return (cv_fd_chunk *)p;
	cv_sys2(SYS_munmap, p, sizeof(cv_fd_chunk));
	return have;
}

static void fd_raise_limit(int to)
{
	int now = atomic_load_explicit(&fd_limit, memory_order_relaxed);

	while (now < to && !atomic_compare_exchange_weak_explicit(&fd_limit, &now, to, memory_order_relaxed, memory_order_relaxed))
		;
}

int cv_fd_set(int fd, uintptr_t entry)
{
	cv_fd_chunk *c;

	if ((unsigned)fd >= CV_FD_CHUNK * CV_FD_CHUNKS)
		return entry ? -EBADF : 0;
	c = fd_chunk(fd, entry != 0);
	if (!c)
		return entry ? -ENOMEM : 0;
	if (entry)
		fd_raise_limit(fd + 1);
	atomic_store_explicit(&(*c)[(unsigned)fd % CV_FD_CHUNK], entry, memory_order_release);
	return 0;
}

bool cv_fd_swap(int fd, uintptr_t from, uintptr_t to)
{
	cv_fd_chunk *c;

	if ((unsigned)fd >= CV_FD_CHUNK * CV_FD_CHUNKS)
		return false;
	c = fd_chunk(fd, to != 0);
	if (!c)
		return false;
	if (to)
		fd_raise_limit(fd + 1);
	return atomic_compare_exchange_strong_explicit(&(*c)[(unsigned)fd % CV_FD_CHUNK], &from, to, memory_order_acq_rel, memory_order_relaxed);
}

void cv_fd_retag(uintptr_t from, uintptr_t to)
{
	int limit = cv_fd_limit();

	for (int fd = 0; fd < limit; fd++)
		if (cv_fd_get(fd) == from)
			cv_fd_swap(fd, from, to);
}

int cv_fd_find(uintptr_t entry, int except)
{
	int limit = cv_fd_limit();

	for (int fd = 0; fd < limit; fd++)
		if (fd != except && cv_fd_get(fd) == entry)
			return fd;
	return -1;
}

int cv_fd_limit(void)
{
	return atomic_load_explicit(&fd_limit, memory_order_relaxed);
}

void cv_fd_forget(void)
{
	int limit = cv_fd_limit();

	for (int fd = 0; fd < limit; fd++)
		if (cv_fd_get(fd))
			cv_fd_set(fd, 0);
}
