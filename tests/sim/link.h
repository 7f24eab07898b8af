/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Simulated links: control messages in order, lines and ring bytes that become visible late. shm: memory that both share and that outlives the writer; what the
 * other side did before a byte of the twin is visible with it. rdma: bytes on their way vanish with the link.
 */
#ifndef SIM_LINK_H
#define SIM_LINK_H

#include "world.h"

#define COPY(to, from, field) \
	atomic_store_explicit(&(to).field, atomic_load_explicit(&(from).field, memory_order_relaxed), memory_order_relaxed)

/* Ring bytes [from, to) of a lane reach the reader's own memory. */
static void lane_copy(struct lane *l, uint64_t from, uint64_t to)
{
	while (from < to) {
		unsigned g = l->gens - 1;
		uint64_t n = 1, at;

		while (g && l->start[g] > from)
			g--;
		at = (from - l->start[g]) & (l->size[g] - 1);
		n = cv_min_u64(to - from, l->size[g] - at);
		if (g + 1 < l->gens)
			n = cv_min_u64(n, l->start[g + 1] - from);
		memcpy(l->remote[g] + at, l->mem[g] + at, n);
		from += n;
	}
}

/* The writer's line becomes visible; part: without end and what follows it. */
static bool lane_show_w(struct lane *l, bool part)
{
	bool moved = memcmp(&l->w_real, &l->w_seen, sizeof(l->w_real)) != 0;
	if (!moved)
		return false;
	if (W.rdma)
		lane_copy(l, l->w_seen.tail, l->w_real.tail);
	for (int i = 0; i < CV_RING_GENS - 1; i++)
		COPY(l->w_seen, l->w_real, starts[i]);
	COPY(l->w_seen, l->w_real, tail);
	if (part && l->w_real.whole == l->w_seen.whole)
		return true;
	COPY(l->w_seen, l->w_real, end);
	COPY(l->w_seen, l->w_real, n);
	COPY(l->w_seen, l->w_real, whole);
	return true;
}

static bool lane_show_r(struct lane *l)
{
	if (l->r_real.head == l->r_seen.head)
		return false;
	COPY(l->r_seen, l->r_real, head);
	return true;
}

static bool link_alive(const struct side *me)
{
	return W.link_up && me->link_seen == W.link;
}

static void link_sync(int x)
{
	if (W.side[x].slot < 0)
		return;
	lane_show_w(&W.slot[W.side[x].slot].lane[!x], false);
	lane_show_r(&W.slot[W.side[x].slot].lane[x]);
}

static int op_msg(struct cv_stream *s, const struct cv_msg *m)
{
	static const char *const name[] = {"?", "OPEN", "OPEN_ACK", "NAK", "SWITCH", "SWITCH_ACK", "CANCEL", "GROW"};
	int x = SIDE(s);
	struct side *to = W.ghost.slot >= 0 && W.ghost.slot == W.side[x].slot ? &W.ghost : &W.side[!x];

	if (!link_alive(&W.side[x]) || W.side[x].slot < 0)
		return -EPIPE;
	if (to->q_tail - to->q_head == MSGS)
		fail("message queue is full");
	TRACE("  %d: sends %s epoch %u a %lu b %lu\n", x, name[m->type & 7], m->epoch, (unsigned long)m->a, (unsigned long)m->b);
	to->q[to->q_tail++ % MSGS] = (struct packet){.slot = W.side[x].slot, .link = W.link, .msg = *m};
	return 0;
}

static void op_publish(struct cv_stream *s, uint32_t end)
{
	int x = SIDE(s);
	struct lane *l = &W.slot[W.side[x].slot].lane[x];

	if (W.side[x].slot < 0)
		fail("publish without a slot");
	atomic_store_explicit(&l->w_real.tail, s->tx.tail, memory_order_release);
	if (end)
		atomic_fetch_or_explicit(&l->w_real.end, end, memory_order_release);
	l->w_bell = true;
}

static void op_credit(struct cv_stream *s, bool fenced)
{
	int x = SIDE(s);
	struct lane *l = &W.slot[W.side[x].slot].lane[!x];

	if (W.side[x].slot < 0)
		fail("credit without a slot");
	if (!W.rdma || fenced || s->rx.head - l->r_real.head >= W.ring / 2) /* rdma saves writes, but not so that the writer could starve */
		atomic_store_explicit(&l->r_real.head, s->rx.head, memory_order_release);
	l->r_bell |= fenced;
}

static int op_grow(struct cv_stream *s, uint64_t size, uint8_t **base, uint64_t *got)
{
	int x = SIDE(s);
	struct lane *l = &W.slot[W.side[x].slot].lane[x];

	if (size > GEN_MEM)
		fail("a generation of %lu bytes", (unsigned long)size);
	if (!W.fair && chance(20))
		return -ENOMEM;
	*base = l->mem[l->gens];
	*got = l->size[l->gens] = size;
	l->start[l->gens] = s->tx.tail;
	l->gens++;
	return 0;
}

static void op_changed(struct cv_stream *s)
{
	struct side *me = &W.side[SIDE(s)];

	me->news = true;
	me->tx_blocked = me->rx_blocked = false;
}

static void op_random(struct cv_stream *s, void *buf, size_t len)
{
	(void)s;
	for (size_t i = 0; i < len; i++)
		((uint8_t *)buf)[i] = (uint8_t)rnd();
}

static void *op_alloc(size_t len)
{
	return malloc(len);
}

static void op_free(void *p, size_t len)
{
	(void)len;
	free(p);
}

static bool op_flushed(struct cv_stream *s)
{
	struct lane *l = &W.slot[W.side[SIDE(s)].slot].lane[SIDE(s)];

	return link_alive(&W.side[SIDE(s)]) && memcmp(&l->w_real, &l->w_seen, sizeof(l->w_real)) == 0;
}

#define OPS \
	.twin_send = op_twin_send, .twin_recv = op_twin_recv, .twin_offsets = op_twin_offsets, .twin_alive = op_twin_alive, .twin_shut_wr = op_twin_shut, .msg = op_msg, \
	.publish = op_publish, .credit = op_credit, .grow = op_grow, .changed = op_changed, .random = op_random, .alloc = op_alloc, .free = op_free

static void slot_attach(struct side *me, int slot, int x)
{
	struct slot *sl = &W.slot[slot];
	struct cv_ring *tx = &me->s.tx, *rx = &me->s.rx;

	me->slot = slot;
	sl->used[x] = true;
	memset(tx, 0, sizeof(*tx));
	memset(rx, 0, sizeof(*rx));
	tx->w = &sl->lane[x].w_real;
	tx->r = &sl->lane[x].r_seen;
	rx->w = &sl->lane[!x].w_seen;
	rx->r = &sl->lane[!x].r_real;
	tx->gen[0] = (struct cv_ring_gen){.base = sl->lane[x].mem[0], .size = W.ring};
	rx->gen[0] = (struct cv_ring_gen){.base = W.rdma ? sl->lane[!x].remote[0] : sl->lane[!x].mem[0], .size = W.ring};
	tx->gens = rx->gens = 1;
}

static void attach(int x, int slot)
{
	slot_attach(&W.side[x], slot, x);
}

static bool slot_free(int i)
{
	if (W.slot[i].used[0] || W.slot[i].used[1])
		return false;
	for (int x = 0; x < 2; x++)
		for (unsigned k = W.side[x].q_head; k != W.side[x].q_tail; k++)
			if (W.side[x].q[k % MSGS].slot == i)
				return false;
	return true;
}

/* A stream that is RAW again lets go of its slot. */
static void maybe_detach(int x)
{
	struct side *me = &W.side[x];

	if (me->slot >= 0 && me->s.phase == CV_PH_IDLE && me->s.tx_state == CV_RAW && me->s.rx_state == CV_RAW) {
		W.slot[me->slot].used[x] = false;
		me->slot = -1;
	}
}

/* A free one, made new; -1: none. */
static int slot_make(void)
{
	int slot;

	for (slot = 0; slot < SLOTS && !slot_free(slot); slot++)
		;
	if (slot == SLOTS)
		return -1;
	for (int d = 0; d < 2; d++) {
		struct lane *l = &W.slot[slot].lane[d];

		memset(&l->w_real, 0, sizeof(l->w_real));
		memset(&l->w_seen, 0, sizeof(l->w_seen));
		memset(&l->r_real, 0, sizeof(l->r_real));
		memset(&l->r_seen, 0, sizeof(l->r_seen));
		l->w_bell = l->r_bell = false;
		l->gens = 1;
		l->size[0] = W.ring;
		l->start[0] = 0;
	}
	return slot;
}

static const uint8_t identity[32] = "the segment that both have";

static bool link_open(int x)
{
	struct side *me = &W.side[x];
	int slot;

	if (me->slot >= 0 || me->app_closed || me->foreign || me->killed || me->reset || !link_alive(me) || !link_alive(&W.side[!x]))
		return false;
	slot = slot_make();
	if (slot < 0)
		return false;
	attach(x, slot);
	TRACE("  %d: open in slot %d\n", x, slot);
	if (cv_stream_open(&me->s, identity)) {
		W.slot[slot].used[x] = false;
		me->slot = -1;
		return false;
	}
	W.ups++;
	return true;
}

static void deliver_open(int x, const struct packet *p)
{
	struct side *me = &W.side[x];
	struct cv_msg nak = {.type = CV_MSG_NAK, .epoch = p->msg.epoch, .a = CV_REASON_CONNECTING};
	int err = -EBUSY;

	if (me->slot < 0 && !me->app_closed && !me->foreign) {
		attach(x, p->slot);
		err = cv_stream_accept(&me->s, &p->msg, identity);
		if (err) {
			W.slot[p->slot].used[x] = false;
			me->slot = -1;
		}
	}
	TRACE("  %d: accept gives %d\n", x, err);
	if (!err || !link_alive(me))
		return;
	me = W.ghost.slot == p->slot ? &W.ghost : &W.side[!x];
	me->q[me->q_tail++ % MSGS] = (struct packet){.slot = p->slot, .link = W.link, .msg = nak};
}

/* The next control message for side x. */
static bool deliver(int x)
{
	struct side *me = &W.side[x];
	struct packet p;
	int err;

	if (me->q_head == me->q_tail)
		return false;
	p = me->q[me->q_head++ % MSGS];
	if (me->killed || p.link != me->link_seen)
		return true;
	if (!W.rdma)
		link_sync(x);
	TRACE(" %d: message %u epoch %u in slot %d\n", x, p.msg.type, p.msg.epoch, p.slot);
	if (p.msg.type == CV_MSG_OPEN) {
		deliver_open(x, &p);
		return true;
	}
	if (me->slot >= 0 && me->slot != p.slot && p.msg.type != CV_MSG_GROW && !W.p_ghost && chance(128))
		p.slot = me->slot; /* as if the slot had been used again at once: the epoch must tell (not from a ghost: slots do) */
	if (me->slot != p.slot)
		return true;
	if (p.msg.type == CV_MSG_GROW && p.msg.epoch == me->s.epoch) {
		struct lane *l = &W.slot[p.slot].lane[!x];
		unsigned g = (unsigned)p.msg.a;

		err = cv_ring_add_gen(&me->s.rx, g, W.rdma ? l->remote[g] : l->mem[g], p.msg.c, p.msg.b);
		if (err)
			fail("side %d: add_gen says %d", x, err);
	}
	err = cv_stream_on_msg(&me->s, &p.msg);
	if (err)
		fail("side %d: message %u: %d", x, p.msg.type, err);
	return true;
}

/* Side x learns that the link has ended. */
static void learn_down(int x)
{
	struct side *me = &W.side[x];

	TRACE(" %d: link down\n", x);
	if (W.killed_any && !W.rdma) { /* memory stays: what was said and stored before is still there */
		while (me->q_head != me->q_tail)
			deliver(x);
		link_sync(x);
	}
	if (me->killed)
		return;
	me->q_head = me->q_tail;
	me->link_seen = 0;
	/* The peer may be FROZEN, and nothing tells; or become so before it learns of this, when nobody looks at its line any more. */
	if (me->slot >= 0 && me->s.e.rx_wait == CV_WAIT_RAW && (W.rdma || W.slot[me->slot].lane[!x].w_seen.whole == CV_WHOLE_RAW))
		me->called_off = me->s.epoch;
	if (me->slot >= 0)
		cv_stream_link_down(&me->s, W.killed_any ? CV_REASON_PEER_DEAD : CV_REASON_LINK_DOWN);
}

#endif
