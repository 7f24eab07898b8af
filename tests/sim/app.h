/* SPDX-License-Identifier: Apache-2.0 */
/* The two applications, and what they must see: every byte in order; EOF only at the end of what a peer that ended has sent; errors only with a cause. */
#ifndef SIM_APP_H
#define SIM_APP_H

#include "world.h"

/* May side x see its connection reset? */
static void check_reset(int x, const char *what, ssize_t err)
{
	struct side *me = &W.side[x], *peer = &W.side[!x];

	if (W.chaos_reset || peer->app_aborted || me->app_aborted)
		return;
	if (peer->killed && peer->clean_kill && me->sent == peer->got)
		fail("side %d: %s gives %zd though the peer died with all read and all sent", x, what, err);
	if (peer->killed && peer->frozen_kill && me->sent == peer->peer_sent_at_kill && me->got < peer->sent)
		fail("side %d: %s gives %zd after %lu of %lu bytes, which the peer that died FROZEN had in its ring", x, what, err, (unsigned long)me->got,
		     (unsigned long)peer->sent);
	if (peer->killed)
		return;
	if (peer->app_closed && (me->sent > peer->got_at_end || peer->unread_close))
		return;
	if (W.rdma && W.link_died)
		return;
	if (peer->app_closed && W.link_died && peer->s.tx.gens > me->s.rx.gens)
		return; /* bytes in a generation whose announcement died with the link, and whose writer has gone */
	fail("side %d: %s gives %zd without a cause", x, what, err);
}

static void check_bytes(int x, const uint8_t *buf, size_t n, uint64_t off)
{
	if (off + n > W.side[!x].sent)
		fail("side %d: bytes up to %lu, but only %lu were sent", x, (unsigned long)(off + n), (unsigned long)W.side[!x].sent);
	if (memcmp(buf, bytes_of(!x, off), n) != 0) {
		size_t i = 0;

		while (buf[i] == bytes_of(!x, off)[i])
			i++;
		fail("side %d: wrong byte at %lu", x, (unsigned long)(off + i));
	}
}

static void check_eof(int x)
{
	struct side *me = &W.side[x], *peer = &W.side[!x];

	if (!peer->app_shut && !peer->app_closed && !peer->killed && !me->reset)
		fail("side %d: EOF, but the peer has not ended", x);
	if (peer->unread_close && !peer->app_shut && !me->reset && !W.chaos_reset)
		fail("side %d: EOF, but the peer closed with bytes unread", x);
	if (me->got == peer->sent || me->reset || W.chaos_reset)
		return;
	if (peer->killed && (W.flushing_kill || me->s.handover || me->handed || (W.rdma && !me->s.e.proven && unsent(&peer->s)) || (me->called_off && unsent(&peer->s))))
		return; /* killed while its stage went out after an upgrade was called off: the one documented exception */
	fail("side %d: EOF after %lu of %lu bytes", x, (unsigned long)me->got, (unsigned long)peer->sent);
}

static unsigned split(struct iovec *v, uint8_t *buf, size_t len)
{
	size_t a;

	v[0] = (struct iovec){.iov_base = buf, .iov_len = len};
	if (len < 2 || !chance(64))
		return 1;
	a = 1 + (size_t)rnd_below(len - 1);
	v[0].iov_len = a;
	v[1] = (struct iovec){.iov_base = buf + a, .iov_len = len - a};
	return 2;
}

static bool capacity_left(const struct cv_stream *s)
{
	uint64_t head = atomic_load_explicit(&s->tx.r->head, memory_order_relaxed);

	if (s->tx_state == CV_FROZEN)
		return cv_engine_waiting(s) < s->lim.ring_max;
	return s->tx_state == CV_RING && !s->e.grow_failed && !s->e.link_dead && s->tx.tail - head < s->lim.ring_max &&
	       s->tx.gen[s->tx.gens - 1].size < s->lim.ring_max && s->tx.tail > 0;
}

static bool app_send(int x)
{
	struct side *me = &W.side[x];
	struct cv_stream *s = &me->s;
	size_t len = (size_t)cv_min_u64(me->to_send - me->sent, 1 + rnd_below(chance(40) ? 3000 : 200));
	struct iovec v[2];
	uint32_t twin = 0, bits = me->foreign ? 0 : cv_stream_poll(s, &twin);
	bool stalled = chance(64), ready;
	ssize_t n = CV_USE_TWIN;
	unsigned cnt;

	if (!len || me->app_shut || me->app_closed || me->gone || (W.fair && me->tx_blocked))
		return false;
	cnt = split(v, (uint8_t *)(uintptr_t)bytes_of(x, me->sent), len);
	ready = me->foreign || (bits & EPOLLOUT) || s->err || ((twin & EPOLLOUT) && (k_poll(x) & (EPOLLOUT | EPOLLERR | EPOLLHUP)));
	if (!me->foreign)
		n = cv_stream_send(s, v, (int)cnt, len, stalled);
	if (n == -EAGAIN && stalled && capacity_left(s))
		fail("side %d: a stalled send is refused with room to grow", x);
	if (n == CV_USE_TWIN)
		n = k_send(x, bytes_of(x, me->sent), len);
	if (n != -EAGAIN)
		TRACE(" %d: send %zu gives %zd (at %lu)\n", x, len, n, (unsigned long)me->sent);
	if (n == -EAGAIN && ready && !me->foreign && !s->e.grow_failed)
		fail("side %d: poll says writable (%x, twin %x), send says not", x, bits, twin);
	if (n != -EAGAIN && !ready && !stalled)
		fail("side %d: poll says not writable, send gives %zd", x, n);
	if (n > 0) {
		me->sent += (uint64_t)n;
		return true;
	}
	if (n == -EAGAIN) {
		/* To sleep: the wish is told with a full fence, then looked again. From then on only a doorbell or a change wakes. */
		if (s->tx_state == CV_RING && !W.rdma && !me->foreign) {
			link_sync(x);
			me->tx_blocked = !(cv_stream_poll(s, &twin) & EPOLLOUT);
		}
		return false;
	}
	if (n == 0)
		fail("side %d: send gives 0", x);
	if (n != -EPIPE && n != -ECONNRESET)
		fail("side %d: send gives %zd", x, n);
	if (n == -EPIPE && !me->reset && !W.side[!x].app_closed && !W.side[!x].killed && !W.chaos_reset)
		fail("side %d: EPIPE, but the peer is there", x);
	if (n == -ECONNRESET) {
		check_reset(x, "send", n);
		me->reset = true;
	}
	me->gone = true;
	return true;
}

static bool app_recv(int x)
{
	static uint8_t buf[4096], again[4096];
	struct side *me = &W.side[x];
	struct cv_stream *s = &me->s;
	size_t len = 1 + (size_t)rnd_below(chance(40) ? sizeof(buf) - 1 : 300);
	bool peek = chance(24), ready;
	struct iovec v[2];
	uint32_t twin = 0, bits = me->foreign ? 0 : cv_stream_poll(s, &twin);
	ssize_t n = CV_USE_TWIN, m;
	unsigned cnt;

	if (me->app_closed || me->eof || (W.fair && me->rx_blocked))
		return false;
	cnt = split(v, buf, len);
	ready = me->foreign || (bits & EPOLLIN) || s->err || ((twin & EPOLLIN) && (k_poll(x) & (EPOLLIN | EPOLLERR)));
	W.raced = false;
	if (!me->foreign)
		n = cv_stream_recv(s, v, (int)cnt, len, peek);
	if (n == CV_USE_TWIN)
		n = k_recv(x, buf, len, peek);
	if (n != -EAGAIN)
		TRACE(" %d: recv %zu%s gives %zd (at %lu)\n", x, len, peek ? " peek" : "", n, (unsigned long)me->got);
	if (n == -EAGAIN && ready && !me->foreign && !s->e.twin_ended && !(s->rx_state == CV_FROZEN && me->news))
		/* else the twin has ended where it should not: for advance() to judge */
		fail("side %d: poll says readable (%x, twin %x), recv says not", x, bits, twin);
	if (n != -EAGAIN && !ready && !W.raced)
		fail("side %d: poll says not readable, recv gives %zd", x, n);
	if (n == -EAGAIN) {
		if (s->rx_state == CV_RING && !me->foreign) {
			if (!W.rdma)
				link_sync(x);
			me->rx_blocked = !(cv_stream_poll(s, &twin) & EPOLLIN);
		}
		return false;
	}
	if (n > 0) {
		check_bytes(x, buf, (size_t)n, me->got);
		if (peek) {
			v[0] = (struct iovec){.iov_base = again, .iov_len = (size_t)n};
			m = me->foreign ? CV_USE_TWIN : cv_stream_recv(s, v, 1, (size_t)n, false);
			if (m == CV_USE_TWIN)
				m = k_recv(x, again, (size_t)n, false);
			if (m <= 0 || memcmp(buf, again, (size_t)m) != 0)
				fail("side %d: peek gave %zd bytes, recv %zd or others", x, n, m);
			n = m;
		}
		me->got += (uint64_t)n;
		return true;
	}
	if (n == 0) {
		check_eof(x);
		me->eof = true;
		return true;
	}
	if (n != -ECONNRESET && n != -EPIPE)
		fail("side %d: recv gives %zd", x, n);
	check_reset(x, "recv", n);
	if (me->reset && !me->gone) /* after a send that took the kernel's own report the engine may tell once more */
		fail("side %d: a second error", x);
	me->reset = true;
	return true;
}

static bool app_shut(int x)
{
	struct side *me = &W.side[x];

	if (me->app_shut || me->app_closed)
		return false;
	TRACE(" %d: shutdown\n", x);
	me->app_shut = true;
	if (me->foreign || cv_stream_shut_wr(&me->s) == CV_USE_TWIN)
		k_shut(x);
	return true;
}

static bool app_close(int x, bool abort)
{
	struct side *me = &W.side[x];
	bool reset = abort, unread;
	int linger = 0;

	if (me->app_closed)
		return false;
	unread = W.pipe[!x].arrived > W.pipe[!x].read && me->s.rx_state == CV_RAW && !me->s.rx_eof;
	if (!me->foreign)
		linger = cv_stream_close(&me->s, abort, &reset);
	TRACE(" %d: close%s: linger %d reset %d\n", x, abort ? " (abort)" : "", linger, reset);
	me->app_closed = true;
	me->app_aborted = abort;
	me->unread_close = (reset || unread) && !me->eof;
	me->got_at_end = me->got;
	me->lingering = linger == 1;
	if (!me->lingering)
		k_close(x, reset);
	return true;
}

#endif
