/* SPDX-License-Identifier: Apache-2.0 */
#include "internal_fd.h"
#include "../base/lock.h"
#include <errno.h>
#include <fcntl.h>
#include <sys/resource.h>

#define FD_MAX (1u << 20)
#define FD_WORDS (FD_MAX / 64)

static _Atomic uint64_t ours[FD_WORDS]; /* untouched pages of .bss cost nothing */
static _Atomic uint32_t lowest = FD_MAX, highest;

static void note(unsigned fd)
{
	uint32_t lo = atomic_load_explicit(&lowest, memory_order_relaxed);
	uint32_t hi = atomic_load_explicit(&highest, memory_order_relaxed);

	while (fd < lo && !atomic_compare_exchange_weak(&lowest, &lo, fd))
		;
	while (fd >= hi && !atomic_compare_exchange_weak(&highest, &hi, fd + 1))
		;
	atomic_fetch_or_explicit(&ours[fd / 64], 1ull << (fd % 64), memory_order_release);
}

/* The top quarter of what the process may open, at most 16,384 numbers. */
static unsigned floor_fd(void)
{
	struct rlimit rl = {0};
	uint64_t max;

	if (cv_sys4(SYS_prlimit64, 0, RLIMIT_NOFILE, 0, &rl) < 0)
		return 512;
	max = rl.rlim_cur > FD_MAX ? FD_MAX : rl.rlim_cur;
	return (unsigned)(max - cv_min_u64(max / 4, 16384));
}

_Atomic uint32_t cv_fd_making;
static struct cv_lock making_lock; /* a leaf */

void cv_fd_make_begin(void)
{
	cv_lock(&making_lock);
	/* seq_cst: before the number exists. A close that is already in the kernel may still hit it: only a loop over numbers that are not open could. */
	atomic_store_explicit(&cv_fd_making, 1, memory_order_seq_cst);
}

void cv_fd_make_end(void)
{
	atomic_store_explicit(&cv_fd_making, 0, memory_order_release);
	cv_unlock(&making_lock);
}

void cv_fd_made(void)
{
	cv_lock(&making_lock);
	cv_unlock(&making_lock);
}

static int dup_high(int fd)
{
	unsigned from = floor_fd();
	long high = -EMFILE;

	for (; from > 3 && high < 0; from /= 2)
		high = cv_sys3(SYS_fcntl, fd, F_DUPFD_CLOEXEC, from);
	if (high >= 0 && (unsigned long)high >= FD_MAX) {
		cv_sys1(SYS_close, high);
		high = -EMFILE;
	}
	if (high >= 0)
		note((unsigned)high);
	return (int)high;
}

int cv_fd_dup(int fd)
{
	return dup_high(fd);
}

int cv_fd_high(int fd)
{
	int high = dup_high(fd);

	cv_sys1(SYS_close, fd);
	return high;
}

int cv_fd_new(long nr, long a, long b, long c, long d)
{
	int fd;

	cv_fd_make_begin();
	fd = (int)cv_sys4(nr, a, b, c, d);
	if (fd >= 0)
		fd = cv_fd_high(fd);
	cv_fd_make_end();
	return fd;
}

bool cv_fd_internal(int fd)
{
	return (unsigned)fd < FD_MAX &&
	       (atomic_load_explicit(&ours[(unsigned)fd / 64], memory_order_acquire) >> ((unsigned)fd % 64) & 1);
}

void cv_fd_close(int fd)
{
	if (fd < 0)
		return;
	if ((unsigned)fd < FD_MAX)
		atomic_fetch_and_explicit(&ours[(unsigned)fd / 64], ~(1ull << ((unsigned)fd % 64)), memory_order_release);
	cv_sys1(SYS_close, fd);
}

void cv_fd_forked(void)
{
	making_lock = (struct cv_lock){0};
	cv_fd_making = 0;
	uint32_t hi = atomic_load_explicit(&highest, memory_order_relaxed);

	for (uint32_t i = atomic_load_explicit(&lowest, memory_order_relaxed) / 64; i * 64 < hi; i++) {
		uint64_t bits = atomic_load_explicit(&ours[i], memory_order_relaxed);

		while (bits) {
			int fd = (int)(i * 64) + __builtin_ctzll(bits);

			bits &= bits - 1;
			cv_fd_close(fd);
		}
	}
}
