/* SPDX-License-Identifier: Apache-2.0 */
#include "ring.h"
#include "fault.h"
#include "iov.h"
#include <errno.h>

/* ---- writer -------------------------------------------------------------------------------------------------------------------- */

int64_t cv_ring_space(struct cv_ring *g, uint64_t want)
{
	uint64_t room = cv_ring_room(g), head;

	if (likely(room >= want))
		return (int64_t)room;
	/* Acquire: the reader has copied out what it gives back. Partner: the link's credit (release). */
	head = atomic_load_explicit(&g->r->head, memory_order_acquire);
	if (unlikely(head < g->head || head > g->tail))
		return -EPROTO;
	g->head = head;
	while (g->first + 1 < g->gens && g->gen[g->first + 1].start <= head)
		g->first++;
	return (int64_t)cv_ring_room(g) + (CV_FAULT_IF(2) && head ? 1 : 0);
}

int64_t cv_ring_put(struct cv_ring *g, const struct iovec *iov, int iovcnt, uint64_t skip, uint64_t len)
{
	struct cv_iov c = cv_iov_at(iov, iovcnt, skip);
	int64_t room = cv_ring_space(g, len);
	uint64_t done = 0;
	uint8_t *p;

	if (room < 0)
		return room;
	len = cv_min_u64(len, (uint64_t)room);
	for (size_t n; done < len && (n = cv_iov_piece(&c, len - done, &p)); done += n, c.off += n)
		cv_ring_put_flat(g, p, n);
	return (int64_t)done;
}

int cv_ring_open_gen(struct cv_ring *g, uint8_t *base, uint64_t size)
{
	if (g->gens == CV_RING_GENS)
		return -ENOSPC;
	if (!base || !size || (size & (size - 1)) || !g->tail)
		return -EINVAL;
	g->gen[g->gens] = (struct cv_ring_gen){.base = base, .size = size, .start = g->tail};
	/* Visible before any tail beyond it: the link publishes the tail with release. */
	atomic_store_explicit(&g->w->starts[g->gens - 1], CV_FAULT_IF(3) ? g->tail + 1 : g->tail, memory_order_relaxed);
	g->gens++;
	return 0;
}

uint64_t cv_ring_peek_back(const struct cv_ring *g, uint64_t from, const uint8_t **p)
{
	unsigned i = g->gens - 1u;
	uint64_t end = g->tail, at;

	if (from >= end)
		return 0;
	while (i && g->gen[i].start > from)
		end = CV_FAULT_IF(4) ? end : g->gen[i].start, i--;
	at = (from - g->gen[i].start) & (g->gen[i].size - 1);
	*p = g->gen[i].base + at;
	return cv_min_u64(end - from, g->gen[i].size - at);
}

uint64_t cv_ring_room_hint(const struct cv_ring *g)
{
	const struct cv_ring_gen *n = &g->gen[g->gens - 1];
	uint64_t head = atomic_load_explicit(&g->r->head, memory_order_acquire), from = head > n->start ? head : n->start;

	return g->tail - from > n->size ? 0 : n->size - (g->tail - from);
}

/* ---- reader -------------------------------------------------------------------------------------------------------------------- */

/* What can be read: from head on, one span per generation. `from` and `len` are private copies: memory that the peer can change is not looked at again. */
struct spans {
	int n;
	uint64_t tail, total;
	struct {
		unsigned gen;
		uint64_t from, len;
	} span[CV_RING_GENS];
};

static int spans(const struct cv_ring *g, struct spans *sp)
{
	uint64_t tail = atomic_load_explicit(&g->w->tail, memory_order_acquire), at = g->head;

	if (tail < g->tail)
		return -EPROTO;
	sp->n = 0;
	sp->tail = tail;
	sp->total = 0;
	for (unsigned i = g->first; i < g->gens; i++) {
		uint64_t next = i < CV_RING_GENS - 1 ? atomic_load_explicit(&g->w->starts[i], memory_order_relaxed) : 0;
		uint64_t end;

		if (i + 1u < g->gens) { /* the GROW message may be ahead of the line */
			if (next && next != g->gen[i + 1].start)
				return -EPROTO;
			next = g->gen[i + 1].start;
		}
		if (next && next < at)
			return -EPROTO;
		end = next ? cv_min_u64(tail, next) : tail;
		if (CV_FAULT_IF(5) && i + 1u < g->gens)
			end = tail;
		if (end - at > g->gen[i].size)
			return -EPROTO;
		if (end != at) {
			sp->span[sp->n].gen = i;
			sp->span[sp->n].from = at;
			sp->span[sp->n++].len = end - at;
		}
		sp->total += end - at;
		at = end;
		if (at == tail && at != next)
			break;
	}
	return 0;
}

int64_t cv_ring_readable(struct cv_ring *g)
{
	struct spans sp;
	int err = spans(g, &sp);

	if (err)
		return err;
	g->tail = sp.tail;
	return (int64_t)sp.total;
}

uint64_t cv_ring_readable_hint(const struct cv_ring *g)
{
	struct spans sp;

	return spans(g, &sp) ? 0 : sp.total;
}

static uint64_t span_get(const struct cv_ring_gen *n, struct cv_iov *c, uint64_t from, uint64_t len)
{
	uint64_t at = (from - n->start) & (n->size - 1), first = cv_min_u64(len, n->size - at), done;

	done = cv_iov_to(c, n->base + at, first);
	if (done == first && first < len)
		done += cv_iov_to(c, n->base, len - first);
	return done;
}

int64_t cv_ring_get_at(struct cv_ring *g, const struct iovec *iov, int iovcnt, uint64_t skip, uint64_t max, bool peek)
{
	struct cv_iov c = cv_iov_at(iov, iovcnt, skip);
	struct spans sp;
	uint64_t done = 0;
	int err = spans(g, &sp);

	if (err)
		return err;
	g->tail = sp.tail;
	for (int i = 0; i < sp.n && done < max; i++) {
		uint64_t len = cv_min_u64(sp.span[i].len, max - done), n = span_get(&g->gen[sp.span[i].gen], &c, sp.span[i].from, len);

		done += n;
		if (n < len)
			break;
	}
	if (peek && !CV_FAULT_IF(1))
		return (int64_t)done;
	g->head += done;
	while (g->first + 1 < g->gens && g->gen[g->first + 1].start <= g->head)
		g->first++;
	return (int64_t)done;
}

int64_t cv_ring_get(struct cv_ring *g, const struct iovec *iov, int iovcnt, uint64_t max, bool peek)
{
	return cv_ring_get_at(g, iov, iovcnt, 0, max, peek);
}

int cv_ring_add_gen(struct cv_ring *g, unsigned index, uint8_t *base, uint64_t size, uint64_t start)
{
	if (index != g->gens || index >= CV_RING_GENS || !base || !size || (size & (size - 1)))
		return -EPROTO;
	if (!start || start < g->head || start < g->gen[index - 1].start)
		return -EPROTO;
	g->gen[index] = (struct cv_ring_gen){.base = base, .size = size, .start = start};
	g->gens++;
	while (g->first + 1 < g->gens && g->gen[g->first + 1].start <= g->head)
		g->first++;
	return 0;
}
