/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The stream engine: one TCP connection's two halves, each on the twin (RAW) or on a link (RING), and the protocol that switches them. docs/protocol.md
 * says how and why. Pure: no system call, no clock, no lock, no allocation but through ops; runs unchanged in tests/sim.
 *
 * Locking is the caller's: tx calls hold the tx lock, rx calls the rx lock, everything else both. ops are called with the locks held.
 */
#ifndef CV_STREAM_H
#define CV_STREAM_H

#include "../observe/reason.h"
#include "ring.h"
#include "wire.h"
#include <sys/types.h>

enum cv_half { CV_RAW, CV_FROZEN, CV_RING, CV_DRAINING };

/* Returned by send and recv when the caller must make the plain kernel call (still holding the lock). */
#define CV_USE_TWIN (-4096)

struct cv_stream;

struct cv_stream_ops {
	/* The twin, never blocking. n > 0, 0 = EOF (recv), or -errno. */
	ssize_t (*twin_send)(struct cv_stream *s, const void *buf, size_t len);
	ssize_t (*twin_recv)(struct cv_stream *s, void *buf, size_t len, bool peek);
	/* Bytes read from and written to the twin since it was connected, by the kernel's own count. 0 or -errno. */
	int (*twin_offsets)(struct cv_stream *s, uint64_t *read, uint64_t *written);
	/* Is it still this connection's, not a dead one's whose addresses may be another's by now? The peer may have ended. */
	bool (*twin_alive)(struct cv_stream *s);
	void (*twin_shut_wr)(struct cv_stream *s);
	/* Send a control message. 0; -EPIPE when the link is dead (the engine learns of it by cv_stream_link_down()). */
	int (*msg)(struct cv_stream *s, const struct cv_msg *m);
	/* tx.tail moved or tx end changed to `end`: make it visible to the peer (tail first, then end) and ring its doorbell if it wants one. */
	void (*publish)(struct cv_stream *s, uint32_t end);
	/* rx.head moved: make it visible. fenced: the writer may be blocked; order it before a look at the peer's wish to be rung, and ring. */
	void (*credit)(struct cv_stream *s, bool fenced);
	/* Provide memory for a further tx generation of about `size` bytes and prepare to pass it along with the GROW message. 0 or -errno. */
	int (*grow)(struct cv_stream *s, uint64_t size, uint8_t **base, uint64_t *got);
	/* Something that a waiter or the agent may wait for has changed (state, readiness, what cv_stream_needs() returns). */
	void (*changed)(struct cv_stream *s);
	void (*random)(struct cv_stream *s, void *buf, size_t len);
	/* Growable memory for spill and stage. */
	void *(*alloc)(size_t len);
	void (*free)(void *p, size_t len);
	/* All that was published has arrived in the peer's memory. NULL: the rings are memory that both share, so that it has, and outlives the writer. */
	bool (*flushed)(struct cv_stream *s);
};

/* A byte queue: rx spill (read from the twin before the application wanted it) and tx stage (accepted while neither path was open). */
struct cv_spill {
	uint8_t *buf;
	size_t cap, off, len;
};

struct cv_stream_limits {
	uint64_t ring_max;  /* growth and stage bound */
	uint64_t ring_hot;  /* grow this far whenever full; beyond only when the reader stalls */
	uint64_t spill_max;
};

struct cv_port;

struct cv_stream {
	const struct cv_stream_ops *ops;
	struct cv_port *port; /* the link's side of this stream (link.h); the engine does not look inside */
	struct cv_ring tx, rx;
	uint8_t tx_state, rx_state; /* enum cv_half */
	uint8_t phase;		    /* private to the engine */
	bool tx_slow;		    /* tx needs more than the ring fast path (stage, end, state) */
	bool rx_slow;		    /* likewise rx (spill, limits, state) */
	uint8_t reason;		    /* enum cv_reason of the last refusal or fallback */
	uint32_t epoch;
	uint32_t switches, returns; /* completed upgrades and fallbacks, for the stats */
	struct cv_stream_limits lim;
	struct cv_spill spill, stage;
	bool reset_twin; /* when it is closed, close the twin with a RST: cv_stream_close() says so too, but a lingering close may find out later */

	/* The engine's own: see engine.h. The first block lasts, the second belongs to one epoch. */
	_Atomic int err;   /* pending, as sk_err: the next call takes it */
	bool tx_shut;	   /* shutdown(SHUT_WR) was called */
	bool twin_shut;	   /* and the twin has been told */
	bool tx_dead;	   /* sends give EPIPE: the engine answers, not the twin */
	bool rx_eof;	   /* recv gives 0: the engine answers, not the twin */
	bool closed, done; /* by the application; and nothing is left to do */
	bool handover;	   /* another process shall read the twin */
	bool leave_asked;  /* leave as soon as the handshake is through, */
	uint8_t leave_why; /* for this reason */
	_Atomic bool fault; /* the peer's lines are nonsense */
	_Atomic uint32_t ended; /* CV_END_* as recv saw them, when they mean that the peer has closed: advance() must look */

	struct cv_epoch {
		bool initiator, link_dead, peer_dead, cancelled, cancel_seen, by_twin, await;
		bool acked, fence_begun, fence_done, proven, resumed, resume_seen, tx_wait, was_ring;
		bool rx_fin, rst_seen, twin_ended, grow_failed, refused;
		uint8_t rx_wait;	  /* enum cv_rx_wait */
		uint8_t partial;	  /* how many bytes of what may be the fence are there */
		uint8_t out_len, out_off; /* records under way to the twin */
		int twin_err;
		uint64_t tx_n, rx_n;   /* N of both directions */
		uint64_t rx_lim;       /* the ring is read up to here */
		uint64_t owed;	       /* raw bytes that must come before the twin may end */
		uint64_t cancel_owed;  /* as the peer's CANCEL says */
		uint64_t resend;       /* next ring byte to repeat over the twin */
		uint64_t payload_left; /* of the peer's RESUME */
		uint64_t refused_head;
	uint64_t moved, moved_seen; /* progress of records, for the deadline */
		uint8_t nonce[2][CV_NONCE]; /* [0] initiator's */
		uint8_t identity[32];
		uint8_t out[2 * sizeof(struct cv_rec)];
		uint8_t in[sizeof(struct cv_rec)]; /* a record as it comes */
		uint8_t in_len;
		struct cv_spill back; /* the peer's payload: what it had not consumed and we send again first */
		struct cv_spill give; /* our payload; kept until the peer has answered: should it end instead, we are the ones to read it */
		size_t give_off;      /* how much of it is on the twin */
	} e;
};

void cv_stream_init(struct cv_stream *s, const struct cv_stream_ops *ops, const struct cv_stream_limits *lim);
/* Frees what ops->alloc gave. */
void cv_stream_fini(struct cv_stream *s);

/* ---- data ------------------------------------------------------------------------------------------------------------------ */

/*
 * send: bytes accepted (> 0, may be fewer than asked), -EAGAIN, -EPIPE, another -errno, or CV_USE_TWIN.
 * On a full ring it grows the ring first as the limits say; `stalled` = the caller is about to sleep or saw no progress for long.
 */
ssize_t cv_stream_send(struct cv_stream *s, const struct iovec *iov, int iovcnt, size_t total, bool stalled);
/* recv: bytes, 0 = EOF, -EAGAIN, -errno, or CV_USE_TWIN. */
ssize_t cv_stream_recv(struct cv_stream *s, const struct iovec *iov, int iovcnt, size_t total, bool peek);

/* May be called without locks while both halves are RING: a hint that a concurrent call may outdate. */
/* What poll would say of the halves that are not RAW; EPOLLIN, OUT, RDHUP, HUP, ERR, without asking the kernel. *twin gets the
 * bits (EPOLLIN|EPOLLOUT|...) that the kernel must be asked for, because that half is RAW (or FROZEN short of N, with no spill). */
uint32_t cv_stream_poll(struct cv_stream *s, uint32_t *twin);
/* The pending error (SO_ERROR), or 0; take: it is then gone. */
int cv_stream_error(struct cv_stream *s, bool take);
/* Bytes readable without the twin (FIONREAD), and bytes sent that the peer has not consumed (SIOCOUTQ). */
uint64_t cv_stream_inq(struct cv_stream *s);
uint64_t cv_stream_outq(struct cv_stream *s);
/* How many bytes of the twin are still the application's to read: UINT64_MAX = all. */
uint64_t cv_stream_raw_left(struct cv_stream *s);

/* ---- switching ------------------------------------------------------------------------------------------------------------- */

/*
 * Both halves are RAW, nothing is half-closed, a link is there and its control lines and first generations are set in s->tx and s->rx
 * (heads, tails, lines zeroed by the link). identity: what both ends must agree upon (32 bytes: hash over segment identity or GIDs, QPs, rkeys, uids).
 * The initiator sends OPEN; the other side calls cv_stream_accept() with the OPEN that it got (and answers OPEN_ACK) or the link answers NAK for it.
 * Both: 0, or -EBUSY when the stream cannot switch now (accept: answer NAK{s->reason}); -ESTALE: the OPEN's epoch is one of the past.
 */
int cv_stream_open(struct cv_stream *s, const uint8_t identity[32]);
int cv_stream_accept(struct cv_stream *s, const struct cv_msg *open, const uint8_t identity[32]);
/* A control message for this stream (OPEN excepted). Stale epochs are ignored. GROW: the link has mapped the memory and called cv_ring_add_gen(), here it
 * only wakes. -EPROTO: the peer breaks the protocol. */
int cv_stream_on_msg(struct cv_stream *s, const struct cv_msg *m);
/* Do whatever can be done without the application: call after on_msg and whenever the twin became readable or writable as
 * cv_stream_needs() wished. 0, or -EPROTO. */
int cv_stream_advance(struct cv_stream *s);
/* EPOLLIN / EPOLLOUT: what of the twin the agent must watch for this stream now. While a part of a record is there EPOLLIN stays set: watch edge-triggered. */
uint32_t cv_stream_needs(const struct cv_stream *s);
/* True while a handshake, fallback or lingering close is under way that a deadline should bound. */
bool cv_stream_busy(const struct cv_stream *s);
/* The deadline passed: a handshake is cancelled or left by RESUME; a fallback that cannot end returns -ETIMEDOUT: reset the connection. */
int cv_stream_timeout(struct cv_stream *s);

enum cv_leave { CV_LEAVE_STAY, CV_LEAVE_HANDOVER };
/* Return to TCP, whatever state it is in (RAW: nothing to do). STAY: this process goes on with the stream. HANDOVER: another one will read the twin:
 * what the application has not consumed is sent again by the peer. Done when both halves are RAW. */
void cv_stream_leave(struct cv_stream *s, enum cv_leave how, enum cv_reason why);
/* The link died (no further message, nothing further arrives). The twin may well be alive. */
void cv_stream_link_down(struct cv_stream *s, enum cv_reason why);

/* ---- ending ---------------------------------------------------------------------------------------------------------------- */

/* shutdown(SHUT_WR). 0: done or under way; CV_USE_TWIN: call the kernel. */
int cv_stream_shut_wr(struct cv_stream *s);
/* The application closed its last descriptor; abort: SO_LINGER 0 (or unread data, which the engine sees itself). 0: the twin can be
 * closed now; 1: bytes are under way, keep the twin and go on with advance() until cv_stream_busy() is false, then look at reset_twin; *reset: close with a
 * RST. Afterwards both halves are RAW. */
int cv_stream_close(struct cv_stream *s, bool abort, bool *reset);

#endif
