/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The per-process stats segment: what `culvert ss` and `culvert stat` read.
 *
 * One file per process, STATS_DIR/culvert.PID (STATS_DIR is /dev/shm unless policy `stats-dir` says otherwise), created by
 * cv_stats_open() when the first stream is tracked, removed at exit unless policy `stats-keep`. Readers copy it (a mapped
 * hole would be filled, a mapped file cut short) and must not trust it.
 * The writer never waits for readers. Counters are monotonic since the process started; a row is written under the stream's
 * locks only (single writer), with relaxed atomic stores, so that readers see whole 64-bit values.
 * Before cv_stats_open(), or if it failed, everything lands in a static fallback segment: callers never check.
 */
#ifndef CV_STATS_H
#define CV_STATS_H

#include "../base/base.h"
#include "reason.h"

#define CV_STATS_MAGIC 0x3174726576756c63ull /* "clvert1" little-endian-ish: checked, never interpreted */
#define CV_STATS_VERSION 1u
#define CV_STATS_ROWS 16384u /* of a file; fewer under a small RLIMIT_FSIZE */
#define CV_STATS_DIR "/dev/shm"
#define CV_STATS_KEPT 1u /* policy stats-keep: outlives its process on purpose, nobody tidies it away */

/* X(IDENTIFIER, "json_name", "help") */
#define CV_COUNTERS(X) \
	X(OPENED, "streams_opened", "TCP connections seen") \
	X(CLOSED, "streams_closed", "TCP connections closed") \
	X(TRIED, "upgrades_tried", "upgrades begun") \
	X(UPGRADED, "streams_upgraded", "streams that were switched onto a link (counted once a stream)") \
	X(UPGRADES, "upgrades", "switches completed, re-upgrades included") \
	X(FALLBACKS, "fallbacks", "returns from a link to TCP") \
	X(LINKS, "links_opened", "links opened") \
	X(LINKS_LOST, "links_lost", "links that ended by failure or the peer's death") \
	X(TX_LINK, "tx_link_bytes", "bytes sent over links by closed streams") \
	X(RX_LINK, "rx_link_bytes", "bytes received over links by closed streams") \
	X(TX_TCP, "tx_tcp_bytes", "bytes sent over TCP by closed streams") \
	X(RX_TCP, "rx_tcp_bytes", "bytes received over TCP by closed streams") \
	X(BELLS, "doorbells", "wake-ups sent to a sleeping peer (system calls)") \
	X(SLEEPS, "sleeps", "times a thread went to sleep waiting for a link") \
	X(GROWN, "rings_grown", "rings enlarged") \
	X(RESETS, "resets", "connections reset because a hand-over could not finish in time")

enum cv_counter {
#define X(id, name, help) CV_CTR_##id,
	CV_COUNTERS(X)
#undef X
		CV_CTR_COUNT
};

enum cv_row_state { CV_ROW_FREE, CV_ROW_TCP, CV_ROW_SWITCHING, CV_ROW_LINK, CV_ROW_RETURNING };
enum cv_row_transport { CV_ROW_T_TCP, CV_ROW_T_SHM, CV_ROW_T_RDMA };

/* One stream. Addresses are in network order; family 0 = not looked up yet (the CLI finds them through /proc/PID/fd). */
struct cv_row {
	_Atomic uint64_t tx_link, rx_link; /* bytes over links, this stream */
	_Atomic uint64_t tx_tcp, rx_tcp;   /* bytes over TCP as far as culvert saw them */
	_Atomic uint64_t opened_ns;	   /* CLOCK_MONOTONIC */
	_Atomic uint32_t upgrades, fallbacks;
	_Atomic int32_t fd;
	_Atomic uint8_t state;	   /* enum cv_row_state; written last when a row is taken, first when it is freed */
	_Atomic uint8_t role;	   /* 1 client, 2 server */
	_Atomic uint8_t transport; /* enum cv_row_transport */
	_Atomic uint8_t reason;	   /* enum cv_reason: why it is on TCP now */
	uint16_t family;	   /* AF_INET, AF_INET6 or 0 */
	uint16_t local_port, peer_port;
	uint8_t local_addr[16], peer_addr[16];
	uint8_t pad_[34];
};
_Static_assert(sizeof(struct cv_row) == 128, "row is two cache lines; readers depend on the size");

struct cv_stats_segment {
	uint64_t magic;
	uint32_t version, header_size, row_size, rows;
	uint32_t pid, uid;
	uint64_t start_time; /* field 22 of /proc/PID/stat: tells a stale file from a recycled pid */
	char prog[64];	     /* base name of the program */
	_Atomic uint32_t rows_used; /* rows at or above were never used */
	uint32_t pid_ns;	    /* inode of /proc/self/ns/pid, 0 unknown: pid means something only in there */
	uint32_t flags;		    /* CV_STATS_KEPT */
	uint32_t pad_;
	_Atomic uint64_t counters[CV_CTR_COUNT];
	_Atomic uint64_t reasons[CV_REASON_COUNT]; /* how often a stream was refused or fell back for the reason */
	struct cv_row row[] __attribute__((aligned(128)));
};

extern struct cv_stats_segment *cv_stats; /* never NULL */

/* Create the segment. dir: see above; keep: do not remove it at exit. 0 or -errno (and the fallback segment stays). */
int cv_stats_open(const char *dir, bool keep);
/* Remove the file (at exit; not when keep). Async-signal-safe. */
void cv_stats_close(void);
/* In a forked child: forget the parent's segment (do not remove it); the child opens its own when it tracks a stream. */
void cv_stats_forked(void);

/* A zeroed row, or a shared scratch row when all are taken (never NULL). */
struct cv_row *cv_row_get(void);
/* Adds the row's byte counts to the TX_LINK ... counters, and frees it. */
void cv_row_put(struct cv_row *row);

static inline void cv_count(enum cv_counter c, uint64_t n)
{
	atomic_fetch_add_explicit(&cv_stats->counters[c], n, memory_order_relaxed);
}

/* Count a reason, and note it in the row. */
static inline void cv_row_reason(struct cv_row *row, enum cv_reason r)
{
	atomic_store_explicit(&row->reason, (uint8_t)r, memory_order_relaxed);
	atomic_fetch_add_explicit(&cv_stats->reasons[r], 1, memory_order_relaxed);
}

/* Single-writer add: a plain load and store, no locked instruction. */
static inline void cv_row_add(_Atomic uint64_t *c, uint64_t n)
{
	atomic_store_explicit(c, atomic_load_explicit(c, memory_order_relaxed) + n, memory_order_relaxed);
}

/* Likewise for the row's small counters. */
static inline void cv_row_inc(_Atomic uint32_t *c)
{
	atomic_store_explicit(c, atomic_load_explicit(c, memory_order_relaxed) + 1, memory_order_relaxed);
}

#endif
