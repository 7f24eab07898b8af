/* SPDX-License-Identifier: Apache-2.0 */
/* Items of epoll sets: how they are found, who is told of their sockets' rings, the ready list. */
#include "epoll_int.h"

/* ---- routes --------------------------------------------------------------------------------------------------------------------- */

/*
 * A stream's rings go to one bell. One registration and nobody in poll: that set's. Else the agent's, which tells them all.
 * wait_lock held. The link cannot go away: leaving it, the agent stores the mode, then passes wait_lock.
 */
void cv_ep_route(struct cv_sock *s, bool out)
{
	struct cv_link *link = cv_ep_linked(s) ? cv_ep_link_of(s) : NULL;
	struct cv_epitem *one = NULL;
	uint32_t want = CV_WANT_RX_BELL | (out ? CV_WANT_TX_BELL : 0);
	unsigned n = 0;

	if (!link || atomic_load_explicit(&s->foreign, memory_order_relaxed))
		return;
	for (struct cv_epitem *it = s->items; it; it = it->snext) {
		bool live = it->on && it->where == CV_ITEM_USER;

		n += live;
		one = live ? it : one;
		atomic_store_explicit(&it->routed, false, memory_order_relaxed);
	}
	if (n == 1 && !s->waiters && one->eb) {
		one->routed = true;
		one->idle = 0;
		link->ops->want(&s->st, one->eb->b->index, want, 0);
	} else if (n || s->waiters) {
		link->ops->want(&s->st, 0, want, 0);
	} else {
		link->ops->want(&s->st, 0, 0, CV_WANT_RX_BELL | CV_WANT_TX_BELL);
	}
}

void cv_epoll_route(struct cv_sock *s, bool out)
{
	cv_lock(&s->wait_lock);
	cv_ep_route(s, out);
	cv_unlock(&s->wait_lock);
}

void cv_ep_want_out(struct cv_epitem *it)
{
	struct cv_sock *s = it->s;
	struct cv_link *link;

	cv_lock(&s->wait_lock);
	link = cv_ep_linked(s) ? cv_ep_link_of(s) : NULL;
	if (link)
		link->ops->want(&s->st, it->routed ? it->eb->b->index : 0, CV_WANT_TX_BELL, 0);
	cv_unlock(&s->wait_lock);
}

/* ---- the ready list ------------------------------------------------------------------------------------------------------------- */

void cv_ep_push(struct cv_epitem *it)
{
	struct cv_epoll *e = it->e;

	if (it->ready)
		return;
	it->ready = true;
	it->rnext = NULL;
	it->rprev = e->ready_tail;
	if (e->ready_tail)
		e->ready_tail->rnext = it;
	else
		atomic_store_explicit(&e->ready_head, it, memory_order_release);
	e->ready_tail = it;
	e->ready_count++;
}

void cv_ep_unready(struct cv_epitem *it)
{
	struct cv_epoll *e = it->e;

	if (!it->ready)
		return;
	it->ready = false;
	if (it->rnext)
		it->rnext->rprev = it->rprev;
	else
		e->ready_tail = it->rprev;
	if (it->rprev)
		it->rprev->rnext = it->rnext;
	else
		atomic_store_explicit(&e->ready_head, it->rnext, memory_order_relaxed);
	e->ready_count--;
}

void cv_ep_unready_all(struct cv_epoll *e)
{
	while (e->ready_head)
		cv_ep_unready(e->ready_head);
}

/*
 * LINKED: without the engine's locks, which come before ours; the agent passes our lock before anything that we look at goes away. Else
 * whoever holds a lock is about to tell us more.
 */
uint32_t cv_ep_bits(struct cv_sock *s, uint32_t *twin, bool *busy)
{
	uint32_t bits = 0;

	if (likely(atomic_load_explicit(&s->mode, memory_order_acquire) == CV_LINKED)) {
		bits = cv_sock_poll(s, twin);
	} else if (atomic_load_explicit(&s->mode, memory_order_relaxed) == CV_PLAIN) {
		return 0;
	} else if (cv_trylock(&s->tx)) {
		if (cv_trylock(&s->rx)) {
			bits = cv_sock_poll(s, twin);
			cv_unlock(&s->rx);
		} else {
			*busy = true;
		}
		cv_unlock(&s->tx);
	} else {
		*busy = true;
	}
	if (bits & EPOLLIN)
		bits |= EPOLLRDNORM;
	if (bits & EPOLLOUT)
		bits |= EPOLLWRNORM;
	return bits;
}

bool cv_ep_ready_now(struct cv_epitem *it)
{
	uint32_t twin, bits;
	bool busy = false;

	bits = cv_ep_bits(it->s, &twin, &busy);
	if ((it->events & CV_EP_OUT) && !(bits & EPOLLOUT) && it->where == CV_ITEM_USER) {
		cv_ep_want_out(it);
		bits |= cv_ep_bits(it->s, &twin, &busy);
	}
	return busy || (bits & (it->events | EPOLLERR | EPOLLHUP));
}

bool cv_ep_any_ready(struct cv_epoll *e)
{
	for (struct cv_epitem *it = e->ready_head; it; it = it->rnext) {
		bool busy = false;
		uint32_t twin;

		if (it->on && !it->disabled && (cv_ep_bits(it->s, &twin, &busy) & (it->events | EPOLLERR | EPOLLHUP)))
			return true;
		if (busy)
			return true;
	}
	return false;
}

/* On the ready list, and known to whoever waits elsewhere. */
void cv_ep_announce(struct cv_epitem *it)
{
	struct cv_epoll *e = it->e;

	cv_ep_push(it);
	atomic_thread_fence(memory_order_seq_cst); /* partner: sleep_unserved() */
	if (unlikely(atomic_load_explicit(&e->sleepers, memory_order_seq_cst) || e->late ||
		     (atomic_load_explicit(&e->polled, memory_order_relaxed) && cv_ep_any_ready(e))))
		cv_ep_wake(e);
}

void cv_ep_bell_join(struct cv_epitem *it, struct cv_link *link)
{
	it->eb = cv_ep_bell_get(it->e, link);
	if (it->eb)
		it->eb->users++;
}

void cv_ep_bell_leave(struct cv_epitem *it)
{
	struct cv_epbell *eb = it->eb;

	it->eb = NULL;
	if (eb && --eb->users == 0)
		cv_ep_bell_put(eb);
}

/* Registered before connect(): in no socket's list yet. */
static struct cv_lock pending_lock; /* inside the sets' locks */
static struct cv_epitem *pending;
static _Atomic uint32_t pending_count;

static void pending_link(struct cv_epitem *it)
{
	cv_lock(&pending_lock);
	it->snext = pending;
	pending = it;
	pending_count++;
	cv_unlock(&pending_lock);
}

/* ---- items ---------------------------------------------------------------------------------------------------------------------- */

struct cv_epitem *cv_ep_find(struct cv_epoll *e, struct cv_sock *s, int fd)
{
	/* Nearly always the first: its set and socket change only under the set's lock, which we hold. */
	struct cv_epitem *it = __atomic_load_n(&s->items, __ATOMIC_ACQUIRE);

	if (likely(it && it->e == e && it->s == s && it->fd == fd))
		return it;
	if (!it)
		return NULL;
	cv_lock(&s->wait_lock);
	for (it = s->items; it; it = it->snext)
		if (it->e == e && it->fd == fd)
			break;
	cv_unlock(&s->wait_lock);
	return it;
}

bool cv_ep_renamed(struct cv_epoll *e, struct cv_sock *s, int fd)
{
	struct cv_epitem *it;

	cv_lock(&s->wait_lock);
	for (it = s->items; it && (it->e != e || it->kfd != fd || it->fd == fd); it = it->snext)
		;
	cv_unlock(&s->wait_lock);
	return it != NULL;
}

static void set_insert(struct cv_epoll *e, struct cv_epitem *it)
{
	it->eprev = NULL;
	it->enext = e->items;
	if (e->items)
		e->items->eprev = it;
	e->items = it;
}

static void set_remove(struct cv_epitem *it)
{
	if (it->enext)
		it->enext->eprev = it->eprev;
	if (it->eprev)
		it->eprev->enext = it->enext;
	else
		it->e->items = it->enext;
}

/* Links it to its socket: visible to cv_epoll_moved() from here on; the caller calls cv_ep_sync() next. */
static int sock_insert(struct cv_sock *s, struct cv_epitem *it)
{
	unsigned n = 0;

	cv_lock(&s->wait_lock);
	for (struct cv_epitem *i = s->items; i; i = i->snext)
		n++;
	if (n < CV_EP_SETS) {
		it->s = s;
		it->snext = s->items;
		__atomic_store_n(&s->items, it, __ATOMIC_RELEASE);
	}
	cv_unlock(&s->wait_lock);
	return n < CV_EP_SETS ? 0 : -ENOSPC;
}

long cv_ep_raw(struct cv_epitem *it, int op)
{
	struct epoll_event ev = {.events = it->events, .data.u64 = cv_ep_tag_base + it->tag};

	return cv_sys4(SYS_epoll_ctl, it->e->fd, op, it->kfd, &ev);
}

int cv_ep_add(struct cv_epoll *e, struct cv_sock *s, int fd, const struct epoll_event *ev, struct cv_epitem **out)
{
	struct cv_epitem *it = cv_ep_item_get();
	long err;

	if (!it)
		return -ENOMEM;
	*it = (struct cv_epitem){
		.e = e, .data = ev->data.u64, .events = ev->events, .fd = fd, .kfd = fd, .tag = it->tag, .on = true, .kreg = true};
	set_insert(e, it);
	err = cv_ep_raw(it, EPOLL_CTL_ADD);
	if (!err && s && sock_insert(s, it)) {
		cv_ep_raw(it, EPOLL_CTL_DEL);
		err = -ENOMEM;
	}
	if (err) {
		set_remove(it);
		cv_ep_item_put(it);
		return (int)err;
	}
	if (!s)
		pending_link(it);
	*out = it;
	return 0;
}

void cv_ep_activate(struct cv_epitem *it)
{
	struct cv_sock *s = it->s;

	/* Under wait_lock: another set may be claiming the stream's bell at this moment. */
	cv_lock(&s->wait_lock);
	atomic_store_explicit(&it->on, true, memory_order_relaxed);
	it->disabled = false;
	if (!it->routed)
		cv_ep_route(s, false);
	cv_unlock(&s->wait_lock);
}

void cv_ep_drop(struct cv_epitem *it)
{
	struct cv_epoll *e = it->e;
	struct cv_sock *s = it->s;
	struct cv_epitem **p;

	cv_ep_unready(it);
	it->on = false;
	if (s) {
		cv_lock(&s->wait_lock);
		for (p = &s->items; *p && *p != it; p = &(*p)->snext)
			;
		if (*p)
			__atomic_store_n(p, it->snext, __ATOMIC_RELEASE);
		if (it->where == CV_ITEM_USER)
			cv_ep_route(s, false);
		cv_unlock(&s->wait_lock);
	}
	if (it->where == CV_ITEM_USER)
		e->users--;
	cv_ep_bell_leave(it);
	set_remove(it);
	cv_ep_item_put(it);
}

/* ---- pending: registered before connect() ---------------------------------------------------------------------------------------- */

bool cv_ep_pending_any(void)
{
	return atomic_load_explicit(&pending_count, memory_order_relaxed) != 0;
}

struct cv_epitem *cv_ep_pending_find(struct cv_epoll *e, int fd)
{
	struct cv_epitem *it;

	if (likely(!cv_ep_pending_any()))
		return NULL;
	cv_lock(&pending_lock);
	for (it = pending; it && (it->e != e || it->fd != fd); it = it->snext)
		;
	cv_unlock(&pending_lock);
	return it;
}

static void pending_unlink(struct cv_epitem *it)
{
	struct cv_epitem **p;

	cv_lock(&pending_lock);
	for (p = &pending; *p && *p != it; p = &(*p)->snext)
		;
	if (*p) {
		*p = it->snext;
		pending_count--;
	}
	cv_unlock(&pending_lock);
}

void cv_ep_pending_drop(struct cv_epitem *it)
{
	pending_unlink(it);
	cv_ep_drop(it);
}

struct cv_epitem *cv_ep_adopt(struct cv_epitem *p, struct cv_sock *s)
{
	pending_unlink(p);
	if (sock_insert(s, p)) {
		cv_ep_drop(p);
		return NULL;
	}
	return p;
}

struct cv_epoll *cv_ep_pending_of(struct cv_sock *s, int *fd)
{
	struct cv_epoll *e = NULL;

	cv_lock(&pending_lock);
	for (struct cv_epitem *p = pending; p && !e; p = p->snext) {
		if (cv_fd_get(p->fd) == (uintptr_t)s) {
			e = p->e;
			*fd = p->fd;
		}
	}
	cv_unlock(&pending_lock);
	return e;
}

void cv_ep_pending_fork(int what)
{
	if (what == 0)
		cv_lock(&pending_lock);
	else if (what == 1)
		cv_unlock(&pending_lock);
	else
		atomic_store(&pending_lock.word, 0);
}
