/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rows are handed out by one bitmap that lies outside the file: what another process may write there can never make us take or free a row. Every step
 * is one atomic operation, so that a child forked at any moment finds it whole.
 */
#include "stats.h"
#include "../base/clock.h"
#include "../base/lock.h"
#include "stats_file.h"
#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#define FALLBACK_ROWS 32u
#define BITS 64u

_Static_assert(offsetof(struct cv_stats_segment, row) % sizeof(struct cv_row) == 0, "rows must not straddle pages");

/* The last row is the scratch row: shared by every stream that found no row of its own. Zero but for what nobody reads. */
static union {
	struct cv_stats_segment seg;
	char bytes[offsetof(struct cv_stats_segment, row) + (FALLBACK_ROWS + 1) * sizeof(struct cv_row)];
} fallback;

struct cv_stats_segment *cv_stats = &fallback.seg;

static struct cv_lock open_lock; /* serialises open; innermost, held over start-up system calls only */
static struct cv_stats_file file;

/* The rows of one segment: which are taken, and up to where memory is known to stand behind them. */
struct rows {
	_Atomic uint64_t used[CV_STATS_ROWS / BITS];
	_Atomic uint32_t first; /* hint: words below are full */
	_Atomic uint32_t backed;
	uint32_t count;
};

static struct rows fallback_rows = { .count = FALLBACK_ROWS, .backed = FALLBACK_ROWS };
static struct rows file_rows;

static struct cv_stats_segment *file_segment; /* NULL until the first successful open; its address never changes after */

/*
 * A full file system shows as SIGBUS on the first touch of a page. A system call that stores there fails with EFAULT instead: let one
 * put a time into the padding of the page's rows, where nobody looks.
 */
static bool back_page(struct cv_row *row)
{
	_Static_assert(sizeof(row->pad_) >= 16, "room for a struct timespec");
	void *spot = (char *)row + sizeof(*row) - 16;

	return cv_sys2(SYS_clock_gettime, CLOCK_MONOTONIC, spot) == 0;
}

static bool back_row(_Atomic uint32_t *upto, struct cv_stats_segment *seg, uint32_t i)
{
	uint32_t backed = atomic_load_explicit(upto, memory_order_relaxed);

	/* Row by row would be a system call each. Bits are taken lowest first, so this is one page, seldom two. */
	while (i >= backed) {
		uintptr_t at = (uintptr_t)&seg->row[backed], next = (at | (CV_STATS_PAGE - 1)) + 1;

		if (!back_page(&seg->row[backed]))
			return false;
		backed += (uint32_t)((next - at) / sizeof(struct cv_row));
		atomic_store_explicit(upto, backed, memory_order_relaxed);
	}
	return true;
}

/* The index of a row that was free, or -1. Acquire pairs with the release in free_bit(): its stores are over before ours begin. */
static int32_t take_bit_from(struct rows *rows, uint32_t w)
{
	uint32_t words = (rows->count + BITS - 1) / BITS;

	for (; w < words; w++) {
		uint64_t v = atomic_load_explicit(&rows->used[w], memory_order_relaxed);

		while (v != UINT64_MAX) {
			uint32_t bit = (uint32_t)__builtin_ctzll(~v), i = w * BITS + bit;

			if (i >= rows->count)
				break;
			if (atomic_compare_exchange_weak_explicit(&rows->used[w], &v, v | 1ull << bit, memory_order_acquire,
								  memory_order_relaxed))
				return (int32_t)i;
		}
		if (v == UINT64_MAX) {
			uint32_t hint = w;

			atomic_compare_exchange_strong_explicit(&rows->first, &hint, w + 1, memory_order_relaxed, memory_order_relaxed);
		}
	}
	return -1;
}

static int32_t take_bit(struct rows *rows)
{
	uint32_t first = atomic_load_explicit(&rows->first, memory_order_relaxed);
	int32_t i = take_bit_from(rows, first);

	/* The hint may have passed a word just as a row of it was freed: it is a hint. */
	return i < 0 && first ? take_bit_from(rows, 0) : i;
}

static void free_bit(struct rows *rows, uint32_t i)
{
	uint32_t w = i / BITS, hint = atomic_load_explicit(&rows->first, memory_order_relaxed);

	atomic_fetch_and_explicit(&rows->used[w], ~(1ull << i % BITS), memory_order_release);
	while (w < hint &&
	       !atomic_compare_exchange_weak_explicit(&rows->first, &hint, w, memory_order_relaxed, memory_order_relaxed))
		;
}

static void raise_rows_used(struct cv_stats_segment *seg, uint32_t n)
{
	uint32_t used = atomic_load_explicit(&seg->rows_used, memory_order_relaxed);

	while (used < n &&
	       !atomic_compare_exchange_weak_explicit(&seg->rows_used, &used, n, memory_order_relaxed, memory_order_relaxed))
		;
}

struct cv_row *cv_row_get(void)
{
	struct cv_stats_segment *seg = __atomic_load_n(&cv_stats, __ATOMIC_ACQUIRE);
	struct rows *rows = seg == &fallback.seg ? &fallback_rows : &file_rows;
	int32_t i = take_bit(rows);

	if (i < 0)
		return &fallback.seg.row[FALLBACK_ROWS];
	if (unlikely(!back_row(&rows->backed, seg, (uint32_t)i))) {
		free_bit(rows, (uint32_t)i);
		return &fallback.seg.row[FALLBACK_ROWS];
	}
	memset(&seg->row[i], 0, offsetof(struct cv_row, pad_));
	raise_rows_used(seg, (uint32_t)i + 1);
	return &seg->row[i];
}

static void fold(_Atomic uint64_t *bytes, enum cv_counter c)
{
	uint64_t n = atomic_exchange_explicit(bytes, 0, memory_order_relaxed);

	if (n)
		cv_count(c, n);
}

void cv_row_put(struct cv_row *row)
{
	struct cv_stats_segment *seg = file_segment;
	bool in_fallback = row >= fallback.seg.row && row < fallback.seg.row + FALLBACK_ROWS;

	/* First: a reader that adds live rows to the counters should rather miss these bytes for a moment than see them twice. */
	if (row != &fallback.seg.row[FALLBACK_ROWS])
		atomic_store_explicit(&row->state, CV_ROW_FREE, memory_order_release);
	fold(&row->tx_link, CV_CTR_TX_LINK);
	fold(&row->rx_link, CV_CTR_RX_LINK);
	fold(&row->tx_tcp, CV_CTR_TX_TCP);
	fold(&row->rx_tcp, CV_CTR_RX_TCP);
	cv_count(CV_CTR_CLOSED, 1);
	if (in_fallback)
		free_bit(&fallback_rows, (uint32_t)(row - fallback.seg.row));
	else if (seg && row >= seg->row && row < seg->row + file_rows.count)
		free_bit(&file_rows, (uint32_t)(row - seg->row));
}

static void move_counts(struct cv_stats_segment *to, struct cv_stats_segment *from)
{
	for (unsigned i = 0; i < CV_CTR_COUNT; i++)
		atomic_fetch_add_explicit(&to->counters[i], atomic_exchange_explicit(&from->counters[i], 0, memory_order_relaxed),
					  memory_order_relaxed);
	for (unsigned i = 0; i < CV_REASON_COUNT; i++)
		atomic_fetch_add_explicit(&to->reasons[i], atomic_exchange_explicit(&from->reasons[i], 0, memory_order_relaxed),
					  memory_order_relaxed);
}

/* What the process did with the rows it holds, so that their addresses stay good. The bytes are zeroed for a child: they were its parent's. */
static int copy_rows(struct cv_stats_segment *to, const struct cv_stats_segment *from, bool bytes, _Atomic uint32_t *backed)
{
	uint32_t used = atomic_load_explicit(&from->rows_used, memory_order_relaxed), last = 0;

	used = used < file_rows.count ? used : file_rows.count;
	for (uint32_t i = 0; i < used; i++) {
		struct cv_row *row = &to->row[i];

		if (!(atomic_load_explicit(&file_rows.used[i / BITS], memory_order_relaxed) >> i % BITS & 1))
			continue;
		if (!back_row(backed, to, i))
			return -ENOSPC;
		memcpy(row, &from->row[i], offsetof(struct cv_row, pad_));
		last = i + 1;
		if (bytes)
			continue;
		atomic_store_explicit(&row->tx_link, 0, memory_order_relaxed);
		atomic_store_explicit(&row->rx_link, 0, memory_order_relaxed);
		atomic_store_explicit(&row->tx_tcp, 0, memory_order_relaxed);
		atomic_store_explicit(&row->rx_tcp, 0, memory_order_relaxed);
	}
	atomic_store_explicit(&to->rows_used, last, memory_order_relaxed);
	return 0;
}

static size_t segment_size(uint32_t rows)
{
	return offsetof(struct cv_stats_segment, row) + rows * sizeof(struct cv_row);
}

/* A forked child that kept its parent's address range: fill the new file, then let it take the range over in one step. */
static int take_over(struct cv_stats_segment *fresh)
{
	_Atomic uint32_t backed = 0;
	long at = -ENOSPC;

	if (fresh->rows < file_rows.count) {
		cv_sys2(SYS_munmap, fresh, segment_size(fresh->rows));
		return -EFBIG;
	}
	if (copy_rows(fresh, file_segment, true, &backed) == 0) {
		move_counts(fresh, file_segment);
		at = cv_sys5(SYS_mremap, fresh, segment_size(fresh->rows), segment_size(fresh->rows), MREMAP_MAYMOVE | MREMAP_FIXED,
			     file_segment);
		if (at >= 0) {
			atomic_store_explicit(&file_rows.backed, backed, memory_order_relaxed);
			return 0;
		}
		move_counts(file_segment, fresh);
	}
	cv_sys2(SYS_munmap, fresh, segment_size(fresh->rows));
	return (int)at;
}

int cv_stats_open(const char *dir, bool keep)
{
	struct cv_stats_segment *seg;
	int err = 0;

	cv_lock(&open_lock);
	if (file.path[0])
		goto unlock;
	err = cv_stats_file_create(&file, dir, keep, file_segment ? file_rows.count : CV_STATS_ROWS, &seg);
	if (err)
		goto unlock;
	if (file_segment) {
		err = take_over(seg);
		if (err)
			cv_stats_file_remove(&file);
		goto unlock;
	}
	file_rows.count = seg->rows;
	/* The page of the header is there; rows begin in it. */
	atomic_store_explicit(&file_rows.backed, (uint32_t)((CV_STATS_PAGE - offsetof(struct cv_stats_segment, row)) / sizeof(struct cv_row)),
			      memory_order_relaxed);
	file_segment = seg;
	__atomic_store_n(&cv_stats, seg, __ATOMIC_RELEASE);
	move_counts(seg, &fallback.seg);
unlock:
	cv_unlock(&open_lock);
	return err;
}

void cv_stats_close(void)
{
	cv_stats_file_remove(&file);
}

/* The parent's mapping is shared with it: put memory of our own in its place, with the rows that we inherited. */
static void replace_shared(void)
{
	size_t size = segment_size(file_rows.count);
	long fresh = cv_sys6(SYS_mmap, 0, (long)size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	atomic_store_explicit(&file_rows.backed, file_rows.count, memory_order_relaxed);
	if (fresh > 0) {
		copy_rows((struct cv_stats_segment *)fresh, file_segment, false, &file_rows.backed);
		if (cv_sys5(SYS_mremap, fresh, size, size, MREMAP_MAYMOVE | MREMAP_FIXED, file_segment) > 0)
			return;
		cv_sys2(SYS_munmap, fresh, size);
	}
	/* Rather counters that start anew than a child that writes into its parent's. Should even this fail, it does that, and nothing worse. */
	cv_sys6(SYS_mmap, (long)file_segment, (long)size, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
}

void cv_stats_forked(void)
{
	struct cv_stats_segment *seg = &fallback.seg;

	atomic_store_explicit(&open_lock.word, 0, memory_order_relaxed);
	memset(&file, 0, sizeof(file));
	if (file_segment)
		replace_shared();
	for (unsigned i = 0; i < CV_CTR_COUNT; i++)
		atomic_store_explicit(&seg->counters[i], 0, memory_order_relaxed);
	for (unsigned i = 0; i < CV_REASON_COUNT; i++)
		atomic_store_explicit(&seg->reasons[i], 0, memory_order_relaxed);
	for (unsigned i = 0; i <= FALLBACK_ROWS; i++) {
		struct cv_row *row = &seg->row[i];

		atomic_store_explicit(&row->tx_link, 0, memory_order_relaxed);
		atomic_store_explicit(&row->rx_link, 0, memory_order_relaxed);
		atomic_store_explicit(&row->tx_tcp, 0, memory_order_relaxed);
		atomic_store_explicit(&row->rx_tcp, 0, memory_order_relaxed);
	}
}
