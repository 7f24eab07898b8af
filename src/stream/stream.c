/* SPDX-License-Identifier: Apache-2.0 */
/* The stream's data calls, what poll says, and the one place where states change. */
#include "engine.h"
#include "iov.h"
#include <sys/epoll.h>

/* ---- states -------------------------------------------------------------------------------------------------------------------- */

#define B(x) (1u << (x))

/* [from]: the states that may follow. */
static const uint8_t tx_next[] = {
	[CV_RAW] = B(CV_FROZEN) | B(CV_DRAINING), /* DRAINING: only to answer a peer that awaits our fence */
	[CV_FROZEN] = B(CV_RAW) | B(CV_RING) | B(CV_DRAINING),
	[CV_RING] = B(CV_RAW) | B(CV_DRAINING), /* RAW: the peer has closed or died */
	[CV_DRAINING] = B(CV_RAW),
};
static const uint8_t rx_next[] = {
	[CV_RAW] = B(CV_FROZEN) | B(CV_DRAINING), /* DRAINING: called off here, while the peer may be FROZEN */
	[CV_FROZEN] = B(CV_RAW) | B(CV_RING) | B(CV_DRAINING),
	[CV_RING] = B(CV_RAW) | B(CV_DRAINING), /* RAW: closed here */
	[CV_DRAINING] = B(CV_RAW),
};

static void illegal(struct cv_stream *s)
{
#ifdef CV_DEBUG
	__builtin_trap();
#endif
	atomic_store_explicit(&s->fault, true, memory_order_relaxed);
}

/* Hints for the fast paths. send reads tx_slow under its lock, recv may set it under the other: a relaxed store, and advance() repeats it. */
void cv_engine_slow(struct cv_stream *s)
{
	bool tx = s->tx_state != CV_RING || s->tx_shut || s->tx_dead || s->stage.len || atomic_load_explicit(&s->err, memory_order_relaxed) ||
		  atomic_load_explicit(&s->ended, memory_order_relaxed);
	bool rx = s->rx_state != CV_RING || s->spill.len || s->e.rx_lim != UINT64_MAX;

	__atomic_store_n(&s->tx_slow, tx, __ATOMIC_RELAXED);
	__atomic_store_n(&s->rx_slow, rx, __ATOMIC_RELAXED);
}

void cv_engine_set_tx(struct cv_stream *s, enum cv_half to)
{
	if (!(tx_next[s->tx_state] & B(to))) {
		illegal(s);
		return;
	}
	CV_STATE_HOOK(s, 0, s->tx_state, to);
	s->tx_state = (uint8_t)to;
	__atomic_store_n(&s->tx_slow, to != CV_RING || s->tx_shut || s->stage.len, __ATOMIC_RELAXED);
	s->ops->changed(s);
}

void cv_engine_set_rx(struct cv_stream *s, enum cv_half to)
{
	if (!(rx_next[s->rx_state] & B(to))) {
		illegal(s);
		return;
	}
	CV_STATE_HOOK(s, 1, s->rx_state, to);
	s->rx_state = (uint8_t)to;
	__atomic_store_n(&s->rx_slow, to != CV_RING || s->spill.len || s->e.rx_lim != UINT64_MAX, __ATOMIC_RELAXED);
	s->ops->changed(s);
}

void cv_engine_phase(struct cv_stream *s)
{
	if (s->phase != CV_PH_LEAVING || s->tx_state != CV_RAW || s->rx_state != CV_RAW)
		return;
	if (s->e.rx_wait != CV_WAIT_DONE && s->e.rx_wait != CV_WAIT_END && s->e.rx_wait != CV_WAIT_RAW)
		return;
	s->phase = CV_PH_IDLE;
	s->e.rx_wait = CV_WAIT_RAW;
	s->handover = s->leave_asked = false;
	cv_spill_free(&s->e.back, s->ops);
	cv_spill_free(&s->e.give, s->ops);
	cv_spill_free(&s->stage, s->ops);
	cv_spill_free(&s->spill, s->ops);
	s->ops->changed(s);
}

int cv_engine_msg(struct cv_stream *s, uint32_t type, uint64_t a, uint64_t b, uint64_t c, const uint8_t *nonce)
{
	struct cv_msg m = {.type = type, .epoch = s->epoch, .a = a, .b = b, .c = c};

	if (s->e.link_dead)
		return -EPIPE;
	if (nonce)
		memcpy(m.nonce, nonce, sizeof(m.nonce));
	return s->ops->msg(s, &m);
}

void cv_stream_init(struct cv_stream *s, const struct cv_stream_ops *ops, const struct cv_stream_limits *lim)
{
	memset(s, 0, sizeof(*s));
	s->ops = ops;
	s->lim = *lim;
	s->tx_slow = s->rx_slow = true;
	s->e.rx_lim = UINT64_MAX;
}

void cv_stream_fini(struct cv_stream *s)
{
	cv_spill_free(&s->spill, s->ops);
	cv_spill_free(&s->stage, s->ops);
	cv_spill_free(&s->e.back, s->ops);
	cv_spill_free(&s->e.give, s->ops);
}

int cv_stream_error(struct cv_stream *s, bool take)
{
	return take ? atomic_exchange_explicit(&s->err, 0, memory_order_relaxed) : atomic_load_explicit(&s->err, memory_order_relaxed);
}

static ssize_t faulty(struct cv_stream *s)
{
	atomic_store_explicit(&s->fault, true, memory_order_relaxed);
	s->ops->changed(s);
	return -ECONNRESET;
}

/* ---- send ---------------------------------------------------------------------------------------------------------------------- */

/* What the peer may conclude should we die now: see struct cv_ring_w. Release: after the bytes that it vouches for. */
void cv_engine_whole(struct cv_stream *s, uint32_t whole)
{
	atomic_store_explicit(&s->tx.w->whole, CV_FAULT_IF(6) ? CV_WHOLE_YES : whole, memory_order_release);
}

#ifndef CV_RING_MIN
#define CV_RING_MIN 4096u /* no generation is smaller */
#endif

/* The peer is FROZEN, and what it accepted since lies in its ring: should it die, that follows the last byte of the twin. */
bool cv_engine_unfenced(const struct cv_stream *s)
{
	return !s->ops->flushed && !s->e.proven && atomic_load_explicit(&s->rx.w->whole, memory_order_acquire) == CV_WHOLE_YES &&
	       atomic_load_explicit(&s->rx.w->tail, memory_order_acquire) != 0;
}

/* Likewise, and all that goes before has been read here. */
static bool unfenced_next(struct cv_stream *s)
{
	uint64_t read, written;

	return cv_engine_unfenced(s) && !s->ops->twin_offsets(s, &read, &written) && read == atomic_load_explicit(&s->rx.w->n, memory_order_relaxed);
}

/* An EOF of the twin now would mean that the peer died with bytes that it had accepted. */
bool cv_engine_held(const struct cv_stream *s)
{
	return !s->ops->flushed && !CV_FAULT_IF(31) &&
	       (atomic_load_explicit(&s->rx.w->whole, memory_order_acquire) == CV_WHOLE_HELD || cv_engine_unfenced(s));
}

/* After an upgrade was called off: can the peer still be FROZEN, or be sending what it held? Until it cannot, an EOF is to be judged by cv_engine_held(). */
bool cv_engine_unsettled(const struct cv_stream *s)
{
	uint32_t whole;

	if (s->ops->flushed || s->handover || s->e.proven)
		return false;
	whole = atomic_load_explicit(&s->rx.w->whole, memory_order_acquire);
	return whole == CV_WHOLE_RAW ? !s->e.cancel_seen && !s->e.link_dead : whole != CV_WHOLE_TWIN;
}

static uint64_t pow2(uint64_t n)
{
	uint64_t p = CV_RING_MIN;

	while (p < n && p < (1ull << 62))
		p *= 2;
	return p;
}

/*
 * The size of the generation to open now, or 0. Cheap growth up to ring_hot; one step to ring_max only for a reader that stands still, so that a
 * fast stream keeps to memory that the cache holds. The last generation is kept for that step.
 */
static uint64_t next_size(const struct cv_stream *s, uint64_t head, uint64_t want, bool stalled)
{
	const struct cv_ring *g = &s->tx;
	uint64_t cur = g->gen[g->gens - 1].size, max = pow2(s->lim.ring_max), hot = cv_min_u64(pow2(s->lim.ring_hot), max);

	if (g->gens == CV_RING_GENS || s->e.grow_failed || s->e.link_dead)
		return 0;
	if (cur < hot) {
		uint64_t size = pow2(want > 4 * cur ? want : 4 * cur);

		return g->gens >= CV_RING_GENS - 2 || size > hot ? hot : size;
	}
	if (cur < max && (stalled || (s->e.refused && head == s->e.refused_head)))
		return max;
	return 0;
}

bool cv_engine_grow(struct cv_stream *s, uint64_t want, bool stalled)
{
	struct cv_ring *g = &s->tx;
	uint64_t size = next_size(s, g->head, want, stalled), got = 0;
	uint8_t *base = NULL;

	if (!size || !g->tail)
		return false;
	if (s->ops->grow(s, size, &base, &got) || cv_ring_open_gen(g, base, got)) {
		s->e.grow_failed = true;
		return false;
	}
	if (!CV_FAULT_IF(7))
		cv_engine_msg(s, CV_MSG_GROW, g->gens - 1u, g->tail, got, NULL);
	return true;
}

/* Bytes accepted while FROZEN. */
uint64_t cv_engine_waiting(const struct cv_stream *s)
{
	return s->stage.len + s->tx.tail;
}

static ssize_t ring_send(struct cv_stream *s, const struct iovec *iov, int iovcnt, size_t total, bool stalled)
{
	struct cv_ring *g = &s->tx;
	uint64_t done = 0;

	for (;;) {
		int64_t n = cv_ring_put(g, iov, iovcnt, done, total - done);

		if (unlikely(n < 0))
			return faulty(s);
		done += (uint64_t)n;
		if (done == total)
			break;
		if (!cv_engine_grow(s, total - done, stalled && !done)) {
			s->e.refused = true;
			s->e.refused_head = g->head;
			break;
		}
	}
	if (!done)
		return -EAGAIN;
	if (!CV_FAULT_IF(8) || done == total)
		s->ops->publish(s, 0);
	return (ssize_t)done;
}

/* FROZEN: into the ring where the peer would find it should we die, else aside. Nobody reads it there before the fence. */
static ssize_t frozen_send(struct cv_stream *s, const struct iovec *iov, int iovcnt, size_t total)
{
	uint64_t waiting = cv_engine_waiting(s), room = s->lim.ring_max > waiting ? s->lim.ring_max - waiting : 0;
	size_t n = (size_t)cv_min_u64(total, room);
	ssize_t r;

	if (!n)
		return -EAGAIN;
	if (!s->ops->flushed && !s->e.link_dead && !s->stage.len && !CV_FAULT_IF(47)) {
		r = ring_send(s, iov, iovcnt, n, true);
		if (r != -EAGAIN)
			return r;
	}
	cv_engine_whole(s, CV_WHOLE_HELD);
	if (cv_spill_put(&s->stage, s->ops, iov, iovcnt, 0, n))
		return -EAGAIN;
	return (ssize_t)n;
}

static CV_COLD ssize_t send_slow(struct cv_stream *s, const struct iovec *iov, int iovcnt, size_t total, bool stalled)
{
	uint32_t ended = atomic_load_explicit(&s->ended, memory_order_relaxed);
	int err = cv_stream_error(s, true);

	if (err)
		return -err;
	if (atomic_load_explicit(&s->fault, memory_order_relaxed))
		return -ECONNRESET;
	if (s->tx_dead || (ended & CV_END_RST))
		return -EPIPE;
	if (s->tx_state == CV_RAW)
		return CV_USE_TWIN;
	if (s->tx_shut)
		return -EPIPE;
	if (ended && s->tx_state == CV_RING) {
		cv_engine_set_tx(s, CV_RAW);
		return CV_USE_TWIN;
	}
	if (!total)
		return 0;
	switch (s->tx_state) {
	case CV_FROZEN:
		return frozen_send(s, iov, iovcnt, total);
	case CV_RING:
		return ring_send(s, iov, iovcnt, total, stalled);
	default:
		return -EAGAIN;
	}
}

ssize_t cv_stream_send(struct cv_stream *s, const struct iovec *iov, int iovcnt, size_t total, bool stalled)
{
	if (unlikely(__atomic_load_n(&s->tx_slow, __ATOMIC_RELAXED) || !total))
		return send_slow(s, iov, iovcnt, total, stalled);
	if (unlikely(iovcnt != 1 || cv_ring_room(&s->tx) < total))
		return ring_send(s, iov, iovcnt, total, stalled);
	cv_ring_put_flat(&s->tx, iov->iov_base, total);
	s->ops->publish(s, 0);
	return (ssize_t)total;
}

/* ---- recv ---------------------------------------------------------------------------------------------------------------------- */

/* The writer is blocked only while the ring is full: from below half full there is no need to look whether it wants to be told. */
static bool maybe_blocked(const struct cv_ring *g, uint64_t held)
{
	return 2 * held >= g->gen[g->first].size && !CV_FAULT_IF(9);
}

/* From the ring into the iovec from byte `skip` on, up to the limit. Number, or -EPROTO. */
static int64_t ring_recv(struct cv_stream *s, const struct iovec *iov, int iovcnt, uint64_t skip, uint64_t max, bool peek)
{
	struct cv_ring *g = &s->rx;
	uint64_t head = g->head;
	bool fenced;
	int64_t n;

	if (!s->e.proven || head >= s->e.rx_lim)
		return 0;
	n = cv_ring_get_at(g, iov, iovcnt, skip, cv_min_u64(max, s->e.rx_lim - head), peek);
	if (n <= 0 || peek)
		return n;
	fenced = maybe_blocked(g, g->tail - head);
	s->ops->credit(s, fenced);
	return n;
}

/* Up to `max` bytes from the twin, into the iovec from byte `skip` on. Number, 0 at EOF, or -errno. */
static ssize_t twin_recv(struct cv_stream *s, const struct iovec *iov, int iovcnt, uint64_t skip, uint64_t max, bool peek)
{
	struct cv_iov c = cv_iov_at(iov, iovcnt, skip);
	uint8_t *p, bounce[2048];
	size_t len = cv_iov_piece(&c, max, &p);
	ssize_t n, total = 0;

	if (peek && len < cv_min_u64(max, sizeof(bounce))) { /* cannot peek piece by piece: each would give the same bytes */
		n = s->ops->twin_recv(s, bounce, (size_t)cv_min_u64(max, sizeof(bounce)), true);
		return n > 0 ? (ssize_t)cv_iov_to(&c, bounce, (uint64_t)n) : n;
	}
	while (len) {
		n = s->ops->twin_recv(s, p, len, peek);
		if (n <= 0) {
			if (total && n < 0 && n != -EAGAIN && n != -EINTR) { /* the kernel will not repeat it: data first, then the error */
				atomic_store_explicit(&s->err, (int)-n, memory_order_relaxed);
				s->e.rst_seen = true;
			}
			return total ? total : n;
		}
		total += n;
		c.off += (size_t)n;
		if ((size_t)n < len || peek)
			break;
		len = cv_iov_piece(&c, max - (uint64_t)total, &p);
	}
	return total;
}

/* FROZEN, short of N: straight from the twin, not beyond N. */
static ssize_t upto_recv(struct cv_stream *s, const struct iovec *iov, int iovcnt, uint64_t skip, uint64_t max, bool peek)
{
	uint64_t read, written, left;
	ssize_t n;

	if (s->ops->twin_offsets(s, &read, &written) || read > s->e.rx_n)
		return -EAGAIN;
	left = s->e.rx_n - read;
	if (CV_FAULT_IF(10))
		left += 64;
	n = left ? twin_recv(s, iov, iovcnt, skip, cv_min_u64(max, left), peek) : -EAGAIN;
	if (n == 0) { /* advance() will tell what this means */
		s->ops->changed(s);
		return -EAGAIN;
	}
	if (n < 0 && n != -EAGAIN && n != -EINTR) { /* taken from the kernel here: keep it for advance() */
		s->e.twin_ended = true;
		s->e.twin_err = (int)-n;
		s->ops->changed(s);
		return -EAGAIN;
	}
	if (n > 0 && !peek && (uint64_t)n == left)
		cv_engine_reached_n(s);
	return n;
}

/* Raw bytes after the peer's RESUME, some of which must come: a twin that ends before has lost bytes. */
static ssize_t owed_recv(struct cv_stream *s, const struct iovec *iov, int iovcnt, uint64_t skip, uint64_t max, bool peek)
{
	ssize_t n = twin_recv(s, iov, iovcnt, skip, s->e.rx_fin ? cv_min_u64(max, s->e.owed) : max, peek);

	if (n > 0 && !peek) {
		s->e.owed -= cv_min_u64(s->e.owed, (uint64_t)n);
	} else if (n == 0 && ((s->e.owed && !CV_FAULT_IF(11)) || cv_engine_held(s))) {
		n = -ECONNRESET;
	}
	if (n <= 0 && n != -EAGAIN && n != -EINTR) {
		s->e.owed = 0;
		s->e.rx_wait = CV_WAIT_END;
		if (!n || s->e.rst_seen) /* told once, whoever saw it first */
			n = -cv_stream_error(s, true);
		s->e.rst_seen |= n != 0;
	}
	return n;
}

/* RING and nothing to read: has the peer ended its direction? 0 = EOF, or -errno. */
static ssize_t ring_end(struct cv_stream *s, bool *again)
{
	uint32_t end;
	int64_t n;

	if (s->e.rx_lim == 0) /* not ours to read yet */
		return -EAGAIN;
	CV_RACE(s);
	end = atomic_load_explicit(&s->rx.w->end, memory_order_acquire);
	if (!(end & (CV_END_FIN | CV_END_RST)))
		return -EAGAIN;
	/* The tail may have moved before the flag was set. Acquire above: what we load now is final. */
	n = CV_FAULT_IF(12) ? 0 : cv_ring_readable(&s->rx);
	if (n < 0)
		return faulty(s);
	*again = n > 0;
	if (n > 0 || (s->rx.tail != s->rx.head && !CV_FAULT_IF(37)))
		return -EAGAIN;
	if (end & (CV_END_CLOSED | CV_END_RST)) {
		atomic_store_explicit(&s->ended, end, memory_order_relaxed);
		__atomic_store_n(&s->tx_slow, true, __ATOMIC_RELAXED);
		s->ops->changed(s);
	}
	if (!(end & CV_END_RST) || s->e.rst_seen)
		return 0;
	s->e.rst_seen = true;
	return -ECONNRESET;
}

/* The sources in their order: spill, ring, twin. */
static ssize_t recv_some(struct cv_stream *s, const struct iovec *iov, int iovcnt, size_t total, bool peek)
{
	uint64_t done = 0;
	ssize_t n = -EAGAIN;
	bool clear;

	if (s->spill.len) {
		done = cv_spill_get(&s->spill, iov, iovcnt, 0, total, peek);
		if (!s->spill.len)
			cv_spill_free(&s->spill, s->ops);
	}
	clear = peek ? done == s->spill.len : !s->spill.len;
	if (clear && done < total && (s->rx_state == CV_RING || s->rx_state == CV_DRAINING)) {
		n = ring_recv(s, iov, iovcnt, done, total - done, peek);
		if (n < 0)
			return done ? (ssize_t)done : faulty(s);
		done += (uint64_t)n;
		clear = !s->e.proven || (peek ? s->rx.head + (uint64_t)n : s->rx.head) >= s->e.rx_lim;
		n = -EAGAIN;
	}
	if (clear && done < total && s->rx_state == CV_FROZEN && s->e.rx_wait == CV_WAIT_UPTO)
		n = upto_recv(s, iov, iovcnt, done, total - done, peek);
	else if (clear && !done && s->rx_state == CV_DRAINING && s->e.rx_wait == CV_WAIT_DONE && !(s->e.rx_fin && !s->e.owed))
		/* Never behind bytes of the ring in one call: an urgent mark may stand between. */
		n = owed_recv(s, iov, iovcnt, done, total - done, peek);
	if (n > 0)
		done += (uint64_t)n;
	if (done && n < 0 && n != -EAGAIN && n != -EINTR)
		atomic_store_explicit(&s->err, (int)-n, memory_order_relaxed); /* data first */
	return done ? (ssize_t)done : n;
}

/*
 * RAW, but a handshake is under way: the peer may be FROZEN already. If it then dies the kernel says EOF, though bytes that it had accepted are lost. Shared
 * memory tells; otherwise the EOF waits until the peer's next message or the link's end explains it.
 */
static ssize_t raw_recv(struct cv_stream *s, const struct iovec *iov, int iovcnt, size_t total, bool peek)
{
	ssize_t n;

	if ((s->phase != CV_PH_OPENING && s->phase != CV_PH_SWITCHING) || !total)
		return CV_USE_TWIN;
	n = twin_recv(s, iov, iovcnt, 0, total, peek);
	if (n < 0 && n != -EAGAIN && n != -EINTR)
		s->e.rst_seen = true;
	if (n != 0 || CV_FAULT_IF(35))
		return n;
	if (!s->ops->flushed) {
		if (!cv_engine_held(s) || s->e.rst_seen)
			return 0;
		if (unfenced_next(s)) { /* if the link says that it died, what is in the ring follows */
			s->e.twin_ended = true;
			s->ops->changed(s);
			return -EAGAIN;
		}
		s->rx_eof = s->reset_twin = s->e.rst_seen = true;
		return -ECONNRESET;
	}
	s->e.twin_ended = true;
	s->ops->changed(s);
	return -EAGAIN;
}

static CV_COLD ssize_t recv_slow(struct cv_stream *s, const struct iovec *iov, int iovcnt, size_t total, bool peek)
{
	bool again;
	ssize_t n;
	int err;

	if (s->rx_state == CV_RAW && !s->rx_eof)
		return (err = cv_stream_error(s, true)) ? -err : raw_recv(s, iov, iovcnt, total, peek);
	if (!total && s->rx_state != CV_RAW)
		return 0;
	do {
		again = false;
		n = s->rx_state == CV_RAW ? -EAGAIN : recv_some(s, iov, iovcnt, total, peek);
		if (s->rx_state == CV_DRAINING && !peek)
			cv_engine_rx_settle(s);
		__atomic_store_n(&s->rx_slow, s->rx_state != CV_RING || s->spill.len || s->e.rx_lim != UINT64_MAX, __ATOMIC_RELAXED);
		if (n != -EAGAIN)
			return n;
		if (s->rx_state == CV_DRAINING && peek)
			cv_engine_rx_settle(s);
		err = cv_stream_error(s, true);
		if (err)
			return -err;
		if (s->rx_state == CV_RAW)
			return s->rx_eof ? 0 : CV_USE_TWIN;
		if (s->rx_state == CV_RING)
			n = ring_end(s, &again);
	} while (again);
	return n;
}

ssize_t cv_stream_recv(struct cv_stream *s, const struct iovec *iov, int iovcnt, size_t total, bool peek)
{
	uint64_t held = 0, n;

	if (likely(!__atomic_load_n(&s->rx_slow, __ATOMIC_RELAXED) && iovcnt == 1 && !peek)) {
		n = cv_ring_get_flat(&s->rx, iov->iov_base, total, &held);
		if (likely(n)) {
			s->ops->credit(s, maybe_blocked(&s->rx, held));
			return (ssize_t)n;
		}
	}
	return recv_slow(s, iov, iovcnt, total, peek);
}

/* ---- readiness ----------------------------------------------------------------------------------------------------------------- */

static uint32_t poll_rx(struct cv_stream *s, uint32_t *twin, bool *ended)
{
	uint32_t end = 0, bits = s->spill.len ? EPOLLIN : 0;
	uint64_t there;

	*ended = false;
	if (s->rx_state == CV_RAW) {
		*ended = s->rx_eof;
		if (!s->rx_eof && !(s->e.twin_ended && (s->phase == CV_PH_OPENING || s->phase == CV_PH_SWITCHING))) /* see raw_recv() */
			*twin |= EPOLLIN | EPOLLRDHUP | EPOLLPRI | EPOLLHUP | EPOLLERR;
		return s->rx_eof ? EPOLLIN | EPOLLRDHUP : 0;
	}
	if (s->rx_state == CV_FROZEN) {
		*twin |= s->e.rx_wait == CV_WAIT_UPTO && !bits ? EPOLLIN : 0;
		return bits;
	}
	if (s->e.proven && (there = cv_ring_readable_hint(&s->rx)) && s->rx.head < s->e.rx_lim)
		bits |= EPOLLIN;
	if (s->rx_state == CV_RING && s->e.rx_lim)
		end = atomic_load_explicit(&s->rx.w->end, memory_order_acquire);
	if (end & (CV_END_FIN | CV_END_RST)) { /* RDHUP as the kernel: when the FIN has come, not when it is reached */
		*ended = true;
		bits |= CV_FAULT_IF(41) ? 0 : EPOLLRDHUP;
		if (!(bits & EPOLLIN))
			bits |= atomic_load_explicit(&s->rx.w->tail, memory_order_acquire) == s->rx.head && !CV_FAULT_IF(41) ? EPOLLIN : 0;
		if (end & CV_END_RST)
			bits |= EPOLLHUP | (s->e.rst_seen ? 0 : EPOLLERR);
	}
	if (s->e.rx_wait == CV_WAIT_END) {
		*ended = true;
		bits |= EPOLLIN | EPOLLRDHUP;
	} else if (s->e.rx_wait == CV_WAIT_DONE && !bits) {
		if (s->e.rx_fin && !s->e.owed)
			bits |= EPOLLIN | EPOLLRDHUP;
		else
			*twin |= EPOLLIN | EPOLLRDHUP | EPOLLERR;
	}
	return bits;
}

static uint32_t poll_tx(struct cv_stream *s, uint32_t *twin)
{
	uint64_t head;

	if (s->tx_dead || (s->tx_shut && s->tx_state != CV_RAW) || (atomic_load_explicit(&s->ended, memory_order_relaxed) & CV_END_RST))
		return EPOLLOUT;
	switch (s->tx_state) {
	case CV_RAW:
		*twin |= EPOLLOUT | EPOLLHUP | EPOLLERR;
		return 0;
	case CV_FROZEN:
		return cv_engine_waiting(s) < s->lim.ring_max ? EPOLLOUT : 0;
	case CV_RING:
		if (atomic_load_explicit(&s->ended, memory_order_relaxed)) {
			*twin |= EPOLLOUT;
			return 0;
		}
		head = atomic_load_explicit(&s->tx.r->head, memory_order_relaxed);
		return cv_ring_room_hint(&s->tx) || next_size(s, head, 1, false) ? EPOLLOUT : 0;
	default:
		return 0;
	}
}

uint32_t cv_stream_poll(struct cv_stream *s, uint32_t *twin)
{
	bool rx_ended;
	uint32_t bits;

	*twin = 0;
	bits = poll_rx(s, twin, &rx_ended);
	bits |= poll_tx(s, twin);
	if (rx_ended && (s->tx_shut || s->tx_dead))
		bits |= EPOLLHUP;
	if (atomic_load_explicit(&s->err, memory_order_relaxed) || atomic_load_explicit(&s->fault, memory_order_relaxed))
		bits |= EPOLLERR | EPOLLIN | EPOLLOUT;
	return bits;
}

uint64_t cv_stream_inq(struct cv_stream *s)
{
	uint64_t ring = 0;

	if (s->e.proven && (s->rx_state == CV_RING || s->rx_state == CV_DRAINING) && s->rx.head < s->e.rx_lim)
		ring = cv_min_u64(cv_ring_readable_hint(&s->rx), s->e.rx_lim - s->rx.head);
	return s->spill.len + ring;
}

uint64_t cv_stream_outq(struct cv_stream *s)
{
	uint64_t n = s->stage.len + s->e.back.len, head;

	if (s->tx_state == CV_RAW)
		return n;
	head = atomic_load_explicit(&s->tx.r->head, memory_order_relaxed);
	return n + (head <= s->tx.tail ? s->tx.tail - head : 0);
}

uint64_t cv_stream_raw_left(struct cv_stream *s)
{
	uint64_t read, written;

	if (s->rx_state == CV_RAW)
		return UINT64_MAX;
	if (s->rx_state != CV_FROZEN || s->e.rx_wait != CV_WAIT_UPTO || s->ops->twin_offsets(s, &read, &written) || read > s->e.rx_n)
		return 0;
	return s->e.rx_n - read;
}
