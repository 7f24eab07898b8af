/* SPDX-License-Identifier: Apache-2.0 */
/* Simulated TCP: bounded buffers, any split, FIN and RST in order, a RST for data that meets a closed descriptor. Rules as Linux has them. */
#ifndef SIM_TCP_H
#define SIM_TCP_H

#include "world.h"

static void link_sync(int x); /* shm: what the peer did before a byte of the twin is visible with it */

static uint64_t tcp_window(const struct pipe *p)
{
	uint64_t in = p->sent - p->read;

	return in < p->rcv_cap ? p->rcv_cap - in : 0;
}

/* Move up to n bytes from the send buffer onto the wire. */
static bool tcp_transmit(int x, uint64_t n)
{
	struct pipe *p = &W.pipe[x];

	n = cv_min_u64(cv_min_u64(n, p->written - p->sent), tcp_window(p));
	p->sent += n;
	if (p->sent == p->written && p->fin && !p->fin_sent && !p->rst) {
		p->fin_sent = true;
		return true;
	}
	return n > 0;
}

static void tcp_reset(int x) /* side x sends a RST: what the window takes has gone before */
{
	struct pipe *p = &W.pipe[x];

	if (W.side[x].dead)
		return;
	tcp_transmit(x, UINT64_MAX);
	p->rst = true;
	p->written = p->sent;
	W.side[x].dead = true;
}

/* Up to n bytes from side x come to the other side. */
static bool tcp_arrive(int x, uint64_t n)
{
	struct pipe *p = &W.pipe[x];
	struct side *to = &W.side[!x];

	n = cv_min_u64(n, p->sent - p->arrived);
	if (to->dead && !p->rst && n) {
		p->arrived += n;
		p->read = p->arrived; /* meets nobody; a dead end answers with a RST */
		if (!W.pipe[!x].rst)
			W.pipe[!x].rst = true;
		return true;
	}
	p->arrived += n;
	if (to->closed && n) {
		p->read = p->arrived;
		tcp_reset(!x);
		return true;
	}
	if (p->arrived == p->sent && p->fin_sent && !p->fin_arrived) {
		p->fin_arrived = true;
		return true;
	}
	if (p->arrived == p->sent && p->rst && !p->rst_arrived) {
		p->rst_arrived = true;
		if (!to->dead) {
			to->err = p->fin_arrived ? EPIPE : ECONNRESET;
			to->dead = true;
			W.pipe[!x].written = W.pipe[!x].sent;
		}
		return true;
	}
	return n > 0;
}

static ssize_t k_send(int x, const void *buf, size_t len)
{
	struct side *me = &W.side[x];
	struct pipe *p = &W.pipe[x];
	uint64_t room;

	if (me->err) {
		int e = me->err;

		me->err = 0;
		return -e;
	}
	if (me->dead || me->shut || me->closed)
		return -EPIPE;
	room = p->snd_cap - cv_min_u64(p->snd_cap, p->written - p->sent);
	len = (size_t)cv_min_u64(len, room);
	if (!len)
		return -EAGAIN;
	if (len > 1 && !W.fair && chance(64))
		len = 1 + (size_t)rnd_below(len);
	for (size_t i = 0; i < len; i++)
		p->buf[(p->written + i) % PIPE] = ((const uint8_t *)buf)[i];
	p->written += len;
	return (ssize_t)len;
}

static ssize_t k_recv(int x, void *buf, size_t len, bool peek)
{
	struct side *me = &W.side[x];
	struct pipe *p = &W.pipe[!x];
	uint64_t n = cv_min_u64(len, p->arrived - p->read);

	if (!W.rdma && (n || p->fin_arrived || p->rst_arrived))
		link_sync(x);
	if (n) {
		for (uint64_t i = 0; i < n; i++)
			((uint8_t *)buf)[i] = p->buf[(p->read + i) % PIPE];
		if (!peek)
			p->read += n;
		return (ssize_t)n;
	}
	if (p->fin_arrived) /* SOCK_DONE comes before sk_err */
		return 0;
	if (me->err) {
		int e = me->err;

		me->err = 0;
		return -e;
	}
	return me->dead ? 0 : -EAGAIN;
}

static uint32_t k_poll(int x)
{
	struct side *me = &W.side[x];
	struct pipe *in = &W.pipe[!x], *out = &W.pipe[x];
	uint32_t bits = 0;

	if (in->arrived > in->read || in->fin_arrived || me->dead)
		bits |= EPOLLIN;
	if (in->fin_arrived || me->dead)
		bits |= EPOLLRDHUP;
	if (me->dead || me->shut || out->written - out->sent < out->snd_cap)
		bits |= EPOLLOUT;
	if (me->dead || (me->shut && in->fin_arrived))
		bits |= EPOLLHUP;
	if (me->err)
		bits |= EPOLLERR;
	return bits;
}

static void k_shut(int x)
{
	W.side[x].shut = true;
	if (!W.side[x].dead)
		W.pipe[x].fin = true;
}

static void k_close(int x, bool reset)
{
	struct side *me = &W.side[x];
	struct pipe *in = &W.pipe[!x];

	if (me->closed)
		return;
	TRACE("  %d: twin closed%s\n", x, reset ? " with RST" : "");
	if (reset || in->arrived > in->read)
		tcp_reset(x);
	else
		k_shut(x);
	in->read = in->arrived;
	me->closed = true;
}

static ssize_t op_twin_send(struct cv_stream *s, const void *buf, size_t len)
{
	return k_send(SIDE(s), buf, len);
}

static ssize_t op_twin_recv(struct cv_stream *s, void *buf, size_t len, bool peek)
{
	return k_recv(SIDE(s), buf, len, peek);
}

static int op_twin_offsets(struct cv_stream *s, uint64_t *read, uint64_t *written)
{
	int x = SIDE(s);

	*read = W.pipe[!x].read;
	*written = W.pipe[x].written;
	return 0;
}

static bool op_twin_alive(struct cv_stream *s)
{
	struct side *me = &W.side[SIDE(s)];

	return !me->dead && !me->shut && !me->closed;
}

static void op_twin_shut(struct cv_stream *s)
{
	TRACE("  %d: twin shut\n", SIDE(s));
	k_shut(SIDE(s));
}

#endif
