/* SPDX-License-Identifier: Apache-2.0 */
/* Tracked connections: their memory, who waits on them, dup and close. */
#include "sock.h"
#include "../observe/log.h"
#include "engine.h"
#include "epoll.h"
#include "owner.h"
#include "sock_life.h"
#include "upgrade.h"
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/time.h>

#define SLAB_SOCKS 64

struct slab {
	struct slab *next;
	uint32_t first; /* number of its first sock */
	struct cv_sock sock[SLAB_SOCKS];
};

static struct {
	struct cv_lock lock;
	struct slab *_Atomic slabs; /* release, by slab_more(); walked without the lock */
	struct cv_sock *free; /* by hash_next */
} pool;

static _Atomic bool stats_opened; /* this process's segment */

/* ---- memory: type-stable ------------------------------------------------------------------------------------------------------- */

static bool slab_more(void)
{
	struct slab *b = mmap(NULL, sizeof(*b), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (b == MAP_FAILED)
		return false;
	b->next = atomic_load_explicit(&pool.slabs, memory_order_relaxed);
	b->first = b->next ? b->next->first + SLAB_SOCKS : 0;
	for (int i = SLAB_SOCKS - 1; i >= 0; i--) {
		b->sock[i].index = b->first + (uint32_t)i;
		b->sock[i].hash_next = pool.free;
		pool.free = &b->sock[i];
	}
	atomic_store_explicit(&pool.slabs, b, memory_order_release);
	return true;
}

static struct cv_sock *sock_take(void)
{
	struct cv_sock *s = NULL;

	cv_lock(&pool.lock);
	if (pool.free || slab_more()) {
		s = pool.free;
		pool.free = s->hash_next;
	}
	cv_unlock(&pool.lock);
	return s;
}

void cv_sock_free(struct cv_sock *s)
{
	cv_owner_gone(s);
	cv_row_put(s->row);
	s->row = NULL;
	atomic_store_explicit(&s->used, false, memory_order_release);
	cv_lock(&pool.lock);
	s->hash_next = pool.free;
	pool.free = s;
	cv_unlock(&pool.lock);
}

void cv_sock_each(void (*fn)(struct cv_sock *s, void *arg), void *arg)
{
	for (struct slab *b = atomic_load_explicit(&pool.slabs, memory_order_acquire); b; b = b->next)
		for (int i = 0; i < SLAB_SOCKS; i++)
			if (atomic_load_explicit(&b->sock[i].used, memory_order_acquire))
				fn(&b->sock[i], arg);
}

struct cv_sock *cv_sock_by_index(uint32_t index)
{
	for (struct slab *b = atomic_load_explicit(&pool.slabs, memory_order_acquire); b; b = b->next)
		if (index >= b->first && index < b->first + SLAB_SOCKS)
			return &b->sock[index - b->first];
	return NULL;
}

void cv_sock_pool_forked(void)
{
	pool.lock = (struct cv_lock){0};
	stats_opened = false;
}

/* Everything but the locks, which a late looker may hold, and what outlives a connection. */
static void sock_reset(struct cv_sock *s, int fd, enum cv_role role, bool nonblock)
{
	s->role = (uint8_t)role;
	atomic_store_explicit(&s->nonblock, nonblock, memory_order_relaxed);
	atomic_store_explicit(&s->foreign, 0, memory_order_relaxed);
	s->fd = fd;
	atomic_store_explicit(&s->orphan, false, memory_order_relaxed);
	s->calls = 0;
	s->bytes = 0;
	s->spin = 0;
	s->link_ops = NULL;
	s->set = NULL;
	s->rcvtimeo = s->sndtimeo = 0;
	s->timeo_known = s->rd_shut = false;
	s->waiters = NULL;
	s->items = NULL;
	s->seek = 0;
	s->tries = s->rounds = 0;
	s->stay_out = s->closing = s->late = s->was_linked = false;
	s->fork_seq = atomic_load_explicit(&cv_fork_seq, memory_order_relaxed);
	memset(&s->port, 0, sizeof(s->port));
	s->port.grow_fd = -1;
	s->listener = NULL;
	s->answered = NULL;
	s->twin.fd = fd; /* not its fn: the agent may just be about to call it for the connection that was here before */
	s->twin.events = 0;
	s->wait_until = 0;
}

/* The stats segment, when the first connection is tracked: here, and again in a child. */
static CV_COLD void stats_open(void)
{
	const struct cv_global *g = cv_policy_global(cv_policy_now);
	int err = cv_stats_open(g->stats_dir, g->stats_keep);

	if (err)
		cv_log(CV_LOG_INFO, "no stats segment (error %d): culvert ss will not see this process", -err);
}

void cv_sock_new(int fd, enum cv_role role, bool nonblock)
{
	struct cv_sock *s;

	if (unlikely(!atomic_load_explicit(&stats_opened, memory_order_relaxed)) && !atomic_exchange(&stats_opened, true))
		stats_open();
	s = sock_take();
	if (!s) {
		cv_fd_set(fd, 0);
		return;
	}
	sock_reset(s, fd, role, nonblock);
	s->row = cv_row_get();
	atomic_store_explicit(&s->row->fd, fd, memory_order_relaxed);
	atomic_store_explicit(&s->row->role, (uint8_t)role, memory_order_relaxed);
	atomic_store_explicit(&s->row->reason, CV_REASON_YOUNG, memory_order_relaxed);
	atomic_store_explicit(&s->row->state, CV_ROW_TCP, memory_order_release);
	cv_count(CV_CTR_OPENED, 1);
	cv_upgrade_init(s);
	atomic_store_explicit(&s->mode, CV_PLAIN, memory_order_relaxed);
	atomic_store_explicit(&s->refs, 1, memory_order_relaxed);
	atomic_store_explicit(&s->used, true, memory_order_release);
	if (cv_fd_set(fd, (uintptr_t)s)) {
		cv_sock_free(s);
		return;
	}
	cv_upgrade_begin(s);
}

/* ---- who waits ----------------------------------------------------------------------------------------------------------------- */

void cv_sock_add_waiter(struct cv_sock *s, struct cv_waiter *w)
{
	cv_lock(&s->wait_lock);
	w->next = s->waiters;
	s->waiters = w;
	cv_unlock(&s->wait_lock);
}

void cv_sock_del_waiter(struct cv_sock *s, struct cv_waiter *w)
{
	cv_lock(&s->wait_lock);
	for (struct cv_waiter **p = &s->waiters; *p; p = &(*p)->next) {
		if (*p == w) {
			*p = w->next;
			break;
		}
	}
	cv_unlock(&s->wait_lock);
}

static void wake_waiters(struct cv_sock *s)
{
	uint64_t one = 1;

	cv_lock(&s->wait_lock);
	for (struct cv_waiter *w = s->waiters; w; w = w->next)
		if (w->wake_fd >= 0)
			cv_sys3(SYS_write, w->wake_fd, &one, sizeof(one));
	cv_unlock(&s->wait_lock);
}

void cv_sock_changed(struct cv_sock *s)
{
	wake_waiters(s);
	if (s->port.link)
		s->link_ops->wake_local(&s->st);
	if (s->items)
		cv_epoll_kick(s);
}

static pthread_key_t wake_key;
static pthread_once_t wake_once = PTHREAD_ONCE_INIT;
static bool wake_key_ok;

/* The key's value: fd + 1 and, above it, the fork that it was made after: a child's copies are closed. */
static void wake_gone(void *v)
{
	uintptr_t x = (uintptr_t)v;

	if (x >> 32 == (uintptr_t)atomic_load_explicit(&cv_fork_seq, memory_order_relaxed))
		cv_fd_close((int)(x & 0xffffffffu) - 1);
}

static void wake_key_make(void)
{
	wake_key_ok = pthread_key_create(&wake_key, wake_gone) == 0;
}

int cv_thread_wake_fd(void)
{
	uintptr_t seq = atomic_load_explicit(&cv_fork_seq, memory_order_relaxed), x;
	int fd;

	pthread_once(&wake_once, wake_key_make);
	if (!wake_key_ok)
		return -EMFILE;
	x = (uintptr_t)pthread_getspecific(wake_key);
	if (likely(x && x >> 32 == seq))
		return (int)(x & 0xffffffffu) - 1;
	fd = cv_fd_new(SYS_eventfd2, 0, O_CLOEXEC | O_NONBLOCK, 0, 0);
	if (fd < 0)
		return fd;
	pthread_setspecific(wake_key, (void *)(seq << 32 | (uintptr_t)(fd + 1)));
	return fd;
}

/* ---- readiness ----------------------------------------------------------------------------------------------------------------- */

static bool ring_has_room(const struct cv_ring *g)
{
	const struct cv_ring_gen *last = &g->gen[(g->gens - 1) % CV_RING_GENS];
	uint64_t head = atomic_load_explicit(&g->r->head, memory_order_acquire);

	return g->tail - (head > last->start ? head : last->start) < last->size;
}

/* What lies in a further generation can be read once the agent has mapped that: until then recv would say EAGAIN. */
static bool ring_has_bytes(const struct cv_ring *g)
{
	if (atomic_load_explicit(&g->w->tail, memory_order_acquire) == g->head)
		return false;
	if (likely(g->first == CV_RING_GENS - 1 || !atomic_load_explicit(&g->w->starts[g->first], memory_order_relaxed)))
		return true;
	return cv_ring_readable_hint(g) != 0;
}

uint32_t cv_sock_poll(struct cv_sock *s, uint32_t *twin)
{
	struct cv_stream *st = &s->st;
	uint32_t shut = 0;

	*twin = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLPRI;
	if (unlikely(atomic_load_explicit(&s->mode, memory_order_acquire) == CV_PLAIN))
		return 0;
	if (unlikely(atomic_load_explicit(&s->rd_shut, memory_order_relaxed)))
		shut = EPOLLIN | EPOLLRDHUP;
	if (likely(atomic_load_explicit(&s->mode, memory_order_relaxed) == CV_LINKED && !st->rx_slow && !st->tx_slow &&
		   !atomic_load_explicit(&st->rx.w->end, memory_order_acquire))) {
		*twin = EPOLLPRI; /* urgent data never travels on a link */
		return (ring_has_bytes(&st->rx) ? EPOLLIN : 0) |
		       (ring_has_room(&st->tx) ? EPOLLOUT : 0) | shut;
	}
	shut |= cv_stream_poll(st, twin);
	*twin |= EPOLLPRI;
	return shut;
}

/* ---- time-outs of blocking calls ----------------------------------------------------------------------------------------------- */

static uint64_t timeo_ask(int fd, int opt)
{
	struct timeval tv = {0};
	socklen_t len = sizeof(tv);

	if (cv_sys5(SYS_getsockopt, fd, SOL_SOCKET, opt, &tv, &len) < 0)
		return 0;
	return (uint64_t)tv.tv_sec * 1000000000u + (uint64_t)tv.tv_usec * 1000u;
}

uint64_t cv_sock_timeo(struct cv_sock *s, int fd, bool tx)
{
	if (!atomic_load_explicit(&s->timeo_known, memory_order_acquire)) {
		s->rcvtimeo = timeo_ask(fd, SO_RCVTIMEO);
		s->sndtimeo = timeo_ask(fd, SO_SNDTIMEO);
		atomic_store_explicit(&s->timeo_known, true, memory_order_release);
	}
	return tx ? s->sndtimeo : s->rcvtimeo;
}

/* ---- descriptors --------------------------------------------------------------------------------------------------------------- */

/* tx and rx held, so that it is neither closed nor excluded meanwhile. */
static uintptr_t entry_of(const struct cv_sock *s, int fd)
{
	uintptr_t e = cv_fd_get(fd);

	return cv_fd_sock_of(e) == s ? e : 0;
}

void cv_sock_dup(struct cv_sock *s, int newfd)
{
	uintptr_t e;

	cv_sock_lock(s);
	e = entry_of(s, s->fd);
	atomic_fetch_add_explicit(&s->refs, 1, memory_order_relaxed);
	cv_fd_set(newfd, e ? e : (uintptr_t)s);
	cv_sock_unlock(s);
}

/* The agent's watch is by the number that goes away: take it out, the agent puts it back by another one. */
static void unwatch(struct cv_sock *s)
{
	if (s->twin.events)
		cv_agent_watch(&s->twin, 0);
}

static bool linger_zero(int fd)
{
	struct linger lg = {0};
	socklen_t len = sizeof(lg);

	return cv_sys5(SYS_getsockopt, fd, SOL_SOCKET, SO_LINGER, &lg, &len) == 0 && lg.l_onoff && lg.l_linger == 0;
}

void cv_sock_arrange_reset(int fd)
{
	struct linger lg = {.l_onoff = 1};

	cv_sys5(SYS_setsockopt, fd, SOL_SOCKET, SO_LINGER, &lg, sizeof(lg));
}

/* The application is done with it: tell the peer, over the link. tx and rx held. True when something is left to do for the agent. */
static bool end_stream(struct cv_sock *s, int fd)
{
	bool reset = false, linger;

	if (cv_engine_plain(s))
		return false;
	linger = cv_stream_close(&s->st, fd >= 0 && linger_zero(fd), &reset) != 0;
	if (reset && fd >= 0)
		cv_sock_arrange_reset(fd);
	return linger;
}

void cv_sock_end(struct cv_sock *s)
{
	cv_sock_lock(s);
	if (s->used && !s->closing) {
		unwatch(s);
		s->closing = true;
		if (s->was_linked)
			cv_engine_count_twin(s);
		end_stream(s, s->fd);
	}
	cv_sock_unlock(s);
}

static int close_fd(int fd)
{
	if (!cv_fd_internal(fd))
		return (int)cv_sys1(SYS_close, fd);
	cv_fd_close(fd);
	return 0;
}

/* The last descriptor goes; tx and rx held, and let go here. */
static int close_last(struct cv_sock *s, int fd, bool really)
{
	bool linger;
	int ret;

	unwatch(s);
	if (!really) /* the number may be another file's by now */
		s->fd = s->twin.fd = -1;
	if (s->was_linked && really)
		cv_engine_count_twin(s);
	linger = end_stream(s, really ? fd : -1);
	s->closing = true;
	atomic_store_explicit(&s->mode, CV_CAREFUL, memory_order_release);
	s->fd = s->twin.fd = linger && really ? cv_fd_dup(fd) : -1;
	ret = really ? close_fd(fd) : 0;
	cv_upgrade_ended(s);
	return ret;
}

/* A call of another thread sleeps in it: the connection ends when that returns. tx and rx held, and let go here. */
static int close_later(struct cv_sock *s, int fd)
{
	int ret;

	unwatch(s);
	atomic_store_explicit(&s->orphan, true, memory_order_release);
	s->fd = s->twin.fd = cv_fd_dup(fd);
	ret = close_fd(fd);
	wake_waiters(s); /* who was about to poll the old number takes the new one */
	cv_sock_unlock(s);
	cv_agent_post(&s->work);
	return ret;
}

void cv_sock_outside(struct cv_sock *s)
{
	if (atomic_fetch_sub_explicit(&s->inside, 1, memory_order_acq_rel) != 1 || likely(!atomic_load_explicit(&s->orphan, memory_order_acquire)))
		return;
	cv_sock_lock(s);
	if (atomic_exchange_explicit(&s->orphan, false, memory_order_acq_rel)) {
		close_last(s, s->fd, s->fd >= 0);
		return;
	}
	cv_sock_unlock(s);
}

/* Somebody else closed fd since it was looked up: the kernel's to say, unless the number has become another connection's. */
static int close_late(int fd)
{
	return cv_fd_get(fd) ? -EBADF : (int)cv_sys1(SYS_close, fd);
}

static int close_one(struct cv_sock *s, int fd, bool really)
{
	uintptr_t e;
	bool last;
	int ret;

	if (atomic_load_explicit(&s->foreign, memory_order_relaxed) && cv_sock_at(s, fd)) { /* the parent's stream: only our copy of the fd goes */
		cv_fd_set(fd, 0);
		return really ? (int)cv_sys1(SYS_close, fd) : 0;
	}
	/* Children may hold the twin: the kernel then ends the connection when the last one does, so it must have it back. */
	if (really && atomic_load_explicit(&s->mode, memory_order_relaxed) != CV_PLAIN &&
	    cv_owner_shared(s) && cv_sock_valid(s, fd))
		cv_sock_fall_back(s, CV_LEAVE_HANDOVER, CV_REASON_FORK, true);
	cv_sock_lock(s);
	e = entry_of(s, fd);
	if (!e) {
		cv_sock_unlock(s);
		return really ? close_late(fd) : 0;
	}
	cv_fd_set(fd, 0);
	last = atomic_fetch_sub_explicit(&s->refs, 1, memory_order_acq_rel) == 1;
	if (s->items)
		cv_epoll_sock_closed(s);
	if (last) {
		if (really && atomic_load_explicit(&s->inside, memory_order_acquire) && atomic_load_explicit(&s->mode, memory_order_relaxed) != CV_PLAIN)
			return close_later(s, fd);
		return close_last(s, fd, really);
	}
	if (s->fd == fd) {
		unwatch(s);
		s->fd = s->twin.fd = cv_fd_find(e, fd);
		if (atomic_load_explicit(&s->mode, memory_order_relaxed) != CV_PLAIN) {
			cv_agent_post(&s->work);
			wake_waiters(s);
		}
	}
	ret = really ? (int)cv_sys1(SYS_close, fd) : 0;
	cv_sock_unlock(s);
	return ret;
}

int cv_sock_close(struct cv_sock *s, int fd)
{
	return close_one(s, fd, true);
}

void cv_sock_vanished(struct cv_sock *s, int fd)
{
	close_one(s, fd, false);
}
