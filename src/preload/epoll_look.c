/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One look at an epoll set, without sleeping: what the kernel reports, with our own taken out and tracked sockets under the program's
 * names, and what links say, fairly mixed.
 */
#include "epoll_int.h"

/* ---- the kernel's events --------------------------------------------------------------------------------------------------------- */

static uint32_t careful_bits(struct cv_epitem *it, uint32_t got, uint32_t *all)
{
	uint32_t twin = 0, allowed, bits;
	bool busy = false;

	bits = cv_ep_bits(it->s, &twin, &busy);
	/* It is being worked on this moment: the kernel shall report again. */
	if (unlikely(busy)) {
		it->e->busy = it->s;
		if (it->events & EPOLLET)
			cv_ep_raw(it, EPOLL_CTL_MOD);
	}
	allowed = twin | (twin & EPOLLIN ? EPOLLRDNORM | EPOLLRDBAND : 0) | (twin & EPOLLOUT ? EPOLLWRNORM | EPOLLWRBAND : 0);
	if ((twin & EPOLLIN) && (twin & EPOLLOUT)) /* all of it is on TCP */
		allowed |= EPOLLERR | EPOLLHUP;
	*all = (got & allowed) | bits;
	return *all & (got | it->events | EPOLLERR | EPOLLHUP);
}

/*
 * What the kernel says of a tracked socket, as the program shall see it; false: nothing. While it is being switched, the twin carries
 * things that are none of the program's business, and the program's bytes may be elsewhere.
 */
static bool translate(struct cv_epoll *e, struct cv_epitem *it, struct epoll_event *ev)
{
	uint32_t bits = ev->events;
	bool plain;

	if (unlikely(!it || it->e != e || it->where != CV_ITEM_KERNEL || !it->on)) {
		/* Closed or moved since; what has moved is on the ready list. One that stays in the kernel's set would be reported for ever. */
		if (it && it->e == e && !it->stuck)
			cv_ep_raw(it, EPOLL_CTL_DEL);
		return false;
	}
	if (unlikely(!it->s)) { /* registered before connect(): has it become a socket of ours? */
		struct cv_sock *s = cv_fd_sock(it->fd);

		if (s && cv_ep_adopt(it, s))
			cv_ep_sync(it);
		if (it->e != e || it->where != CV_ITEM_KERNEL)
			return false;
	}
	plain = !it->s || atomic_load_explicit(&it->s->mode, memory_order_acquire) == CV_PLAIN;
	if (unlikely(!plain)) {
		uint32_t all = 0;
		int due;

		bits = cv_ep_linked(it->s) ? 0 : careful_bits(it, bits, &all);
		if (!bits) {
			it->dropped = (it->events & EPOLLET) != 0; /* when the socket changes it is asked again */
			if (it->events & EPOLLONESHOT) /* not fired, for the program */
				cv_ep_raw(it, EPOLL_CTL_MOD);
			return false;
		}
		due = cv_ep_due(it, all);
		if (due < 0) {
			e->busy = it->s;
			cv_ep_raw(it, EPOLL_CTL_MOD);
		}
		if (due <= 0)
			return false;
	}
	if (cv_ep_told(it, bits))
		return false;
	if (it->s)
		cv_ep_note(it, plain);
	it->disabled = (it->events & EPOLLONESHOT) != 0;
	if (it->disabled || (it->events & EPOLLET))
		cv_ep_unready(it);
	ev->events = bits;
	ev->data.u64 = it->data;
	return true;
}

/* Take our own out, and give tracked sockets their names. What is left, in order. */
int cv_ep_filter(struct cv_epoll *e, struct epoll_event *ev, int n)
{
	uint64_t base = atomic_load_explicit(&cv_ep_tag_base, memory_order_relaxed), now = 0;
	bool locked = false;
	int kept = 0;

	if (!base)
		return n;
	for (int i = 0; i < n; i++) {
		uint64_t tag = ev[i].data.u64 - base;
		bool keep = true;

		if (tag < CV_EP_TAGS) {
			if (!locked)
				cv_lock(&e->lock);
			locked = true;
			if (likely(tag >= CV_EP_ITEM_TAGS)) {
				struct cv_epitem *it = cv_ep_item_of((uint32_t)tag);

				/* A set that uses such values itself has no items of ours any more. */
				keep = translate(e, it, &ev[i]) || (e->off && !e->inherited && (!it || it->e != e));
			} else {
				keep = e->off && !e->inherited;
				now = now ? now : cv_ticks();
				if (!keep)
					cv_ep_heat(e, (uint32_t)tag, now);
			}
		}
		if (keep) {
			if (kept != i)
				ev[kept] = ev[i];
			kept++;
		}
	}
	if (locked)
		cv_unlock(&e->lock);
	return kept;
}

/* What is there now. Count or -errno. */
static int kernel_look(struct cv_epoll *e, int epfd, struct epoll_event *ev, int max, uint64_t now)
{
	long n;
	int kept;

	atomic_store_explicit(&e->kernel_at, now, memory_order_relaxed);
	do {
		n = cv_sys6(SYS_epoll_pwait, epfd, (long)ev, max, 0, 0, 0);
		kept = n > 0 ? cv_ep_filter(e, ev, (int)n) : (int)n;
	} while (kept == 0 && n == max); /* our own took all the room: the program's may stand behind them */
	return kept;
}

/* ---- our own --------------------------------------------------------------------------------------------------------------------- */

/* One item of the ready list: its bits, or 0. Still on the list afterwards when it stays ready or cannot be told now. */
static uint32_t report(struct cv_epitem *it)
{
	struct cv_epoll *e = it->e;
	uint32_t want = it->events | EPOLLERR | EPOLLHUP, bits, twin = 0;
	bool busy = false;
	int due = 1;

	cv_ep_unready(it);
	if (unlikely(!it->on || it->disabled))
		return 0;
	bits = cv_ep_bits(it->s, &twin, &busy);
	if (unlikely((it->events & CV_EP_OUT) && (!(bits & EPOLLOUT) || (it->events & EPOLLET)) && it->where == CV_ITEM_USER)) {
		/* Edge-triggered: the program may fill the ring after this, and the edge that ends that must come. */
		cv_ep_want_out(it);
		bits |= cv_ep_bits(it->s, &twin, &busy);
	}
	if (bits & want)
		due = cv_ep_due(it, bits);
	bits &= want;
	if (unlikely(busy || due < 0)) {
		e->busy = it->s;
		cv_ep_push(it);
	}
	if (!bits || due <= 0 || cv_ep_told(it, bits))
		return 0;
	if (it->events & EPOLLET)
		cv_ep_note(it, false);
	if (unlikely(it->events & EPOLLONESHOT)) {
		it->disabled = true;
		cv_ep_unready(it);
		if (it->where == CV_ITEM_KERNEL && it->kreg) { /* fires once, whoever fires it */
			cv_sys4(SYS_epoll_ctl, e->fd, EPOLL_CTL_DEL, it->kfd, 0);
			it->kreg = false;
		}
	} else if (!(it->events & EPOLLET)) {
		cv_ep_push(it); /* at the tail: others have their turn before it comes again */
	}
	return bits;
}

/* e->lock held. At most one round of the list. *mixed: some came from sockets that the kernel's set holds as well. */
static int harvest(struct cv_epoll *e, struct epoll_event *ev, int max, uint64_t now, bool *mixed)
{
	uint32_t turns;
	int n = 0;

	cv_ep_drain_hot(e, now);
	for (turns = e->ready_count; turns && n < max; turns--) {
		struct cv_epitem *it = atomic_load_explicit(&e->ready_head, memory_order_relaxed);
		uint64_t data = it->data;
		uint32_t bits = report(it);

		if (!bits)
			continue;
		*mixed |= it->where == CV_ITEM_KERNEL;
		ev[n].events = bits;
		ev[n++].data.u64 = data;
	}
	return n;
}

/* A socket between TCP and link may be reported by both: the program must see one event, since it may free what the data points to. */
static CV_COLD int merge(struct epoll_event *ev, int n)
{
	int kept = 0;

	for (int i = 0; i < n; i++) {
		int k = 0;

		while (k < kept && ev[k].data.u64 != ev[i].data.u64)
			k++;
		if (k < kept)
			ev[k].events |= ev[i].events;
		else
			ev[kept++] = ev[i];
	}
	return kept;
}

static int harvest_lock(struct cv_epoll *e, struct epoll_event *ev, int max, uint64_t now, bool *mixed)
{
	int n;

	cv_lock(&e->lock);
	n = harvest(e, ev, max, now, mixed);
	cv_unlock(&e->lock);
	return n;
}

/*
 * Both sides without sleeping. The kernel is due after a time, and after links have filled all the room; links then get half of it at
 * most (where there is but one place they take turns), so that neither side starves the other.
 */
int cv_ep_look(struct cv_epoll *e, int epfd, struct epoll_event *ev, int max, uint64_t due_us, enum cv_ep_ask ask)
{
	uint64_t now = cv_ticks();
	bool due = e->crowded || now - atomic_load_explicit(&e->kernel_at, memory_order_relaxed) > cv_ep_us(due_us), mixed = false;
	int room = max, n, k = 0;

	if (unlikely(due))
		room = max > 1 ? max - max / 2 : !(e->turn = !e->turn);
	else
		e->turn = false;
	n = room ? harvest_lock(e, ev, room, now, &mixed) : 0;
	e->crowded = n == max;
	if (due ? n < max && (n || !room || ask != CV_EP_ASK_FAIR) : (!n && ask == CV_EP_ASK_MUST) || unlikely(mixed && n < max))
		k = kernel_look(e, epfd, ev + n, max - n, now);
	if (unlikely(k < 0))
		return n ? n : k;
	if (unlikely(!room && !k))
		n = harvest_lock(e, ev, max, now, &mixed);
	return unlikely(mixed) ? merge(ev, n + k) : n + k;
}

/* The answer may have one side's events only: let the other add its own. */
int cv_ep_complete(struct cv_epoll *e, struct epoll_event *ev, int max, int n)
{
	bool mixed = false;

	if (n > 0 && n < max)
		n += harvest_lock(e, ev + n, max - n, cv_ticks(), &mixed);
	return mixed ? merge(ev, n) : n;
}
