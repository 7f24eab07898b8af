/* SPDX-License-Identifier: Apache-2.0 */
/* How streams end: shutdown and close here, the peer's FIN, RST, close or death, and failures. docs/protocol.md, "Close". */
#include "engine.h"

/* Nothing that is still to be sent can be. The kernel answers further sends. */
void cv_engine_drop_tx(struct cv_stream *s)
{
	cv_spill_free(&s->stage, s->ops);
	cv_spill_free(&s->e.back, s->ops);
	s->e.give_off = s->e.give.len;
	s->e.out_len = s->e.out_off = 0;
	s->e.tx_wait = false;
	if (s->tx_state != CV_RAW)
		cv_engine_set_tx(s, CV_RAW);
}

/* The ring tells of it wherever the peer may still look there: once our fence has gone out. */
static void publish_end(struct cv_stream *s, uint32_t flags)
{
	if (s->e.link_dead)
		atomic_fetch_or_explicit(&s->tx.w->end, flags, memory_order_release);
	else
		s->ops->publish(s, flags);
}

/* The twin, or the stream's own end, tells nothing more. err 0: EOF after what is there. */
static void end(struct cv_stream *s, int err)
{
	bool raw_came = s->e.resume_seen && s->e.rx_wait != CV_WAIT_PAYLOAD;

	s->e.rx_wait = CV_WAIT_END;
	s->e.twin_ended = true;
	if (s->phase != CV_PH_IDLE)
		s->phase = CV_PH_LEAVING;
	if (err) {
		if (s->tx_state == CV_FROZEN) /* the peer must not take this for a death with all in the ring */
			cv_engine_whole(s, CV_WHOLE_HELD);
		s->tx_dead = true;
		s->reset_twin = true; /* what is dropped here must not look like a clean end over there */
		if (!s->e.rst_seen)
			atomic_store_explicit(&s->err, err, memory_order_relaxed);
		s->e.rst_seen = true;
	}
	cv_engine_drop_tx(s);
	if (!raw_came && s->e.give.len && !CV_FAULT_IF(36)) { /* nobody sends it back */
		s->spill = s->e.give;
		s->e.give = (struct cv_spill){0};
	}
	if (s->e.proven && s->rx_state != CV_RAW)
		s->e.rx_lim = cv_ring_readable(&s->rx) < 0 ? s->rx.head : s->rx.tail;
	if (s->rx_state == CV_FROZEN || s->rx_state == CV_RING)
		cv_engine_set_rx(s, CV_DRAINING);
	cv_engine_rx_settle(s);
	if (s->rx_state == CV_RAW && !s->rx_eof)
		s->rx_eof = true;
	s->ops->changed(s);
}

/* The peer died FROZEN: what it had accepted since N lies in the ring, though no fence says so. */
static void end_in_ring(struct cv_stream *s)
{
	s->e.proven = true;
	if (s->rx_state == CV_RAW)
		cv_engine_set_rx(s, CV_DRAINING);
	end(s, 0);
}

/* Protocol broken, or a deadline passed: the caller resets the connection. What arrived in order may still be read, the ring excepted. */
void cv_engine_fail(struct cv_stream *s, enum cv_reason why)
{
	s->reason = (uint8_t)why;
	atomic_store_explicit(&s->fault, true, memory_order_relaxed);
	if (s->e.rx_wait == CV_WAIT_END)
		return;
	if (s->phase != CV_PH_IDLE && s->e.fence_begun && !CV_FAULT_IF(45)) /* else the peer would take the RST for our death with nothing lost */
		publish_end(s, CV_END_RST | CV_END_CLOSED);
	s->e.proven = false;
	s->e.owed = 0;
	end(s, ECONNRESET);
}

/* ---- the peer's end ------------------------------------------------------------------------------------------------------------ */

static bool credit_due(struct cv_stream *s)
{
	uint64_t head = atomic_load_explicit(&s->tx.r->head, memory_order_acquire);

	return s->e.was_ring && head != s->tx.tail;
}

/* Expecting records: END in the ring decides. Without it the peer died; what TCP would show is told by what it left unread and had accepted. */
static int ring_ended(struct cv_stream *s, int err)
{
	uint32_t flags = atomic_load_explicit(&s->rx.w->end, memory_order_acquire);
	uint32_t whole = atomic_load_explicit(&s->rx.w->whole, memory_order_acquire);
	bool all = whole == CV_WHOLE_YES || (whole == CV_WHOLE_TWIN && !err) || CV_FAULT_IF(31);

	if (flags & CV_END_RST) {
		end(s, ECONNRESET);
	} else if (flags & CV_END_FIN) {
		end(s, 0);
	} else if (s->ops->flushed && !s->e.link_dead) {
		return 0; /* bytes may be on their way; the link's end or the deadline decides */
	} else if (err && err != ECONNRESET) {
		end(s, err);
	} else if (s->ops->flushed && !CV_FAULT_IF(32)) {
		end(s, ECONNRESET);
	} else {
		end(s, all && !credit_due(s) ? 0 : ECONNRESET);
	}
	return 1;
}

/*
 * Has the peer died FROZEN, with all that it accepted in its ring? If our fence lies unread in its twin its kernel sends a RST, though it has read all that was
 * the application's.
 */
static bool died_frozen(const struct cv_stream *s, int err)
{
	if (s->ops->flushed || s->e.partial || s->e.cancel_seen || atomic_load_explicit(&s->rx.w->whole, memory_order_acquire) != CV_WHOLE_YES)
		return false;
	if (!err)
		return cv_engine_unfenced(s);
	return err == ECONNRESET && s->e.acked && s->e.fence_begun && !cv_engine_waiting(s);
}

static int fence_ended(struct cv_stream *s, int err)
{
	if (died_frozen(s, err)) {
		if (!s->e.link_dead)
			return 0; /* its CANCEL, or the link's end, tells whether it died at all */
		if (s->e.peer_dead && !CV_FAULT_IF(48))
			end_in_ring(s);
		else
			end(s, ECONNRESET);
		return 1;
	}
	if (err) {
		end(s, err);
		return 1;
	}
	if (!s->e.partial && s->e.cancel_seen) {
		cv_engine_rx_raw(s, s->e.cancel_owed);
		return 1;
	}
	if (s->e.partial || s->ops->flushed) {
		if (!s->e.link_dead)
			return 0; /* CANCEL, or the link's end, tells whether it went on raw and ended, or died with bytes in its stage */
		end(s, ECONNRESET);
		return 1;
	}
	if (cv_engine_held(s)) {
		end(s, ECONNRESET);
		return 1;
	}
	cv_engine_rx_raw(s, 0); /* called off over there, and ended; or dead with nothing lost */
	if (s->phase == CV_PH_SWITCHING && s->e.fence_begun)
		cv_engine_leave(s, CV_REASON_CANCELLED);
	else if (s->phase == CV_PH_SWITCHING)
		cv_engine_cancel(s, CV_REASON_CANCELLED);
	return 1;
}

int cv_engine_twin_end(struct cv_stream *s, int err)
{
	bool first = !s->e.twin_ended;
	int r = 0;

	s->e.twin_ended = true;
	s->e.twin_err = err && err != EPIPE ? err : s->e.twin_err;
	err = s->e.twin_err;
	switch (s->e.rx_wait) {
	case CV_WAIT_FENCE:
		r = fence_ended(s, err);
		break;
	case CV_WAIT_REC:
		r = ring_ended(s, err);
		break;
	case CV_WAIT_UPTO:
	case CV_WAIT_PAYLOAD:
		end(s, err ? err : ECONNRESET);
		r = 1;
		break;
	case CV_WAIT_RAW:
		if (s->e.link_dead && s->phase != CV_PH_IDLE) {
			if (s->e.peer_dead && cv_engine_unfenced(s)) /* raw_recv() has looked whether all before it is read */
				end_in_ring(s);
			else
				end(s, ECONNRESET);
			r = 1;
		}
		break;
	default:
		break;
	}
	if (first)
		s->ops->changed(s);
	return r;
}

/* END_CLOSED or END_RST in the ring: the peer takes nothing more. tx goes RAW and the kernel answers as TCP would; rx has what is in the ring. */
int cv_engine_ring_end(struct cv_stream *s)
{
	uint32_t flags;

	if (s->e.rx_wait != CV_WAIT_REC || s->phase == CV_PH_IDLE || s->closed)
		return 0;
	flags = atomic_load_explicit(&s->rx.w->end, memory_order_acquire);
	if (!(flags & (CV_END_CLOSED | CV_END_RST)))
		return 0;
	end(s, flags & CV_END_RST ? ECONNRESET : 0);
	return 1;
}

/* Both directions have ended and all is consumed: let the kernel know, so that what it says of the socket is right. */
int cv_engine_both_ended(struct cv_stream *s)
{
	if (s->phase != CV_PH_LINKED || !s->tx_shut || s->twin_shut || s->closed || s->tx_state != CV_RING)
		return 0;
	if (!(atomic_load_explicit(&s->rx.w->end, memory_order_acquire) & CV_END_FIN) || credit_due(s))
		return 0;
	if (cv_ring_readable(&s->rx) || s->rx.tail != s->rx.head || s->spill.len)
		return 0;
	s->twin_shut = true;
	s->ops->twin_shut_wr(s);
	return 1;
}

/* ---- ours ---------------------------------------------------------------------------------------------------------------------- */

int cv_stream_shut_wr(struct cv_stream *s)
{
	if (s->tx_dead)
		return 0;
	if (s->tx_state == CV_RAW) {
		s->tx_shut = s->twin_shut = true;
		return CV_USE_TWIN;
	}
	if (s->tx_shut)
		return 0;
	s->tx_shut = true;
	__atomic_store_n(&s->tx_slow, true, __ATOMIC_RELAXED);
	if (s->tx_state == CV_RING && !CV_FAULT_IF(33))
		s->ops->publish(s, CV_END_FIN);
	return 0;
}

/* Nothing more is to be done for a closed stream. */
void cv_engine_close_now(struct cv_stream *s)
{
	s->done = true;
	if (s->reset_twin && s->e.fence_begun && s->tx_state != CV_RAW) {
		bool fin = (s->tx_shut && s->tx_state == CV_RING) || CV_FAULT_IF(34); /* the peer has it already: what it sees is an EOF */

		publish_end(s, fin ? CV_END_FIN | CV_END_CLOSED : CV_END_RST | CV_END_CLOSED);
	}
	cv_engine_drop_tx(s);
	cv_spill_free(&s->spill, s->ops);
	if (s->rx_state != CV_RAW)
		cv_engine_set_rx(s, CV_RAW);
	s->e.rx_wait = CV_WAIT_RAW;
	s->rx_eof = true;
	s->phase = CV_PH_IDLE;
	s->ops->changed(s);
}

static bool ring_unread(struct cv_stream *s)
{
	return s->e.proven && (s->rx_state == CV_RING || s->rx_state == CV_DRAINING) &&
	       (cv_ring_readable(&s->rx) < 0 || s->rx.tail > s->rx.head);
}

/* What the kernel holds for the application: it would see to this itself if it closed at once, but not once we linger. */
static bool twin_unread(struct cv_stream *s)
{
	uint8_t byte;

	return (s->e.rx_wait == CV_WAIT_RAW || s->e.rx_wait == CV_WAIT_DONE) && !s->rx_eof && s->ops->twin_recv(s, &byte, 1, true) > 0;
}

/* A closed stream that lingers: sent to the end, and the peer's records taken, since a twin closed with bytes unread sends a RST. */
int cv_engine_close_step(struct cv_stream *s)
{
	bool quiet;

	if (!s->closed || s->done)
		return 0;
	if (twin_unread(s)) { /* data for a socket that is closed: TCP answers with a RST */
		s->reset_twin = true;
		cv_engine_close_now(s);
		return 1;
	}
	if (s->phase == CV_PH_LINKED) {
		if (s->ops->flushed && !s->ops->flushed(s))
			return 0;
		cv_engine_close_now(s);
		return 1;
	}
	if (s->tx_state != CV_RAW)
		return 0;
	if (!s->twin_shut && !s->tx_dead) {
		s->twin_shut = true;
		s->ops->twin_shut_wr(s);
	}
	quiet = s->e.rx_wait == CV_WAIT_RAW || s->e.rx_wait == CV_WAIT_DONE || s->e.rx_wait == CV_WAIT_END;
	if (!quiet)
		return 0;
	s->reset_twin |= ring_unread(s) || s->spill.len;
	cv_engine_close_now(s);
	return 1;
}

int cv_stream_close(struct cv_stream *s, bool abort, bool *reset)
{
	*reset = abort || s->reset_twin;
	if (s->phase == CV_PH_OPENING)
		cv_engine_cancel(s, CV_REASON_CLOSED);
	if (s->phase != CV_PH_IDLE && !abort)
		cv_stream_advance(s); /* a RESUME may be waiting; to close over it would make the kernel send a RST */
	*reset |= s->reset_twin;
	if (s->phase == CV_PH_IDLE) {
		s->closed = s->done = true;
		return 0;
	}
	if (abort || s->spill.len || ring_unread(s) || twin_unread(s)) {
		s->closed = true;
		*reset = s->reset_twin = true;
		if (s->phase == CV_PH_SWITCHING && !s->e.fence_begun)
			cv_engine_msg(s, CV_MSG_CANCEL, CV_REASON_CLOSED, 0, 0, NULL);
		cv_engine_close_now(s);
		return 0;
	}
	s->closed = true;
	if (s->phase == CV_PH_LINKED && s->tx_state == CV_RING)
		publish_end(s, CV_END_FIN | CV_END_CLOSED);
	else if (s->phase == CV_PH_SWITCHING && s->e.fence_begun && !CV_FAULT_IF(43))
		cv_engine_leave(s, CV_REASON_CLOSED);
	else if (s->phase == CV_PH_SWITCHING)
		cv_engine_cancel(s, CV_REASON_CLOSED);
	cv_stream_advance(s);
	*reset |= s->reset_twin;
	return !s->done;
}
