/* SPDX-License-Identifier: Apache-2.0 */
/* The shm link's data path: publish, credit, bells, waits. One screen from send() to the peer's doorbell. */
#include "../base/clock.h"
#include "../observe/stats.h"
#include "shm.h"
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <time.h>

static struct cv_shm_want *mine(const struct cv_stream *s)
{
	return s->port->mine;
}

static struct cv_shm_want *peer(const struct cv_stream *s)
{
	return s->port->peer;
}

static void futex_wake(_Atomic uint32_t *word)
{
	atomic_fetch_add_explicit(word, 1, memory_order_seq_cst);
	cv_sys3(SYS_futex, word, FUTEX_WAKE, INT32_MAX); /* shared: the sleeper may be another process */
}

/* The receiver sleeps in the kernel: write its eventfd. Where that has not reached us yet, its agent's: it forwards. */
static CV_COLD void kick(struct cv_shm_link *l, unsigned bell)
{
	uint64_t one = 1;
	int fd = atomic_load_explicit(&l->peer_fd[bell], memory_order_acquire);

	if (fd < 0) {
		atomic_store_explicit(&l->seg->bell[!l->side][0].armed, 0, memory_order_relaxed);
		fd = atomic_load_explicit(&l->peer_fd[0], memory_order_acquire);
	}
	cv_count(CV_CTR_BELLS, 1);
	/* The peer holds the same open file and may have made it block: a full counter would hold us here for good. */
	if (likely(cv_sys2(SYS_fcntl, fd, F_GETFL) & O_NONBLOCK))
		cv_sys3(SYS_write, fd, &one, sizeof(one));
	else
		cv_shm_breach(&l->link);
}

static uint32_t entry_for(uint32_t pos, unsigned slot)
{
	return (pos / CV_SHM_QUEUE + 1) << CV_SHM_SLOT_BITS | slot;
}

/* A place in the queue, or -1 when it is full. Only this process's threads compete; the line stays here. */
static int64_t reserve(struct cv_shm_bell *b)
{
	uint32_t pos = atomic_load_explicit(&b->tail, memory_order_relaxed);

	do {
		if (unlikely(pos - atomic_load_explicit(&b->head, memory_order_relaxed) >= CV_SHM_QUEUE))
			return -1;
	} while (!atomic_compare_exchange_weak_explicit(&b->tail, &pos, pos + 1, memory_order_relaxed, memory_order_relaxed));
	return pos;
}

static CV_COLD void ring_overflow(struct cv_shm_bell *b, unsigned slot)
{
	atomic_fetch_or_explicit(&b->words[slot / 64], 1ull << (slot % 64), memory_order_seq_cst);
	atomic_fetch_or_explicit(&b->overflow, 1ull << (slot / 64), memory_order_seq_cst);
}

static inline void wake_if_armed(struct cv_shm_link *l, struct cv_shm_bell *b, unsigned bell)
{
	if (unlikely(atomic_load_explicit(&b->armed, memory_order_relaxed)) &&
	    atomic_exchange_explicit(&b->armed, 0, memory_order_seq_cst))
		kick(l, bell);
}

static struct cv_shm_bell *peer_bell(const struct cv_shm_link *l, unsigned *bell)
{
	*bell %= CV_LINK_BELLS;
	return &l->seg->bell[!l->side][*bell];
}

/* Ring outside the fast path. */
static void ring(struct cv_shm_link *l, unsigned bell, unsigned slot)
{
	struct cv_shm_bell *b = peer_bell(l, &bell);
	int64_t pos = reserve(b);

	if (pos >= 0)
		atomic_store_explicit(&b->entry[pos % CV_SHM_QUEUE], entry_for((uint32_t)pos, slot), memory_order_release);
	else
		ring_overflow(b, slot);
	/* Between our entry and our look at `armed`. Partner: shm_bell_arm(). */
	atomic_thread_fence(memory_order_seq_cst);
	wake_if_armed(l, b, bell);
}

static CV_COLD void ring_wanted(struct cv_stream *s, uint32_t want, bool tx)
{
	struct cv_shm_want *p = peer(s);
	uint32_t futex_bit = tx ? CV_WANT_TX_FUTEX : CV_WANT_RX_FUTEX;

	if (want & futex_bit) {
		atomic_fetch_and_explicit(&p->want, ~futex_bit, memory_order_relaxed);
		cv_count(CV_CTR_BELLS, 1);
		futex_wake(tx ? &p->tx_seq : &p->rx_seq);
	}
	if (tx && (want & CV_WANT_TX_BELL)) {
		atomic_fetch_and_explicit(&p->want, ~(uint32_t)CV_WANT_TX_BELL, memory_order_relaxed);
		ring(cv_shm_of(s->port->link), atomic_load_explicit(&p->bell, memory_order_relaxed), s->port->slot);
	}
}

/*
 * Make the new tail visible, ring, then look whether the reader sleeps or has changed its wish. The reader stores its wish (or `armed`), then looks at the tail
 * (or the queue); we store tail and entry, then look at its wish and at `armed`. Without the one full fence between, both could see the old values and the reader
 * would sleep on data. Partners: shm_want(), shm_wait_begin(), shm_bell_arm(). The place in the queue is taken before the stores, whose lines the
 * reader is polling, so that only the fence waits for them.
 */
static void shm_publish(struct cv_stream *s, uint32_t end)
{
	struct cv_shm_want *p = peer(s);
	struct cv_shm_link *l = cv_shm_of(s->port->link);
	uint32_t want = atomic_load_explicit(&p->want, memory_order_relaxed), now;
	unsigned bell = atomic_load_explicit(&p->bell, memory_order_relaxed);
	struct cv_shm_bell *b = peer_bell(l, &bell);
	int64_t pos = -1;

	if (likely(want & CV_WANT_RX_BELL))
		pos = reserve(b);
	atomic_store_explicit(&s->tx.w->tail, s->tx.tail, memory_order_release);
	if (unlikely(end))
		atomic_fetch_or_explicit(&s->tx.w->end, end, memory_order_release);
	if (likely(pos >= 0))
		atomic_store_explicit(&b->entry[pos % CV_SHM_QUEUE], entry_for((uint32_t)pos, s->port->slot), memory_order_release);
	atomic_thread_fence(memory_order_seq_cst);
	if (likely(pos >= 0))
		wake_if_armed(l, b, bell);
	now = atomic_load_explicit(&p->want, memory_order_relaxed);
	/* The wish came meanwhile, another bell took over, or the queue is full. */
	if (unlikely((now & CV_WANT_RX_BELL) && (pos < 0 || atomic_load_explicit(&p->bell, memory_order_relaxed) % CV_LINK_BELLS != bell)))
		ring(l, atomic_load_explicit(&p->bell, memory_order_relaxed), s->port->slot);
	if (unlikely(now & CV_WANT_RX_FUTEX))
		ring_wanted(s, now, false);
}

static void shm_credit(struct cv_stream *s, bool fenced)
{
	if (likely(!fenced)) {
		atomic_store_explicit(&s->rx.r->head, s->rx.head, memory_order_release);
		return;
	}
	atomic_exchange_explicit(&s->rx.r->head, s->rx.head, memory_order_seq_cst);

	uint32_t want = atomic_load_explicit(&peer(s)->want, memory_order_relaxed);

	if (unlikely(want & (CV_WANT_TX_BELL | CV_WANT_TX_FUTEX)))
		ring_wanted(s, want, true);
}

/* ---- bells that we receive on -------------------------------------------------------------------------------------------------- */

static struct cv_shm_bell *board(const struct cv_bell *b)
{
	struct cv_shm_link *l = cv_shm_of(b->link);

	return &l->seg->bell[l->side][b->index];
}

static struct cv_bell *shm_bell_open(struct cv_link *link, void *owner)
{
	struct cv_shm_link *l = cv_shm_of(link);
	struct cv_bell *b = NULL;
	int fd = cv_fd_new(SYS_eventfd2, 0, O_CLOEXEC | O_NONBLOCK, 0, 0);

	if (fd < 0)
		return NULL;
	cv_lock(&l->lock);
	for (unsigned i = 1; l->link.up && i < CV_LINK_BELLS && !b; i++)
		if (!l->bells[i].owner)
			b = &l->bells[i];
	if (b)
		*b = (struct cv_bell){.link = link, .index = (unsigned)(b - l->bells), .fd = fd, .owner = owner};
	cv_unlock(&l->lock);
	if (!b) {
		cv_fd_close(fd);
		return NULL;
	}
	/* Armed from the start: its owner may be asleep in the kernel already. */
	atomic_store_explicit(&board(b)->armed, 1, memory_order_seq_cst);

	struct cv_shm_pkt p = {.kind = CV_PKT_BELL, .slot = b->index};

	cv_shm_send(l, &p, fd); /* a dead link ends everything anyway */
	return b;
}

static void shm_bell_close(struct cv_bell *b)
{
	struct cv_shm_link *l = cv_shm_of(b->link);
	int fd = b->fd;

	cv_lock(&l->lock);
	b->owner = NULL;
	b->fd = -1;
	cv_unlock(&l->lock);
	cv_fd_close(fd);
	if (!l->link.up)
		cv_shm_reap(l);
}

/* Only the holder of the domain's lock drains; others may look. */
static bool queued(const struct cv_bell *b, uint32_t head)
{
	uint32_t e = atomic_load_explicit(&board(b)->entry[head % CV_SHM_QUEUE], memory_order_acquire);

	return e >> CV_SHM_SLOT_BITS == entry_for(head, 0) >> CV_SHM_SLOT_BITS;
}

static bool shm_bell_pending(const struct cv_bell *b)
{
	struct cv_shm_link *l = cv_shm_of(b->link);

	return queued(b, atomic_load_explicit(&l->taken[b->index], memory_order_relaxed)) ||
	       atomic_load_explicit(&board(b)->overflow, memory_order_relaxed) != 0;
}

static unsigned deliver(struct cv_shm_link *l, unsigned slot, cv_bell_fn fn, void *arg)
{
	struct cv_stream *s = slot < l->slots ? atomic_load_explicit(&l->streams[slot], memory_order_acquire) : NULL;

	if (unlikely(!s)) /* a late or a false ring */
		return 0;
	fn(arg, s);
	return 1;
}

static CV_COLD unsigned drain_overflow(struct cv_bell *b, cv_bell_fn fn, void *arg)
{
	struct cv_shm_bell *bd = board(b);
	uint64_t words = atomic_exchange_explicit(&bd->overflow, 0, memory_order_seq_cst);
	unsigned taken = 0;

	for (; words; words &= words - 1) {
		unsigned w = (unsigned)__builtin_ctzll(words);
		uint64_t bits = atomic_exchange_explicit(&bd->words[w], 0, memory_order_seq_cst);

		for (; bits; bits &= bits - 1)
			taken += deliver(cv_shm_of(b->link), w * 64 + (unsigned)__builtin_ctzll(bits), fn, arg);
	}
	return taken;
}

static unsigned shm_bell_drain(struct cv_bell *b, cv_bell_fn fn, void *arg)
{
	struct cv_shm_link *l = cv_shm_of(b->link);
	struct cv_shm_bell *bd = board(b);
	uint32_t head = atomic_load_explicit(&l->taken[b->index], memory_order_relaxed), first = head;
	unsigned taken = 0;

	/* At most a lap at a time: a peer that rings without end must not hold us here. */
	while (head - first < CV_SHM_QUEUE && queued(b, head)) {
		uint32_t e = atomic_load_explicit(&bd->entry[head % CV_SHM_QUEUE], memory_order_relaxed);

		head++;
		taken += deliver(l, e & (CV_SHM_SLOTS - 1), fn, arg);
	}
	if (head != first) {
		atomic_store_explicit(&l->taken[b->index], head, memory_order_relaxed);
		/* release: the entries have been read before they may be overwritten */
		atomic_store_explicit(&bd->head, head, memory_order_release);
	}
	if (unlikely(atomic_load_explicit(&bd->overflow, memory_order_relaxed)))
		taken += drain_overflow(b, fn, arg);
	return taken;
}

static void shm_bell_arm(struct cv_bell *b)
{
	atomic_exchange_explicit(&board(b)->armed, 1, memory_order_seq_cst);
}

static void shm_bell_disarm(struct cv_bell *b)
{
	atomic_store_explicit(&board(b)->armed, 0, memory_order_relaxed);
}

/* ---- wishes and waits ---------------------------------------------------------------------------------------------------------- */

static void shm_want(struct cv_stream *s, unsigned bell, uint32_t set, uint32_t clear)
{
	struct cv_shm_want *m = mine(s);

	s->port->bell = bell;
	atomic_store_explicit(&m->bell, bell, memory_order_relaxed);
	if (clear)
		atomic_fetch_and_explicit(&m->want, ~clear, memory_order_relaxed);
	atomic_fetch_or_explicit(&m->want, set, memory_order_seq_cst);
}

static struct cv_wait shm_wait_begin(struct cv_stream *s, bool tx)
{
	struct cv_shm_want *m = mine(s);
	_Atomic uint32_t *word = tx ? &m->tx_seq : &m->rx_seq;
	/* The value first: a waker that sees our wish bumps the word after we have read it. */
	struct cv_wait w = {.word = word, .value = atomic_load_explicit(word, memory_order_seq_cst)};

	atomic_fetch_or_explicit(&m->want, tx ? CV_WANT_TX_FUTEX : CV_WANT_RX_FUTEX, memory_order_seq_cst);
	return w;
}

/* On both words: what changed before the call ends it at once. -ENOSYS: before Linux 5.16, or a sandbox forbids it. */
static long wait_on_both(const struct cv_wait *w, uint64_t timeout_ns)
{
	static _Atomic bool missing;
	struct futex_waitv v[2] = {{.val = w->value, .uaddr = (uintptr_t)w->word, .flags = FUTEX_32},
				   {.val = w->also_value, .uaddr = (uintptr_t)w->also, .flags = FUTEX_32 | FUTEX_PRIVATE_FLAG}};
	struct timespec until;
	long err;

	if (!w->also || atomic_load_explicit(&missing, memory_order_relaxed))
		return -ENOSYS;
	if (timeout_ns != UINT64_MAX)
		until = cv_timespec(cv_now_ns() + timeout_ns);
	err = cv_sys5(SYS_futex_waitv, v, 2, 0, timeout_ns == UINT64_MAX ? NULL : &until, CLOCK_MONOTONIC);
	if (err != -ENOSYS && err != -EPERM)
		return err;
	atomic_store_explicit(&missing, true, memory_order_relaxed);
	return -ENOSYS;
}

static int shm_wait(const struct cv_wait *w, uint64_t timeout_ns)
{
	struct timespec ts = cv_timespec(timeout_ns);
	long err;

	cv_count(CV_CTR_SLEEPS, 1);
	/* A segment that went away meanwhile gives EFAULT: look again. */
	err = wait_on_both(w, timeout_ns);
	if (err == -ENOSYS)
		err = cv_sys4(SYS_futex, w->word, FUTEX_WAIT, w->value, timeout_ns == UINT64_MAX ? NULL : &ts);
	return err == -EINTR || err == -ETIMEDOUT ? (int)err : 0;
}

static void shm_wake_local(struct cv_stream *s)
{
	futex_wake(&mine(s)->rx_seq);
	futex_wake(&mine(s)->tx_seq);
}

const struct cv_link_ops cv_shm_ops = {
	.name = "shm",
	.publish = shm_publish,
	.credit = shm_credit,
	.bell_open = shm_bell_open,
	.bell_close = shm_bell_close,
	.bell_pending = shm_bell_pending,
	.bell_drain = shm_bell_drain,
	.bell_arm = shm_bell_arm,
	.bell_disarm = shm_bell_disarm,
	.want = shm_want,
	.wait_begin = shm_wait_begin,
	.wait = shm_wait,
	.wake_local = shm_wake_local,
	.msg = cv_shm_msg,
	.grow = cv_shm_grow,
	.detach = cv_shm_detach,
};
