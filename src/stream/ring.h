/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One direction of a stream on a link: a byte ring in memory that both sides reach, in up to CV_RING_GENS generations.
 *
 * Offsets count the bytes of one epoch from 0 and never wrap (64 bits). The writer owns `struct cv_ring_w`, the reader `struct cv_ring_r`; each is a cache
 * line of its own, written by one side and UNTRUSTED to the other: read once, bounds-checked, then used. With shm both lie in the segment;
 * with rdma they are local copies that the link keeps up to date.
 *
 * Growth: the writer, finding the ring full, may open a further, larger generation that holds the bytes from offset starts[g-1] on. It writes there at once;
 * the reader follows when it has read up to that offset and its agent has mapped the memory. Nothing is copied, nobody waits for an answer.
 *
 * Callers hold the stream's tx lock (writer) or rx lock (reader).
 */
#ifndef CV_RING_H
#define CV_RING_H

#include "../base/base.h"
#include <string.h>
#include <sys/uio.h>

#define CV_RING_GENS 4

enum { CV_END_FIN = 1, CV_END_RST = 2, CV_END_CLOSED = 4 };

/* HELD: bytes are accepted that are not on the twin, and that the reader may not take from here. TWIN: bytes went to the twin again; its EOF vouches for them,
 * a RST does not. */
enum { CV_WHOLE_RAW, CV_WHOLE_YES, CV_WHOLE_HELD, CV_WHOLE_TWIN };

struct cv_ring_w {
	_Atomic uint64_t tail;			    /* bytes published */
	_Atomic uint64_t starts[CV_RING_GENS - 1];  /* first offset in generation 1, 2, ...; 0 = not opened */
	_Atomic uint32_t end;			    /* CV_END_*: the tail is final; stored after it */
	/* Engine to engine, CV_WHOLE_*: should the writer die, may the reader take the end of what it sees for the end of the stream? */
	_Atomic uint32_t whole;
	_Atomic uint64_t n; /* engine to engine: bytes of the twin that go before the ring's first; stored before `whole` says YES */
	uint32_t pad_[4];
};
_Static_assert(sizeof(struct cv_ring_w) == 64, "one cache line");

struct cv_ring_r {
	_Atomic uint64_t head; /* bytes consumed: the writer's credit */
	uint64_t pad_[7];
};
_Static_assert(sizeof(struct cv_ring_r) == 64, "one cache line");

struct cv_ring_gen {
	uint8_t *base;	/* NULL: not mapped here yet */
	uint64_t size;	/* power of two */
	uint64_t start; /* offset of the byte at base[0] */
};

struct cv_ring {
	struct cv_ring_gen gen[CV_RING_GENS];
	uint8_t gens;  /* generations known here */
	uint8_t first; /* reader: the one that head is in; writer: the oldest with unconsumed bytes */
	uint64_t tail; /* writer: written (published once ops->publish ran); reader: last valid tail seen */
	uint64_t head; /* reader: consumed; writer: last valid credit seen */
	struct cv_ring_w *w;
	struct cv_ring_r *r;
};

/* Writer: how many bytes fit now. Re-reads the credit only when the cached one does not suffice for `want`. -EPROTO: the peer's credit is
 * nonsense. */
int64_t cv_ring_space(struct cv_ring *g, uint64_t want);
/* Writer: copy up to `len` bytes of the iovec, from its byte `skip` on, as far as space goes; moves g->tail but does not publish. Number copied, or -EPROTO. */
int64_t cv_ring_put(struct cv_ring *g, const struct iovec *iov, int iovcnt, uint64_t skip, uint64_t len);
/* Writer: open a further generation of `size` bytes (a power of two) at `base`, beginning at the present tail, which is not 0. 0, -EINVAL, or -ENOSPC. */
int cv_ring_open_gen(struct cv_ring *g, uint8_t *base, uint64_t size);
/* Writer: the unconsumed bytes from offset `from`, contiguous part: sets *p and returns its length; 0 when from == tail. */
uint64_t cv_ring_peek_back(const struct cv_ring *g, uint64_t from, const uint8_t **p);

/* Reader: bytes that can be read now without a further message (0 also when the next generation is not mapped yet), or -EPROTO. */
int64_t cv_ring_readable(struct cv_ring *g);
/* Reader: copy out up to the iovec's size, at most `max` bytes; moves g->head (unless peek) but returns no credit. Number copied, or -EPROTO. */
int64_t cv_ring_get(struct cv_ring *g, const struct iovec *iov, int iovcnt, uint64_t max, bool peek);
/* Likewise, into the iovec from its byte `skip` on. */
int64_t cv_ring_get_at(struct cv_ring *g, const struct iovec *iov, int iovcnt, uint64_t skip, uint64_t max, bool peek);
/* Reader: a generation announced by the peer has been mapped. -EPROTO: it does not fit what is known. */
int cv_ring_add_gen(struct cv_ring *g, unsigned index, uint8_t *base, uint64_t size, uint64_t start);

/* Both as a hint, changing nothing, for whoever holds no lock: room in the newest generation, readable bytes; 0 for nonsense. */
uint64_t cv_ring_room_hint(const struct cv_ring *g);
uint64_t cv_ring_readable_hint(const struct cv_ring *g);

/* Writer, hot path: the room by the credit seen last. Never more than there is. */
static inline uint64_t cv_ring_room(const struct cv_ring *g)
{
	const struct cv_ring_gen *n = &g->gen[g->gens - 1];

	return n->size - (g->tail - (g->head > n->start ? g->head : n->start));
}

/* Writer, hot path: copy `len` bytes, for which there is room. */
static inline void cv_ring_put_flat(struct cv_ring *g, const void *buf, uint64_t len)
{
	const struct cv_ring_gen *n = &g->gen[g->gens - 1];
	uint64_t at = (g->tail - n->start) & (n->size - 1), first = n->size - at;

	if (likely(len <= first)) {
		memcpy(n->base + at, buf, len);
	} else {
		memcpy(n->base + at, buf, first);
		memcpy(n->base, (const uint8_t *)buf + first, len - first);
	}
	g->tail += len;
}

/* Reader, hot path: copy out up to `len` bytes if all that is there lies in the present generation. Number copied; 0: nothing, or ask cv_ring_get(). *held is
 * what was unread before. Reads each of the peer's words once. Partner: the link's publish (tail, release) after the copy and `starts`. */
static inline uint64_t cv_ring_get_flat(struct cv_ring *g, void *buf, uint64_t len, uint64_t *held)
{
	const struct cv_ring_gen *n = &g->gen[g->first];
	uint64_t tail = atomic_load_explicit(&g->w->tail, memory_order_acquire);
	uint64_t next = g->first < CV_RING_GENS - 1 ? atomic_load_explicit(&g->w->starts[g->first], memory_order_relaxed) : 0;
	uint64_t n_unread = tail - g->head, at = (g->head - n->start) & (n->size - 1);

	if (unlikely(next || tail < g->tail || n_unread > n->size || !n_unread))
		return 0;
	g->tail = tail;
	*held = n_unread;
	len = cv_min_u64(len, n_unread);
	if (likely(len <= n->size - at)) {
		memcpy(buf, n->base + at, len);
	} else {
		memcpy(buf, n->base + at, n->size - at);
		memcpy((uint8_t *)buf + (n->size - at), n->base, len - (n->size - at));
	}
	g->head += len;
	return len;
}

#endif
