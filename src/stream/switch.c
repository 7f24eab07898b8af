/* SPDX-License-Identifier: Apache-2.0 */
/* The upgrade: messages, the freeze at N, the fence, the way into the ring; and how it is called off. docs/protocol.md, "Upgrade". */
#include "engine.h"
#include <sha256.h>
#include <sys/epoll.h>

static void begin(struct cv_stream *s, uint32_t epoch, bool initiator, const uint8_t identity[32])
{
	cv_spill_free(&s->e.back, s->ops);
	cv_spill_free(&s->e.give, s->ops);
	memset(&s->e, 0, sizeof(s->e));
	s->e.initiator = initiator;
	s->e.rx_lim = UINT64_MAX;
	memcpy(s->e.identity, identity, sizeof(s->e.identity));
	s->epoch = epoch;
	s->handover = s->leave_asked = false;
	atomic_store_explicit(&s->ended, 0, memory_order_relaxed);
}

static bool may_switch(struct cv_stream *s)
{
	cv_engine_phase(s);
	if (s->tx_shut || s->rx_eof || s->closed || s->tx_dead) {
		s->reason = CV_REASON_HALF_CLOSED;
		return false;
	}
	if (s->phase == CV_PH_IDLE && s->tx_state == CV_RAW && s->rx_state == CV_RAW && !s->err && !s->fault)
		return true;
	s->reason = CV_REASON_CONNECTING;
	return false;
}

/*
 * tx stops at N and the peer hears of it. A dead connection's addresses may be another's already, and the socket still wait to be read: an offer of the one may
 * have met the other. Both sides look at the twin here, the initiator after the other: two living ones of the same addresses are one connection's.
 */
static void freeze(struct cv_stream *s)
{
	uint64_t read;

	s->phase = CV_PH_SWITCHING;
	if (!s->ops->twin_alive(s) && !CV_FAULT_IF(46)) {
		cv_engine_cancel(s, CV_REASON_HALF_CLOSED);
		return;
	}
	if (s->ops->twin_offsets(s, &read, &s->e.tx_n)) {
		cv_engine_cancel(s, CV_REASON_CALL);
		return;
	}
	atomic_store_explicit(&s->tx.w->n, s->e.tx_n, memory_order_relaxed);
	cv_engine_whole(s, CV_WHOLE_YES);
	cv_engine_set_tx(s, CV_FROZEN);
	cv_engine_msg(s, CV_MSG_SWITCH, CV_FAULT_IF(13) ? s->e.tx_n + 1 : s->e.tx_n, 0, 0, NULL);
}

int cv_stream_open(struct cv_stream *s, const uint8_t identity[32])
{
	int err;

	if (!may_switch(s))
		return -EBUSY;
	begin(s, s->epoch + 1, true, identity);
	s->ops->random(s, s->e.nonce[0], CV_NONCE);
	s->phase = CV_PH_OPENING;
	err = cv_engine_msg(s, CV_MSG_OPEN, 0, 0, 0, s->e.nonce[0]);
	if (err)
		s->phase = CV_PH_IDLE;
	return err;
}

int cv_stream_accept(struct cv_stream *s, const struct cv_msg *open, const uint8_t identity[32])
{
	int err;

	if (!may_switch(s))
		return -EBUSY;
	if (open->epoch <= s->epoch) {
		s->reason = CV_REASON_CONNECTING;
		return -ESTALE;
	}
	begin(s, open->epoch, false, identity);
	memcpy(s->e.nonce[0], open->nonce, CV_NONCE);
	s->ops->random(s, s->e.nonce[1], CV_NONCE);
	err = cv_engine_msg(s, CV_MSG_OPEN_ACK, 0, 0, 0, s->e.nonce[1]);
	if (err)
		return err;
	freeze(s);
	return 0;
}

/* ---- calling it off ------------------------------------------------------------------------------------------------------------ */

/* Only while no byte of our fence is written. rx: the peer may have fenced if it has our SWITCH_ACK: then the twin, or its CANCEL, decides. */
void cv_engine_cancel(struct cv_stream *s, enum cv_reason why)
{
	uint64_t waiting = 0;

	s->reason = (uint8_t)why;
	if (s->phase == CV_PH_OPENING) {
		s->phase = CV_PH_IDLE;
		cv_engine_msg(s, CV_MSG_CANCEL, why, 0, 0, NULL);
		s->ops->changed(s);
		return;
	}
	s->phase = CV_PH_LEAVING;
	s->e.cancelled = true;
	s->e.out_len = s->e.out_off = 0;
	s->e.by_twin = s->e.link_dead;
	if (s->tx_state == CV_FROZEN) { /* before the peer hears of it and looks */
		waiting = cv_engine_waiting(s);
		cv_engine_whole(s, waiting ? CV_WHOLE_HELD : CV_WHOLE_TWIN);
	}
	if (!CV_FAULT_IF(14))
		cv_engine_msg(s, CV_MSG_CANCEL, why, waiting, 0, NULL);
	if (s->e.rx_wait == CV_WAIT_UPTO && !s->e.link_dead) {
		cv_engine_rx_raw(s, 0);
	} else if (s->e.rx_wait == CV_WAIT_RAW) { /* it may be FROZEN, or become so before it hears of this */
		cv_engine_rx_raw(s, 0);
	} else if (s->e.rx_wait == CV_WAIT_REC) { /* it has fenced and comes back by RESUME; nothing of its ring is for us */
		s->e.rx_lim = 0;
		cv_engine_set_rx(s, CV_DRAINING);
	}
	if (s->tx_state == CV_FROZEN && waiting) {
		cv_engine_set_tx(s, CV_DRAINING);
	} else if (s->tx_state == CV_FROZEN) {
		cv_engine_set_tx(s, CV_RAW);
		if (s->tx_shut && !s->twin_shut) {
			s->twin_shut = true;
			s->ops->twin_shut_wr(s);
		}
	}
}

static int on_switch(struct cv_stream *s, uint64_t n)
{
	uint64_t read, written;

	if (s->phase != CV_PH_SWITCHING)
		return 0; /* called off here; the peer hears of it */
	if (s->e.rx_wait != CV_WAIT_RAW)
		return -EPROTO;
	if (s->ops->twin_offsets(s, &read, &written)) {
		cv_engine_cancel(s, CV_REASON_CALL);
		return 0;
	}
	if (read > n || n - read > s->lim.spill_max) {
		cv_engine_cancel(s, read > n ? CV_REASON_BYPASS : CV_REASON_SPILL);
		return 0;
	}
	s->e.rx_n = n;
	s->e.rx_wait = CV_WAIT_UPTO;
	cv_engine_set_rx(s, CV_FROZEN);
	if (read == n || CV_FAULT_IF(38))
		cv_engine_reached_n(s);
	return 0;
}

static int on_switch_ack(struct cv_stream *s)
{
	if (s->phase != CV_PH_SWITCHING)
		return 0;
	if (s->e.acked || s->e.rx_wait == CV_WAIT_RAW) /* its SWITCH comes first */
		return -EPROTO;
	s->e.acked = true;
	return 0;
}

static int on_cancel(struct cv_stream *s, const struct cv_msg *m)
{
	if (s->phase == CV_PH_OPENING) {
		s->phase = CV_PH_IDLE;
		s->reason = CV_REASON_CANCELLED;
		return 0;
	}
	if ((s->phase != CV_PH_SWITCHING && s->phase != CV_PH_LEAVING) || s->e.resume_seen || s->e.rx_wait == CV_WAIT_END)
		return 0;
	if (s->e.proven) /* it had fenced: only to answer our wait on the twin, after it said this */
		return s->e.await ? 0 : -EPROTO;
	s->e.cancel_seen = true;
	s->e.cancel_owed = m->b;
	if (s->e.await) /* it answers on the twin, or has gone on raw: only the twin can tell */
		return 0;
	if (s->rx_state == CV_FROZEN && (s->e.rx_wait == CV_WAIT_UPTO || s->e.rx_wait == CV_WAIT_FENCE)) {
		uint64_t read, written;

		if (s->ops->twin_offsets(s, &read, &written) || read > s->e.rx_n)
			read = s->e.rx_n;
		cv_engine_rx_raw(s, s->e.rx_n - read + m->b);
	} else {
		cv_engine_rx_settle(s);
	}
	if (s->phase != CV_PH_SWITCHING)
		return 0;
	if (s->e.fence_begun)
		cv_engine_leave(s, CV_REASON_CANCELLED);
	else
		cv_engine_cancel(s, CV_REASON_CANCELLED);
	return 0;
}

int cv_stream_on_msg(struct cv_stream *s, const struct cv_msg *m)
{
	int err = 0;

	if (m->epoch != s->epoch && !CV_FAULT_IF(15))
		return 0;
	if (s->phase == CV_PH_IDLE || s->e.link_dead)
		return 0;
	switch (m->type) {
	case CV_MSG_OPEN_ACK:
		if (s->phase != CV_PH_OPENING)
			return 0;
		memcpy(s->e.nonce[1], m->nonce, CV_NONCE);
		s->phase = CV_PH_SWITCHING; /* the peer is FROZEN */
		if (s->tx_shut || s->leave_asked)
			cv_engine_cancel(s, s->tx_shut ? CV_REASON_HALF_CLOSED : (enum cv_reason)s->leave_why);
		else
			freeze(s);
		break;
	case CV_MSG_NAK:
		if (s->phase != CV_PH_OPENING)
			return 0;
		s->phase = CV_PH_IDLE;
		s->leave_asked = s->handover = false;
		s->reason = m->a > 0 && m->a < CV_REASON_COUNT ? (uint8_t)m->a : CV_REASON_PEER_REFUSED;
		break;
	case CV_MSG_SWITCH:
		err = on_switch(s, m->a);
		break;
	case CV_MSG_SWITCH_ACK:
		err = on_switch_ack(s);
		break;
	case CV_MSG_CANCEL:
		err = on_cancel(s, m);
		break;
	case CV_MSG_GROW:
		break;
	default:
		err = -EPROTO;
	}
	if (err)
		cv_engine_fail(s, CV_REASON_PROTOCOL);
	else
		s->ops->changed(s);
	return err;
}

/* ---- the fence ----------------------------------------------------------------------------------------------------------------- */

/* A record's frame. The proof binds it to this handshake as this side saw it: a relay or a squatter cannot know it. */
void cv_engine_fence(struct cv_stream *s, bool initiators, struct cv_rec *rec, uint8_t type)
{
	bool own = initiators == s->e.initiator;
	struct {
		uint32_t version, epoch;
		uint8_t type, initiators, pad[6];
		uint64_t n;
	} head = {.version = CV_WIRE_VERSION, .epoch = s->epoch, .type = type, .initiators = initiators, .n = own ? s->e.tx_n : s->e.rx_n};
	SHA2_CTX c;

	*rec = (struct cv_rec){.epoch = s->epoch, .type = type, .version = CV_WIRE_VERSION, .a = head.n};
	SHA256Init(&c);
	SHA256Update(&c, (const uint8_t *)&head, sizeof(head));
	SHA256Update(&c, s->e.nonce[0], CV_NONCE);
	SHA256Update(&c, s->e.nonce[1], CV_NONCE);
	SHA256Update(&c, s->e.identity, sizeof(s->e.identity));
	SHA256Final(rec->proof, &c);
}

/* FROZEN and acknowledged: the fence goes onto the twin. 1: something has changed. */
int cv_engine_send_fence(struct cv_stream *s)
{
	uint64_t read, written;
	ssize_t n;

	if (s->phase != CV_PH_SWITCHING || s->tx_state != CV_FROZEN || !(s->e.acked || CV_FAULT_IF(16)) || s->e.fence_done)
		return 0;
	if (s->e.rx_wait == CV_WAIT_RAW)
		return 0;
	if (!s->e.fence_begun) {
		struct cv_rec rec;

		if (s->ops->twin_offsets(s, &read, &written) || (written != s->e.tx_n && !CV_FAULT_IF(17))) {
			cv_engine_cancel(s, CV_REASON_BYPASS);
			return 1;
		}
		cv_engine_fence(s, s->e.initiator, &rec, CV_REC_FENCE);
		memcpy(s->e.out, &rec, sizeof(rec));
		s->e.out_len = sizeof(rec);
		s->e.out_off = 0;
	}
	n = s->ops->twin_send(s, s->e.out + s->e.out_off, (size_t)(s->e.out_len - s->e.out_off));
	if (n < 0) {
		if (n == -EAGAIN || n == -EINTR)
			return 0;
		cv_engine_twin_broken(s, (int)n);
		return 1;
	}
	s->e.moved += (uint64_t)n;
	s->e.fence_begun |= n > 0;
	s->e.out_off += (uint8_t)n;
	if (s->e.out_off < s->e.out_len)
		return n > 0;
	s->e.out_len = s->e.out_off = 0;
	s->e.fence_done = true;
	/* Bytes that came from elsewhere between the check and now lie before or behind the fence, nobody knows which: the stream cannot go on. */
	if (s->ops->twin_offsets(s, &read, &written) || written != s->e.tx_n + sizeof(struct cv_rec))
		cv_engine_fail(s, CV_REASON_BYPASS);
	return 1;
}

/* rx has read its raw bytes up to N. Also from recv, with the rx lock alone. */
void cv_engine_reached_n(struct cv_stream *s)
{
	s->e.rx_wait = CV_WAIT_FENCE;
	cv_engine_msg(s, CV_MSG_SWITCH_ACK, 0, 0, 0, NULL);
	s->ops->changed(s);
}

static int upto_n(struct cv_stream *s)
{
	uint64_t read, written, left;
	uint8_t *p;
	ssize_t n;

	if (s->ops->twin_offsets(s, &read, &written))
		return 0;
	if (read >= s->e.rx_n) {
		if (read > s->e.rx_n) {
			cv_engine_fail(s, CV_REASON_BYPASS);
			return 1;
		}
		cv_engine_reached_n(s);
		return 1;
	}
	if (s->e.twin_ended)
		return cv_engine_twin_end(s, s->e.twin_err);
	left = s->e.rx_n - read;
	if (cv_spill_reserve(&s->spill, s->ops, (size_t)left, &p))
		return 0;
	n = s->ops->twin_recv(s, p, (size_t)left, false);
	if (n == -EAGAIN || n == -EINTR)
		return 0;
	if (n <= 0)
		return cv_engine_twin_end(s, n ? (int)-n : 0);
	cv_spill_added(&s->spill, (size_t)n);
	s->e.moved += (uint64_t)n;
	cv_engine_slow(s);
	s->ops->changed(s);
	return 1;
}

/* At N. While the link lives a mismatch is not trusted: the peer that went on raw has said CANCEL, which tells how much it owes. */
static int at_n(struct cv_stream *s)
{
	struct cv_rec want, got;
	ssize_t n;

	n = s->ops->twin_recv(s, &got, sizeof(got), true);
	if (n == -EAGAIN || n == -EINTR)
		return 0;
	if (n <= 0)
		return cv_engine_twin_end(s, n ? (int)-n : 0);
	cv_engine_fence(s, !s->e.initiator, &want, CV_REC_FENCE);
	if (memcmp(&got, &want, (size_t)n) != 0 && !(CV_FAULT_IF(18) && n == (ssize_t)sizeof(got))) {
		s->e.partial = 0;
		if (!s->e.by_twin && !s->e.await && !s->e.link_dead)
			return 0;
		cv_engine_rx_raw(s, s->e.cancel_seen ? s->e.cancel_owed : 0);
		return 1;
	}
	if ((size_t)n < sizeof(got)) {
		s->e.moved += n != s->e.partial;
		s->e.partial = (uint8_t)n;
		return 0;
	}
	s->e.partial = 0;
	n = s->ops->twin_recv(s, &got, sizeof(got), false);
	if (n != (ssize_t)sizeof(got)) {
		cv_engine_fail(s, CV_REASON_BYPASS);
		return 1;
	}
	s->e.proven = true;
	s->e.rx_wait = CV_WAIT_REC;
	s->e.moved++;
	/* What waits in the ring is ours to read once we cannot call it off any more; if we have, we have told C = 0, or nothing. */
	s->e.rx_lim = 0;
	cv_engine_set_rx(s, s->phase == CV_PH_SWITCHING ? CV_RING : CV_DRAINING);
	return 1;
}

int cv_engine_rx_frozen(struct cv_stream *s)
{
	if (s->rx_state != CV_FROZEN)
		return 0;
	return s->e.rx_wait == CV_WAIT_UPTO ? upto_n(s) : s->e.rx_wait == CV_WAIT_FENCE ? at_n(s) : 0;
}

/* ---- into the ring ------------------------------------------------------------------------------------------------------------- */

static bool stage_to_ring(struct cv_stream *s)
{
	while (s->stage.len) {
		struct iovec iov = {.iov_base = (void *)(uintptr_t)cv_spill_front(&s->stage), .iov_len = s->stage.len};
		int64_t n = cv_ring_put(&s->tx, &iov, 1, 0, s->stage.len);

		if (n < 0) {
			atomic_store_explicit(&s->fault, true, memory_order_relaxed);
			return false;
		}
		cv_spill_drop(&s->stage, (size_t)n);
		if (!n && !cv_engine_grow(s, s->stage.len, true))
			return false;
	}
	cv_spill_free(&s->stage, s->ops);
	return true;
}

/* Our fence is written and the peer's is verified. The stage fits, since a generation may be as large as ring_max; without memory the stream returns. */
int cv_engine_enter_ring(struct cv_stream *s)
{
	bool fits;

	if (s->phase != CV_PH_SWITCHING || !s->e.fence_done || !(s->e.proven || (CV_FAULT_IF(19) && s->e.rx_wait == CV_WAIT_FENCE)))
		return 0;
	s->phase = CV_PH_LINKED;
	s->e.was_ring = true;
	s->e.rx_lim = UINT64_MAX;
	s->switches++;
	s->reason = CV_REASON_NONE;
	fits = stage_to_ring(s);
	cv_engine_set_tx(s, CV_RING);
	s->ops->publish(s, s->tx_shut && fits ? CV_END_FIN : 0);
	cv_engine_whole(s, fits ? CV_WHOLE_YES : CV_WHOLE_HELD);
	if (!fits)
		cv_engine_leave(s, CV_REASON_NO_MEMORY);
	else if (s->leave_asked)
		cv_engine_leave(s, (enum cv_reason)s->leave_why);
	return 1;
}
