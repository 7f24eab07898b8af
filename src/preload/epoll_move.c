/* SPDX-License-Identifier: Apache-2.0 */
/* Items move between the kernel's set and ours, as their socket does between TCP and a link; they become ready; they end. */
#include "epoll_int.h"
#include "owner.h"
#include "../observe/log.h"
#include "upgrade.h"
#include <linux/tcp.h>

static uint64_t arrived_raw(const struct cv_sock *s)
{
	struct tcp_info info = {0};
	socklen_t len = sizeof(info);

	if (cv_sys5(SYS_getsockopt, s->fd, IPPROTO_TCP, TCP_INFO, &info, &len) ||
	    len < offsetof(struct tcp_info, tcpi_bytes_received) + sizeof(info.tcpi_bytes_received))
		return 0;
	return info.tcpi_bytes_received;
}

/* Without what still waits there: it will be news. */
static uint64_t arrived_ring(const struct cv_sock *s)
{
	return s->st.e.rx_n + cv_min_u64(atomic_load_explicit(&s->st.rx.w->tail, memory_order_relaxed), s->st.e.rx_lim);
}

#define BUSY UINT64_MAX

/*
 * How many of the program's bytes have come, whether it has read them or not; 0: not known; BUSY: ask again. Numbers are those of TCP
 * and go on in the ring.
 */
static uint64_t arrived(struct cv_sock *s)
{
	uint64_t n = 0;

	if (cv_ep_linked(s))
		return arrived_ring(s);
	if (atomic_load_explicit(&s->mode, memory_order_relaxed) == CV_PLAIN) /* and may be switched meanwhile */
		return 0;
	if (!cv_trylock(&s->rx)) /* it comes before the set's, which we hold */
		return BUSY;
	if (s->st.rx_state == CV_RAW)
		n = arrived_raw(s);
	else if (s->st.rx_state == CV_FROZEN) /* behind the last byte comes the peer's record */
		n = cv_min_u64(arrived_raw(s), s->st.e.rx_n);
	else if (s->st.rx_state == CV_RING && s->port.link)
		n = arrived_ring(s);
	cv_unlock(&s->rx);
	return n;
}

/* The kernel may owe an edge for space, and nobody can ask it: registrations that wait for space are reported once more. */
int cv_ep_due(struct cv_epitem *it, uint32_t bits)
{
	uint64_t n;

	it->now = 0;
	if (likely(!(it->events & EPOLLET) || (it->events & (CV_EP_OUT | EPOLLPRI | EPOLLONESHOT)) || it->s->seek == CV_SEEK_NO))
		return 1;
	n = arrived(it->s);
	if (n == BUSY)
		return -1;
	it->now = n ? n + 1 : 0;
	/* An end is news although no byte has come, and EPOLLIN says so to those who have not asked for more. */
	return !it->seen || !n || n >= it->seen || (bits & (EPOLLRDHUP | EPOLLHUP | EPOLLERR));
}

void cv_ep_note(struct cv_epitem *it, bool plain)
{
	if (likely(!(it->events & EPOLLET) || it->s->seek == CV_SEEK_NO))
		return;
	if (plain) {
		it->now = arrived_raw(it->s);
		/* Still PLAIN: no record of culvert's was among them. Too high a number would swallow edges. */
		it->now = it->now && atomic_load_explicit(&it->s->mode, memory_order_seq_cst) == CV_PLAIN ? it->now + 1 : 0;
	}
	it->seen = it->now;
}

static bool news(struct cv_epitem *it)
{
	uint32_t twin;
	bool busy = false;

	return cv_ep_due(it, cv_ep_bits(it->s, &twin, &busy)) != 0 || busy;
}

static void to_user(struct cv_epitem *it)
{
	struct cv_epoll *e = it->e;
	struct cv_sock *s = it->s;

	if (it->on && it->kreg && !it->stuck) {
		/*
		 * ENOENT: the record outlived the registration. Unless the number went to another file and a dup keeps the registration
		 * alive.
		 */
		if (cv_ep_raw(it, EPOLL_CTL_DEL) == -ENOENT && cv_sock_valid(s, it->kfd)) {
			cv_ep_drop(it);
			return;
		}
	}
	it->kreg = it->stuck;
	e->users++;
	e->set = s->set;
	cv_ep_bell_join(it, cv_ep_link_of(s));
	cv_lock(&s->wait_lock);
	it->where = CV_ITEM_USER;
	cv_ep_route(s, false);
	cv_unlock(&s->wait_lock);
	if (it->on && !it->disabled && cv_ep_ready_now(it) && news(it))
		cv_ep_announce(it);
}

static void to_kernel(struct cv_epitem *it)
{
	struct cv_epoll *e = it->e;
	struct cv_sock *s = it->s;
	struct cv_link *link;

	it->seen = 0;
	cv_lock(&s->wait_lock);
	it->where = CV_ITEM_KERNEL;
	it->routed = false;
	link = cv_ep_link_of(s);
	/* What is left in the ring, and what still comes there, the agent hears of. */
	if (link)
		link->ops->want(&s->st, 0, CV_WANT_RX_BELL | CV_WANT_TX_BELL, 0);
	cv_unlock(&s->wait_lock);
	e->users--;
	cv_ep_bell_leave(it);
	if (!it->on) {
		cv_ep_drop(it);
		return;
	}
	/* A fired ONESHOT stays out altogether: the kernel would report HUP of one that is in. */
	if (!it->disabled && !e->foreign && !it->stuck) {
		long err;

		if (cv_fd_get(it->fd) != (uintptr_t)s) /* closed, a dup lives on */
			it->kfd = s->fd;
		err = cv_ep_raw(it, EPOLL_CTL_ADD);
		it->kreg = !err || err == -EEXIST;
		if (err)
			cv_log(CV_LOG_WARN, "fd %d could not be put back into epoll set %d: error %ld", it->kfd, e->fd, -err);
	}
	if (!it->disabled)
		cv_ep_announce(it);
}

void cv_ep_sync(struct cv_epitem *it)
{
	bool want = cv_ep_linked(it->s) && cv_ep_link_of(it->s) && !it->e->off && !it->e->foreign;

	if (want && it->where == CV_ITEM_KERNEL)
		to_user(it);
	else if (!want && it->where == CV_ITEM_USER)
		to_kernel(it);
}

void cv_ep_give_up(struct cv_epitem *it)
{
	struct epoll_event ev = {.events = it->events, .data.u64 = it->data};
	struct cv_epoll *e = it->e;
	bool on = it->on;

	if (it->where == CV_ITEM_USER) {
		to_kernel(it);
		if (!on)
			return; /* it is gone */
	}
	if (it->stuck) /* the kernel keeps our tag, so we keep what it stands for */
		return;
	/* A ONESHOT that has fired keeps our tag until it is armed again, when it gets the program's value anyway. */
	if (it->kreg && !it->disabled && cv_sys4(SYS_epoll_ctl, e->fd, EPOLL_CTL_MOD, it->kfd, &ev) == -EINVAL) { /* EXCLUSIVE */
		cv_ep_raw(it, EPOLL_CTL_DEL);
		cv_sys4(SYS_epoll_ctl, e->fd, EPOLL_CTL_ADD, it->kfd, &ev);
	}
	if (it->s)
		cv_ep_drop(it);
	else
		cv_ep_pending_drop(it);
}

/*
 * A socket's items can only be reached inside wait_lock, their sets' locks come before it: note them, then lock, then look whether they
 * are still the same.
 */
static unsigned items_of(struct cv_sock *s, struct cv_epitem *it[CV_EP_SETS], struct cv_epoll *e[CV_EP_SETS])
{
	unsigned n = 0;

	cv_lock(&s->wait_lock);
	for (struct cv_epitem *i = s->items; i && n < CV_EP_SETS; i = i->snext) {
		it[n] = i;
		e[n++] = i->e;
	}
	cv_unlock(&s->wait_lock);
	return n;
}

static bool lock_item(struct cv_sock *s, struct cv_epitem *it, struct cv_epoll *e)
{
	if (!e)
		return false;
	cv_lock(&e->lock);
	if (likely(it->e == e && it->s == s))
		return true;
	cv_unlock(&e->lock);
	return false;
}

static CV_COLD void adopt_pending(struct cv_sock *s)
{
	for (;;) {
		struct cv_epitem *p;
		struct cv_epoll *e;
		int fd = -1;

		e = cv_ep_pending_of(s, &fd);
		if (!e)
			return;
		cv_lock(&e->lock);
		p = cv_ep_pending_find(e, fd);
		if (p)
			cv_ep_adopt(p, s);
		cv_unlock(&e->lock);
	}
}

void cv_epoll_moved(struct cv_sock *s)
{
	struct cv_epitem *it[CV_EP_SETS];
	struct cv_epoll *e[CV_EP_SETS];
	unsigned n;

	if (unlikely(cv_ep_pending_any()))
		adopt_pending(s);
	n = items_of(s, it, e);
	for (unsigned i = 0; i < n; i++) {
		if (!lock_item(s, it[i], e[i]))
			continue;
		cv_ep_sync(it[i]);
		cv_unlock(&e[i]->lock);
	}
	/*
	 * In no set: nobody wants to be rung, while it was being switched the agent did. Who waits in another way is woken next, and
	 * says so again.
	 */
	if (n == 0) {
		cv_lock(&s->wait_lock);
		if (cv_ep_linked(s) && cv_ep_link_of(s))
			cv_ep_link_of(s)->ops->want(&s->st, 0, 0, CV_WANT_RX_BELL | CV_WANT_TX_BELL);
		cv_unlock(&s->wait_lock);
	}
}

void cv_epoll_kick(struct cv_sock *s)
{
	struct cv_epitem *it[CV_EP_SETS];
	struct cv_epoll *e[CV_EP_SETS];
	unsigned n;

	if (unlikely(cv_ep_pending_any()))
		adopt_pending(s);
	if (!__atomic_load_n(&s->items, __ATOMIC_ACQUIRE))
		return;
	n = items_of(s, it, e);
	for (unsigned i = 0; i < n; i++) {
		if (!lock_item(s, it[i], e[i]))
			continue;
		if (it[i]->on && !it[i]->disabled && atomic_load_explicit(&s->mode, memory_order_relaxed) != CV_PLAIN &&
		    cv_ep_ready_now(it[i]) && (it[i]->where == CV_ITEM_KERNEL || news(it[i])))
			cv_ep_announce(it[i]);
		if (unlikely(it[i]->dropped) && it[i]->where == CV_ITEM_KERNEL && it[i]->kreg) {
			it[i]->dropped = false;
			cv_ep_raw(it[i], EPOLL_CTL_MOD);
		}
		cv_unlock(&e[i]->lock);
	}
}

/* Does the number that the kernel knows the registration by still mean its socket? */
static bool numbered(const struct cv_epitem *it)
{
	return (cv_fd_get(it->kfd) & ~(uintptr_t)3) == (uintptr_t)it->s;
}

void cv_epoll_sock_closed(struct cv_sock *s)
{
	struct cv_epitem *it[CV_EP_SETS];
	struct cv_epoll *e[CV_EP_SETS];
	bool last = atomic_load_explicit(&s->refs, memory_order_acquire) <= 0;
	/*
	 * PLAIN: the kernel forgets by itself when the twin is closed, unless a child holds that too. Else the agent may keep it for a
	 * while.
	 */
	bool plain = atomic_load_explicit(&s->mode, memory_order_relaxed) == CV_PLAIN && !cv_owner_shared(s);
	bool stuck = false;
	unsigned n;

	if (!__atomic_load_n(&s->items, __ATOMIC_ACQUIRE))
		return;
	n = items_of(s, it, e);
	for (unsigned i = 0; i < n; i++) {
		struct cv_epitem *t = it[i];

		if (!lock_item(s, t, e[i]))
			continue;
		if (last) {
			if (!plain && t->where == CV_ITEM_KERNEL && t->kreg)
				cv_ep_raw(t, EPOLL_CTL_DEL);
			cv_ep_drop(t);
		} else if (t->where == CV_ITEM_KERNEL && t->kreg && !t->stuck && !numbered(t)) {
			/*
			 * The kernel goes on reporting, but nobody can name the registration any more. By another number of the socket
			 * it would be in the way of one that the program may make. So the socket stays on TCP.
			 */
			t->stuck = stuck = true;
			s->stay_out = true;
		}
		cv_unlock(&e[i]->lock);
	}
	if (unlikely(stuck)) /* with no set's lock held: see base/lock.h */
		cv_agent_post(&s->work);
}
