/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A connection that died, whose addresses are this one's now, and whose socket still waits to be read in the same process as one side: it offers itself to the
 * other. Its twin is gone. Sooner or later it is closed.
 */
#ifndef SIM_GHOST_H
#define SIM_GHOST_H

#include "link.h"

static struct side *ghost_victim(void)
{
	return &W.side[W.ghost_victim];
}

static ssize_t ghost_send(struct cv_stream *s, const void *buf, size_t len)
{
	(void)s, (void)buf, (void)len;
	return -EPIPE;
}

static ssize_t ghost_recv(struct cv_stream *s, void *buf, size_t len, bool peek)
{
	(void)s, (void)buf, (void)len, (void)peek;
	return -ECONNRESET;
}

static int ghost_offsets(struct cv_stream *s, uint64_t *read, uint64_t *written)
{
	(void)s;
	*read = *written = 0;
	return 0;
}

static bool ghost_alive(struct cv_stream *s)
{
	(void)s;
	return false;
}

static void ghost_nothing(struct cv_stream *s)
{
	(void)s;
}

static int ghost_msg(struct cv_stream *s, const struct cv_msg *m)
{
	struct side *to = ghost_victim();

	(void)s;
	TRACE("  ghost: sends %u epoch %u\n", m->type, m->epoch);
	if (to->q_tail - to->q_head == MSGS)
		fail("message queue is full");
	to->q[to->q_tail++ % MSGS] = (struct packet){.slot = W.ghost.slot, .link = W.link, .msg = *m};
	return 0;
}

static void ghost_publish(struct cv_stream *s, uint32_t end)
{
	(void)s, (void)end;
}

static void ghost_credit(struct cv_stream *s, bool fenced)
{
	(void)s, (void)fenced;
}

static int ghost_grow(struct cv_stream *s, uint64_t size, uint8_t **base, uint64_t *got)
{
	(void)s, (void)size, (void)base, (void)got;
	return -ENOMEM;
}

static const struct cv_stream_ops ghost_ops = {.twin_send = ghost_send, .twin_recv = ghost_recv, .twin_offsets = ghost_offsets,
					       .twin_alive = ghost_alive, .twin_shut_wr = ghost_nothing, .msg = ghost_msg,
					       .publish = ghost_publish, .credit = ghost_credit, .grow = ghost_grow,
					       .changed = ghost_nothing, .random = op_random, .alloc = op_alloc, .free = op_free};

/* It offers itself to side x. */
static void ghost_rise(int x)
{
	struct side *me = &W.side[x];
	int slot;

	if (W.ghost.slot >= 0 || me->slot >= 0 || me->app_closed || me->foreign || me->killed || !link_alive(me) || !link_alive(&W.side[!x]))
		return;
	slot = slot_make();
	if (slot < 0)
		return;
	TRACE(" ghost offers itself to %d in slot %d\n", x, slot);
	W.ghost_victim = x;
	memset(&W.ghost, 0, sizeof(W.ghost));
	cv_stream_init(&W.ghost.s, &ghost_ops, &W.lim);
	W.ghost.s.epoch = me->s.epoch; /* both may have switched as often */
	slot_attach(&W.ghost, slot, !x);
	cv_stream_open(&W.ghost.s, identity);
}

static void ghost_gone(void)
{
	W.slot[W.ghost.slot].used[!W.ghost_victim] = false;
	cv_stream_fini(&W.ghost.s);
	W.ghost.slot = -1;
}

/* True when it did something. */
static bool ghost_step(void)
{
	struct side *g = &W.ghost;
	struct packet p;
	bool reset;

	if (g->slot < 0)
		return false;
	if (!link_alive(ghost_victim())) {
		ghost_gone();
		return true;
	}
	if (g->q_head != g->q_tail && chance(200)) {
		p = g->q[g->q_head++ % MSGS];
		if (p.msg.type != CV_MSG_GROW)
			cv_stream_on_msg(&g->s, &p.msg);
		cv_stream_advance(&g->s);
		return true;
	}
	if (chance(40) && !g->s.closed)
		cv_stream_close(&g->s, chance(128), &reset);
	if (g->s.closed && !cv_stream_busy(&g->s))
		ghost_gone();
	return true;
}

#endif
