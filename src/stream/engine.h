/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the files of src/stream share. docs/protocol.md has the protocol; here is how a stream's state is held.
 *
 * tx_state and rx_state say which path a half's data calls take. `phase` is the handshake's, `e.rx_wait` what must come next on the twin. Data calls
 * hold one lock: cv_stream_send() touches tx only, cv_stream_recv() rx only; each may raise `fault` or `ended` for advance(), which holds both.
 * State changes go through cv_engine_set_tx() and cv_engine_set_rx(), which check them.
 */
#ifndef CV_ENGINE_H
#define CV_ENGINE_H

#include "fault.h"
#include "spill.h"
#include "stream.h"
#include <errno.h>
#include <string.h>

enum cv_phase {
	CV_PH_IDLE,
	CV_PH_OPENING,	 /* OPEN is sent */
	CV_PH_SWITCHING, /* both nonces are known, tx is FROZEN */
	CV_PH_LINKED,	 /* tx and rx are RING */
	CV_PH_LEAVING,	 /* cancelled, or RESUME is decided; until both halves are RAW */
};

enum cv_rx_wait {
	CV_WAIT_RAW,	 /* nothing but the application's bytes */
	CV_WAIT_UPTO,	 /* FROZEN: raw bytes up to N */
	CV_WAIT_FENCE,	 /* FROZEN: at N: a fence, or raw bytes if the peer has gone on raw */
	CV_WAIT_REC,	 /* RING, DRAINING: records only */
	CV_WAIT_PAYLOAD, /* DRAINING: what the peer gives back */
	CV_WAIT_DONE,	 /* DRAINING: raw bytes again; spill, ring or owed bytes are still to be read */
	CV_WAIT_END,	 /* the twin tells nothing more: spill and ring, then the engine's own end */
};

enum { CV_RESUME_FIN = 1, CV_RESUME_AWAIT = 2 };

/* Bound of a RESUME's payload, whatever spill-max the two sides have. */
#define CV_PAYLOAD_MAX (64u << 20)

/* The simulator's eye on state changes. */
#ifndef CV_STATE_HOOK
#define CV_STATE_HOOK(s, half, from, to)
#endif

/* Where the other side's stores may become visible between two of our loads: the simulator lets them. */
#ifndef CV_RACE
#define CV_RACE(s)
#endif

/* stream.c */
void cv_engine_set_tx(struct cv_stream *s, enum cv_half to);
void cv_engine_set_rx(struct cv_stream *s, enum cv_half to);
void cv_engine_slow(struct cv_stream *s);
void cv_engine_phase(struct cv_stream *s); /* LEAVING and all is done: IDLE */
bool cv_engine_grow(struct cv_stream *s, uint64_t want, bool stalled);
void cv_engine_whole(struct cv_stream *s, uint32_t whole);
bool cv_engine_unfenced(const struct cv_stream *s);
uint64_t cv_engine_waiting(const struct cv_stream *s);
bool cv_engine_held(const struct cv_stream *s);
bool cv_engine_unsettled(const struct cv_stream *s);
int cv_engine_msg(struct cv_stream *s, uint32_t type, uint64_t a, uint64_t b, uint64_t c, const uint8_t *nonce);

/* switch.c */
void cv_engine_cancel(struct cv_stream *s, enum cv_reason why);
void cv_engine_reached_n(struct cv_stream *s);
void cv_engine_fence(struct cv_stream *s, bool initiators, struct cv_rec *rec, uint8_t type);
int cv_engine_send_fence(struct cv_stream *s);
int cv_engine_enter_ring(struct cv_stream *s);
int cv_engine_rx_frozen(struct cv_stream *s);

/* resume.c */
void cv_engine_leave(struct cv_stream *s, enum cv_reason why);
void cv_engine_rx_raw(struct cv_stream *s, uint64_t owed);
void cv_engine_rx_settle(struct cv_stream *s);
int cv_engine_rx_records(struct cv_stream *s);
int cv_engine_drain(struct cv_stream *s);
void cv_engine_twin_broken(struct cv_stream *s, int err);

/* ending.c */
void cv_engine_fail(struct cv_stream *s, enum cv_reason why);
void cv_engine_drop_tx(struct cv_stream *s);
/* The twin is at EOF (0) or gave an error. 1: something has changed. */
int cv_engine_twin_end(struct cv_stream *s, int err);
int cv_engine_ring_end(struct cv_stream *s);
int cv_engine_both_ended(struct cv_stream *s);
int cv_engine_close_step(struct cv_stream *s);
void cv_engine_close_now(struct cv_stream *s);

#endif
