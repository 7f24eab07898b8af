/* SPDX-License-Identifier: Apache-2.0 */
/* The way back to the twin: RESUME records, what is repeated over the twin, what the reader still has here. docs/protocol.md, "Fallback". */
#include "engine.h"
#include <sys/epoll.h>

/* ---- leaving ------------------------------------------------------------------------------------------------------------------- */

/*
 * From the first byte of our fence on: finish it, then RESUME. C is what arrived and stays readable here or, when another process will read on, what the
 * application has consumed: the peer repeats the rest. Unread spill cannot stay either; it goes behind the record, and the peer sends it first.
 */
void cv_engine_leave(struct cv_stream *s, enum cv_reason why)
{
	struct cv_rec rec;
	uint64_t c = 0;
	int64_t there;

	s->phase = CV_PH_LEAVING;
	s->reason = (uint8_t)why;
	s->leave_asked = false;
	if (s->twin_shut) { /* both directions have ended: there is nothing to go back for, and nothing to say it on */
		cv_engine_twin_end(s, 0);
		return;
	}
	if (s->e.rx_wait == CV_WAIT_UPTO && !s->e.link_dead) /* without the link it goes on to N, to see whether the peer died there */
		cv_engine_rx_raw(s, 0);
	s->e.await = s->e.rx_wait == CV_WAIT_FENCE;
	if (s->e.proven) {
		there = s->handover ? 0 : cv_ring_readable(&s->rx);
		if (there < 0) {
			cv_engine_fail(s, CV_REASON_PROTOCOL);
			return;
		}
		c = s->rx.head + (uint64_t)there;
		s->e.rx_lim = CV_FAULT_IF(40) ? UINT64_MAX : c;
		if (CV_FAULT_IF(20) && there)
			c--;
		if (CV_FAULT_IF(21) && s->handover) {
			cv_spill_free(&s->spill, s->ops);
		} else if (s->handover) {
			s->e.give = s->spill;
			s->spill = (struct cv_spill){0};
		}
		if (s->rx_state == CV_RING)
			cv_engine_set_rx(s, CV_DRAINING);
	}
	if (s->tx_state == CV_FROZEN && cv_engine_waiting(s))
		cv_engine_whole(s, CV_WHOLE_HELD);
	cv_engine_fence(s, s->e.initiator, &rec, CV_REC_RESUME);
	rec.a = c;
	rec.b = s->tx.tail + s->stage.len;
	if (CV_FAULT_IF(22))
		rec.b = s->tx.tail;
	rec.flags = (uint8_t)((s->tx_shut ? CV_RESUME_FIN : 0) | (s->e.await ? CV_RESUME_AWAIT : 0));
	rec.payload = (uint32_t)s->e.give.len;
	if (s->e.out_len && s->e.out_off == s->e.out_len)
		s->e.out_len = s->e.out_off = 0;
	memcpy(s->e.out + s->e.out_len, &rec, sizeof(rec));
	s->e.out_len += (uint8_t)sizeof(rec);
	s->e.resumed = true;
	s->e.tx_wait = s->e.proven || s->e.await;
	s->e.resend = 0;
	cv_engine_set_tx(s, CV_DRAINING);
}

void cv_stream_leave(struct cv_stream *s, enum cv_leave how, enum cv_reason why)
{
	cv_engine_phase(s);
	if (s->closed || (s->phase == CV_PH_IDLE && s->rx_state == CV_RAW))
		return;
	s->handover |= how == CV_LEAVE_HANDOVER;
	switch (s->phase) {
	case CV_PH_OPENING:
		s->leave_why = (uint8_t)why;
		if (s->e.twin_ended) { /* recv holds an EOF back, which the answer will explain */
			s->leave_asked = true;
			return;
		}
		s->handover = false;
		cv_engine_cancel(s, why);
		return;
	case CV_PH_SWITCHING:
		if (s->handover && s->spill.len && !s->e.link_dead) { /* only a peer in the ring can take it back: go through with it first */
			s->leave_asked = true;
			s->leave_why = (uint8_t)why;
		} else if (s->e.fence_begun) {
			cv_engine_leave(s, why);
		} else {
			cv_engine_cancel(s, why);
		}
		break;
	case CV_PH_LINKED:
		cv_engine_leave(s, why);
		break;
	default: /* on its way already */
		if (s->rx_state == CV_DRAINING)
			cv_engine_rx_settle(s);
	}
	cv_stream_advance(s);
}

void cv_stream_link_down(struct cv_stream *s, enum cv_reason why)
{
	cv_engine_phase(s);
	if (s->phase == CV_PH_IDLE || s->e.link_dead)
		return;
	s->e.link_dead = true;
	s->e.peer_dead = why == CV_REASON_PEER_DEAD;
	s->e.by_twin = true;
	if (s->e.twin_ended && s->e.rx_wait == CV_WAIT_RAW)
		cv_engine_twin_end(s, 0);
	switch (s->phase) {
	case CV_PH_OPENING: /* the peer may have got the OPEN, and be FROZEN */
		s->phase = CV_PH_LEAVING;
		s->reason = (uint8_t)why;
		cv_engine_rx_raw(s, 0);
		cv_engine_phase(s);
		return;
	case CV_PH_SWITCHING:
		if (s->e.fence_begun && !CV_FAULT_IF(44))
			cv_engine_leave(s, why);
		else
			cv_engine_cancel(s, why);
		break;
	case CV_PH_LINKED:
		cv_engine_leave(s, why);
		break;
	default:
		break;
	}
	if (s->e.twin_ended && s->e.rx_wait != CV_WAIT_END)
		cv_engine_twin_end(s, s->e.twin_err);
	cv_engine_rx_settle(s);
	cv_stream_advance(s);
}

/* ---- reading records ----------------------------------------------------------------------------------------------------------- */

/* An error that the twin gave us while we wrote is the application's after all. */
static void own_error(struct cv_stream *s)
{
	if (!s->e.twin_err || s->e.rst_seen)
		return;
	atomic_store_explicit(&s->err, s->e.twin_err, memory_order_relaxed);
	s->e.rst_seen = true;
}

/* The raw bytes of the application follow on the twin, `owed` of them for certain. */
void cv_engine_rx_raw(struct cv_stream *s, uint64_t owed)
{
	s->e.rx_wait = CV_WAIT_DONE;
	s->e.partial = 0;
	own_error(s);
	s->e.owed = owed;
	if (s->rx_state == CV_FROZEN || (s->rx_state == CV_RAW && cv_engine_unsettled(s)))
		cv_engine_set_rx(s, s->spill.len || (owed && !s->handover) || cv_engine_unsettled(s) ? CV_DRAINING : CV_RAW);
	cv_engine_rx_settle(s);
	s->ops->changed(s);
}

/* DRAINING and nothing is left to read here: RAW. Also from recv, with the rx lock alone. */
void cv_engine_rx_settle(struct cv_stream *s)
{
	if (s->rx_state != CV_DRAINING || (s->e.rx_wait != CV_WAIT_DONE && s->e.rx_wait != CV_WAIT_END) || s->spill.len)
		return;
	if (s->e.proven && s->rx.head < s->e.rx_lim && !CV_FAULT_IF(23)) {
		if (s->e.rx_wait != CV_WAIT_END || !s->e.link_dead || cv_ring_readable(&s->rx) > 0)
			return;
		/* The end of the ring lies in memory that never came here. */
		if (!s->e.rst_seen)
			atomic_store_explicit(&s->err, ECONNRESET, memory_order_relaxed);
		s->e.rst_seen = true;
	}
	if (s->e.rx_wait == CV_WAIT_DONE && ((s->e.owed && !s->handover) || cv_engine_unsettled(s)))
		return;
	if (s->e.rx_wait == CV_WAIT_END || (s->e.rx_fin && !s->e.owed))
		s->rx_eof = true;
	cv_engine_set_rx(s, CV_RAW);
}

/* The peer leaves while we have not fenced (so that it never was in the ring). If it awaits our fence and we have written nothing since N, it gets one. */
static void answer(struct cv_stream *s, bool await)
{
	uint64_t read, written;
	struct cv_rec rec;
	bool silent = s->phase == CV_PH_SWITCHING ? !s->twin_shut : s->tx_state == CV_RAW && !s->twin_shut && !s->tx_dead;

	if (await && silent && !CV_FAULT_IF(24) && !s->ops->twin_offsets(s, &read, &written) && written == s->e.tx_n) {
		cv_engine_fence(s, s->e.initiator, &rec, CV_REC_FENCE);
		memcpy(s->e.out, &rec, sizeof(rec));
		s->e.out_len = sizeof(rec);
		s->e.out_off = 0;
		s->e.rx_lim = UINT64_MAX;
		s->e.resume_seen = true;
		cv_engine_leave(s, CV_REASON_PEER_LEFT);
	} else if (s->phase == CV_PH_SWITCHING) {
		cv_engine_cancel(s, CV_REASON_CANCELLED);
	}
}

static int take_resume(struct cv_stream *s, const struct cv_rec *r)
{
	uint64_t c;

	if (r->payload && (!s->e.fence_begun || r->payload > CV_PAYLOAD_MAX || r->payload > s->e.tx_n))
		return -EPROTO;
	if (r->a > s->tx.tail || (s->tx.tail && r->a < s->tx.head) || (s->e.cancelled && r->a))
		return -EPROTO;
	if (!s->e.resumed) {
		if (s->phase == CV_PH_LINKED || (s->phase == CV_PH_SWITCHING && s->e.fence_begun))
			cv_engine_leave(s, s->leave_asked ? (enum cv_reason)s->leave_why : CV_REASON_PEER_LEFT);
		else
			answer(s, (r->flags & CV_RESUME_AWAIT) != 0);
		if (s->fault || s->e.rx_wait == CV_WAIT_END)
			return 0;
	}
	c = s->e.resumed ? s->e.rx_lim : 0;
	if (s->rx_state == CV_RING) { /* answered by going raw at once: nothing of its ring is for us */
		s->e.rx_lim = 0;
		cv_engine_set_rx(s, CV_DRAINING);
	}
	if (r->b < c)
		return -EPROTO;
	s->e.resume_seen = true;
	if (!s->e.cancelled) /* else all that waits in the ring is on its way already */
		s->e.resend = CV_FAULT_IF(26) ? s->tx.tail : CV_FAULT_IF(25) ? s->tx.head : r->a;
	s->e.rx_fin = (r->flags & CV_RESUME_FIN) != 0;
	s->e.owed = r->b - c + s->e.give.len;
	s->e.payload_left = r->payload;
	s->e.rx_wait = r->payload ? CV_WAIT_PAYLOAD : CV_WAIT_DONE;
	if (!r->payload)
		own_error(s);
	cv_engine_rx_settle(s);
	s->ops->changed(s);
	return 0;
}

/* Nothing but records can come here, so that the parts of one are taken as they come: an EOF behind them must show. */
static int record(struct cv_stream *s)
{
	struct cv_rec rec, want;
	ssize_t n = s->ops->twin_recv(s, s->e.in + s->e.in_len, sizeof(rec) - s->e.in_len, false);
	int err;

	if (n == -EAGAIN || n == -EINTR)
		return 0;
	if (n <= 0)
		return cv_engine_twin_end(s, n ? (int)-n : 0);
	s->e.moved++;
	s->e.in_len += (uint8_t)n;
	if (s->e.in_len < sizeof(rec))
		return 1;
	s->e.in_len = 0;
	memcpy(&rec, s->e.in, sizeof(rec));
	cv_engine_fence(s, !s->e.initiator, &want, rec.type);
	if (memcmp(rec.proof, want.proof, sizeof(rec.proof)) != 0 || rec.epoch != s->epoch || rec.version != CV_WIRE_VERSION ||
	    (rec.type != CV_REC_RESUME && rec.type != CV_REC_KEEPALIVE))
		err = -EPROTO;
	else
		err = rec.type == CV_REC_RESUME ? take_resume(s, &rec) : 0;
	if (err && s->closed) { /* it has seen END_CLOSED and gone on raw: data for a closed socket */
		s->reset_twin = true;
		cv_engine_close_now(s);
	} else if (err) {
		cv_engine_fail(s, CV_REASON_PROTOCOL);
	}
	return 1;
}

static int payload(struct cv_stream *s)
{
	size_t want = (size_t)cv_min_u64(s->e.payload_left, 65536);
	uint8_t *p;
	ssize_t n;

	if (cv_spill_reserve(&s->e.back, s->ops, want, &p)) {
		cv_engine_fail(s, CV_REASON_NO_MEMORY);
		return 1;
	}
	n = s->ops->twin_recv(s, p, want, false);
	if (n == -EAGAIN || n == -EINTR)
		return 0;
	if (n <= 0)
		return cv_engine_twin_end(s, n ? (int)-n : 0);
	cv_spill_added(&s->e.back, (size_t)n);
	s->e.moved += (uint64_t)n;
	s->e.payload_left -= (uint64_t)n;
	if (!s->e.payload_left) {
		s->e.rx_wait = CV_WAIT_DONE;
		own_error(s);
		cv_engine_rx_settle(s);
		s->ops->changed(s);
	}
	return 1;
}

int cv_engine_rx_records(struct cv_stream *s)
{
	if (s->rx_state != CV_RING && s->rx_state != CV_DRAINING)
		return 0;
	return s->e.rx_wait == CV_WAIT_REC ? record(s) : s->e.rx_wait == CV_WAIT_PAYLOAD ? payload(s) : 0;
}

/* ---- writing what is owed ------------------------------------------------------------------------------------------------------ */

void cv_engine_twin_broken(struct cv_stream *s, int err)
{
	bool rx_open = s->e.rx_wait >= CV_WAIT_UPTO && s->e.rx_wait <= CV_WAIT_PAYLOAD;

	if (rx_open) { /* a RST may be the answer to our records: what is left to read tells how the peer ended */
		if (err != -EPIPE) /* EPIPE: its FIN came before the RST, and reading ends by that */
			s->e.twin_err = -err;
	} else if (err != -EPIPE && !s->e.rst_seen) {
		atomic_store_explicit(&s->err, -err, memory_order_relaxed);
		s->e.rst_seen = true;
	}
	cv_engine_drop_tx(s);
	if (s->phase == CV_PH_SWITCHING) { /* rx learns the rest from the twin */
		s->phase = CV_PH_LEAVING;
		s->e.cancelled = true;
		s->e.by_twin = true;
	}
}

/* Send a queue's front. 1: it is empty; 0: the twin is full; -1: the twin is broken. */
static int send_some(struct cv_stream *s, const uint8_t *p, size_t len, size_t *sent)
{
	ssize_t n = s->ops->twin_send(s, p, len);

	*sent = 0;
	if (n == -EAGAIN || n == -EINTR)
		return 0;
	if (n < 0) {
		cv_engine_twin_broken(s, (int)n);
		return -1;
	}
	*sent = (size_t)n;
	s->e.moved += (uint64_t)n;
	return 1;
}

static int send_queue(struct cv_stream *s, struct cv_spill *q)
{
	size_t n;
	int r = 1;

	while (q->len && r > 0) {
		r = send_some(s, cv_spill_front(q), q->len, &n);
		if (r > 0)
			cv_spill_drop(q, n);
	}
	if (r > 0)
		cv_spill_free(q, s->ops);
	return r;
}

static int send_ring(struct cv_stream *s)
{
	const uint8_t *p;
	uint64_t len;
	size_t n;
	int r = 1;

	while (r > 0 && (len = cv_ring_peek_back(&s->tx, s->e.resend, &p))) {
		r = send_some(s, p, (size_t)len, &n);
		s->e.resend += n;
	}
	return r;
}

static int send_records(struct cv_stream *s)
{
	size_t n;
	int r = 1;

	while (r > 0 && s->e.out_off < s->e.out_len) {
		r = send_some(s, s->e.out + s->e.out_off, (size_t)(s->e.out_len - s->e.out_off), &n);
		s->e.out_off += (uint8_t)n;
		s->e.fence_begun |= n > 0;
	}
	return r;
}

static int send_give(struct cv_stream *s)
{
	size_t n;
	int r = 1;

	while (r > 0 && s->e.give_off < s->e.give.len) {
		r = send_some(s, cv_spill_front(&s->e.give) + s->e.give_off, s->e.give.len - s->e.give_off, &n);
		s->e.give_off += n;
	}
	return r;
}

/* DRAINING: records, our payload; after the peer's RESUME its payload, our ring from its C on, the stage; then RAW. 1: RAW is reached (or the twin broke). */
int cv_engine_drain(struct cv_stream *s)
{
	int r;

	if (s->tx_state != CV_DRAINING)
		return 0;
	r = send_records(s);
	if (r > 0)
		r = send_give(s);
	if (r <= 0)
		return r < 0;
	if (s->e.tx_wait && !CV_FAULT_IF(27) && s->e.rx_wait != CV_WAIT_DONE && s->e.rx_wait != CV_WAIT_END)
		return 0;
	if (CV_FAULT_IF(28) && s->tx_shut && !s->twin_shut) {
		s->twin_shut = true;
		s->ops->twin_shut_wr(s);
	}
	if (CV_FAULT_IF(29)) {
		r = send_queue(s, &s->stage);
		if (r <= 0)
			return r < 0;
	}
	r = CV_FAULT_IF(30) ? 1 : send_queue(s, &s->e.back);
	if (CV_FAULT_IF(39))
		cv_spill_free(&s->stage, s->ops);
	if (r > 0)
		r = send_ring(s);
	if (r > 0)
		r = send_queue(s, &s->stage);
	if (r <= 0)
		return r < 0;
	if (s->e.was_ring)
		s->returns++;
	cv_engine_whole(s, CV_WHOLE_TWIN);
	cv_engine_set_tx(s, CV_RAW);
	if (s->tx_shut && !s->twin_shut) {
		s->twin_shut = true;
		s->ops->twin_shut_wr(s);
	}
	return 1;
}

/* ---- what the agent does ------------------------------------------------------------------------------------------------------- */

int cv_stream_advance(struct cv_stream *s)
{
	bool more;

	do {
		if (atomic_load_explicit(&s->fault, memory_order_relaxed) && s->e.rx_wait != CV_WAIT_END)
			cv_engine_fail(s, CV_REASON_PROTOCOL);
		more = cv_engine_rx_frozen(s) > 0;
		more |= cv_engine_ring_end(s) > 0; /* before the twin: what it holds then does not matter */
		more |= cv_engine_rx_records(s) > 0;
		more |= cv_engine_send_fence(s) > 0;
		more |= cv_engine_enter_ring(s) > 0;
		more |= cv_engine_both_ended(s) > 0;
		more |= cv_engine_drain(s) > 0;
		more |= cv_engine_close_step(s) > 0;
		cv_engine_rx_settle(s);
		cv_engine_phase(s);
	} while (more);
	cv_engine_slow(s);
	return atomic_load_explicit(&s->fault, memory_order_relaxed) ? -EPROTO : 0;
}

uint32_t cv_stream_needs(const struct cv_stream *s)
{
	uint32_t need = 0;

	if (s->rx_state != CV_RAW && s->e.rx_wait >= CV_WAIT_UPTO && s->e.rx_wait <= CV_WAIT_PAYLOAD && !s->e.twin_ended)
		need |= EPOLLIN;
	if (s->closed && !s->done && (s->e.rx_wait == CV_WAIT_RAW || s->e.rx_wait == CV_WAIT_DONE))
		need |= EPOLLIN;
	if (s->e.out_off < s->e.out_len && !CV_FAULT_IF(42))
		need |= EPOLLOUT;
	if (s->tx_state == CV_DRAINING &&
	    (s->e.give_off < s->e.give.len || !s->e.tx_wait || s->e.rx_wait == CV_WAIT_DONE || s->e.rx_wait == CV_WAIT_END))
		need |= EPOLLOUT;
	return need;
}

bool cv_stream_busy(const struct cv_stream *s)
{
	bool wait_done = s->e.rx_wait == CV_WAIT_DONE || s->e.rx_wait == CV_WAIT_END || s->e.rx_wait == CV_WAIT_RAW;

	if (s->closed)
		return !s->done;
	if (s->phase == CV_PH_OPENING || s->phase == CV_PH_SWITCHING)
		return true;
	if (s->phase == CV_PH_IDLE)
		return s->handover && s->rx_state != CV_RAW;
	if (s->e.twin_ended && !wait_done)
		return true;
	if (s->phase == CV_PH_LINKED)
		return false;
	if (s->tx_state == CV_DRAINING && (s->e.out_off < s->e.out_len || s->e.give_off < s->e.give.len || (s->e.tx_wait && !wait_done)))
		return true;
	if (s->e.rx_wait == CV_WAIT_PAYLOAD)
		return true;
	if (s->e.rx_wait == CV_WAIT_FENCE && (!s->e.by_twin || s->e.partial))
		return true;
	return s->handover && (s->rx_state != CV_RAW || s->tx_state != CV_RAW);
}

int cv_stream_timeout(struct cv_stream *s)
{
	uint64_t moved = s->e.moved;

	cv_stream_advance(s);
	if (!cv_stream_busy(s))
		return 0;
	if (s->e.moved != moved || s->e.moved != s->e.moved_seen) {
		s->e.moved_seen = s->e.moved;
		if (s->phase == CV_PH_LEAVING)
			return 0;
	}
	if (s->e.twin_ended && s->e.rx_wait != CV_WAIT_END) { /* the link tells nothing more in time */
		s->e.link_dead = s->e.by_twin = true;
		cv_engine_twin_end(s, s->e.twin_err);
		cv_stream_advance(s);
		return 0;
	}
	if (s->closed && s->tx_state == CV_RAW) {
		cv_engine_close_now(s);
		return 0;
	}
	if (s->phase == CV_PH_OPENING || s->phase == CV_PH_SWITCHING) {
		s->leave_asked = false;
		if (s->e.fence_begun)
			cv_engine_leave(s, CV_REASON_TIMEOUT);
		else
			cv_engine_cancel(s, CV_REASON_TIMEOUT);
		cv_stream_advance(s);
		return 0;
	}
	if (s->e.rx_wait == CV_WAIT_FENCE && !s->e.by_twin) { /* its CANCEL does not come: from now on the twin alone tells */
		s->e.by_twin = true;
		cv_stream_advance(s);
		return 0;
	}
	cv_engine_fail(s, CV_REASON_TIMEOUT);
	return -ETIMEDOUT;
}
