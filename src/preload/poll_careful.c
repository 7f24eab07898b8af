/* SPDX-License-Identifier: Apache-2.0 */
#include "poll.h"
#include "spin.h"
#include "../base/clock.h"
#include "../observe/stats.h"
#include <pthread.h>

#define NO_DEADLINE UINT64_MAX
#define KERNEL_US 5	    /* how often the kernel is asked while we spin */
#define LONG_NS 3600000000000u
#define MUTED_NS 10000000u  /* how often an entry is looked at that the kernel reports for what the caller did not ask */

struct entry {
	struct cv_sock *s; /* NULL: the kernel's */
	struct cv_waiter w;
	uint16_t allow; /* what counts of the kernel's answer */
	bool waiting, muted;
};

struct set {
	struct pollfd *fds;
	nfds_t n;
	struct pollfd *k; /* what the kernel is asked, and the wake fd */
	struct entry *e;
	const uint16_t *accept;
	const sigset_t *mask;
	uint64_t deadline;
	uint64_t spin_end, yield_at; /* ticks */
	uint32_t signals;
	struct cv_sock *linked; /* one of them: it has the spin budget */
	bool kernel;		/* somebody else is in it, or a twin */
	int wake_fd;
};

/* ---- one look -------------------------------------------------------------------------------------------------------------------- */

static uint16_t widen(uint32_t bits)
{
	return (uint16_t)(bits | (bits & POLLIN ? POLLRDNORM : 0) | (bits & POLLOUT ? POLLWRNORM : 0));
}

static uint16_t accepted(const struct set *p, nfds_t i)
{
	return p->accept ? p->accept[i] | POLLNVAL : 0xffff;
}

/* While it is being switched, the engine says so under its locks only. */
static uint32_t bits_of(struct cv_sock *s, uint32_t *twin)
{
	uint32_t bits;

	if (likely(atomic_load_explicit(&s->mode, memory_order_acquire) != CV_CAREFUL))
		return cv_sock_poll(s, twin);
	cv_lock(&s->tx);
	cv_lock(&s->rx);
	bits = cv_sock_poll(s, twin);
	cv_unlock(&s->rx);
	cv_unlock(&s->tx);
	return bits;
}

/* A tracked socket: what we know of it goes into revents; returns what the kernel must say. */
static uint16_t known(struct set *p, nfds_t i, struct cv_sock *s)
{
	uint16_t asked = (uint16_t)p->fds[i].events, kernel = 0;
	uint32_t twin = 0, bits = bits_of(s, &twin);

	if (atomic_load_explicit(&s->mode, memory_order_relaxed) == CV_LINKED)
		p->linked = s;
	p->fds[i].revents = (short)(widen(bits) & (asked | POLLERR | POLLHUP) & accepted(p, i));
	if (twin & EPOLLIN)
		kernel |= POLLIN | POLLRDNORM | POLLRDBAND;
	if (twin & EPOLLOUT)
		kernel |= POLLOUT | POLLWRNORM | POLLWRBAND;
	kernel |= twin & (EPOLLPRI | EPOLLRDHUP);
	kernel &= asked;
	if ((twin & EPOLLIN) && (twin & EPOLLOUT)) /* all of it is on TCP */
		kernel |= POLLERR | POLLHUP;
	return kernel | (twin & (EPOLLERR | EPOLLHUP));
}

/* Our side of every entry, and what to ask the kernel. Number of entries with something. */
static int examine(struct set *p)
{
	int ready = 0;

	p->linked = NULL;
	p->kernel = false;
	for (nfds_t i = 0; i < p->n; i++) {
		struct cv_sock *s = cv_fd_sock(p->fds[i].fd);
		struct entry *e = &p->e[i];

		p->k[i] = (struct pollfd){.fd = p->fds[i].fd, .events = p->fds[i].events};
		p->fds[i].revents = 0;
		e->s = s;
		e->allow = accepted(p, i);
		if (s) {
			e->allow &= known(p, i, s) | POLLNVAL;
			p->k[i].events &= (short)e->allow;
			ready += p->fds[i].revents != 0;
		}
		if (s && !(e->allow & ~POLLNVAL))
			p->k[i].fd = -1;
		p->kernel |= p->k[i].fd >= 0;
	}
	return ready;
}

/* The kernel's answer joins ours. Number of entries with something. */
static int join(struct set *p)
{
	int ready = 0;

	for (nfds_t i = 0; i < p->n; i++) {
		uint16_t got = p->k[i].fd >= 0 ? (uint16_t)p->k[i].revents : 0;
		struct cv_sock *s = got ? p->e[i].s : NULL;

		/* It may have been switched since: what the twin has now is none of the program's business. */
		if (s && atomic_load_explicit(&s->mode, memory_order_acquire) != CV_PLAIN && cv_sock_valid(s, p->fds[i].fd))
			p->e[i].allow &= known(p, i, s) | POLLNVAL;
		if (p->k[i].fd >= 0) /* HUP where only exceptions were asked for: it would never let us sleep */
			p->e[i].muted = got && !(got & p->e[i].allow);
		p->fds[i].revents |= (short)(got & p->e[i].allow);
		ready += p->fds[i].revents != 0;
	}
	return ready;
}

/* With a mask of the caller's: a signal that it lets through shows here, as in a plain ppoll with no time. */
static int ask_kernel(struct set *p, int ours)
{
	struct timespec zero = {0};
	long r = 0;

	if (p->kernel || (p->mask && !ours))
		r = cv_sys5(SYS_ppoll, p->k, p->n, &zero, ours ? NULL : p->mask, _NSIG / 8);
	if (r < 0 && !ours)
		return (int)r;
	return join(p);
}

/* ---- sleeping -------------------------------------------------------------------------------------------------------------------- */

static void stop_waiting(void *arg)
{
	struct set *p = arg;

	for (nfds_t i = 0; i < p->n; i++) {
		struct entry *e = &p->e[i];

		if (!e->waiting)
			continue;
		e->waiting = false;
		cv_sock_del_waiter(e->s, &e->w);
		cv_epoll_route(e->s, false);
	}
}

/* After this, whatever happens to one of them writes the wake fd. */
static void start_waiting(struct set *p)
{
	for (nfds_t i = 0; i < p->n; i++) {
		struct entry *e = &p->e[i];

		e->s = cv_fd_sock(p->fds[i].fd);
		if (!e->s)
			continue;
		e->w.wake_fd = p->wake_fd;
		e->waiting = true;
		cv_sock_add_waiter(e->s, &e->w);
		cv_epoll_route(e->s, (p->fds[i].events & (POLLOUT | POLLWRNORM)) != 0);
	}
}

static uint64_t ns_left(const struct set *p)
{
	uint64_t now;

	if (p->deadline == NO_DEADLINE)
		return NO_DEADLINE;
	now = cv_now_ns();
	return now < p->deadline ? p->deadline - now : 0;
}

/*
 * The look after the waiters are in place. A socket whose halves moved between us and the kernel since it was decided whom to ask
 * counts as news.
 */
static bool anything(struct set *p)
{
	for (nfds_t i = 0; i < p->n; i++) {
		struct cv_sock *s = p->e[i].s;
		uint16_t kernel;

		if (!s)
			continue;
		kernel = known(p, i, s) & accepted(p, i);
		if (p->fds[i].revents || kernel != (uint16_t)(p->e[i].allow & ~POLLNVAL) || !cv_sock_valid(s, p->fds[i].fd))
			return true;
	}
	return false;
}

/* Entries that the kernel reports for what nobody asked stay out of the sleep, which is then short. */
static uint64_t mute(struct set *p, uint64_t left)
{
	for (nfds_t i = 0; i < p->n; i++) {
		if (p->e[i].muted) {
			p->k[i].fd = -1;
			left = cv_min_u64(left, MUTED_NS);
		}
	}
	return p->wake_fd < 0 ? cv_min_u64(left, MUTED_NS) : left;
}

/* What ppoll says, or -errno. */
static int kernel_wait(struct set *p, uint64_t left)
{
	struct timespec ts;
	int r;

	p->k[p->n] = (struct pollfd){.fd = p->wake_fd, .events = POLLIN};
	left = mute(p, left);
	ts = cv_timespec(left);
	cv_count(CV_CTR_SLEEPS, 1);
	r = cv_real.ppoll(p->k, p->n + 1, left == NO_DEADLINE ? NULL : &ts, p->mask);
	return r < 0 ? -errno : r;
}

/* One socket, LINKED, and nothing of the kernel's: the peer can wake us itself, where bells of poll go by the agent. */
static struct cv_sock *lone(const struct set *p)
{
	struct cv_sock *s = p->n == 1 && !p->mask && p->k[0].fd < 0 ? cv_fd_sock(p->fds[0].fd) : NULL;

	return s && !(p->fds[0].events & (POLLOUT | POLLWRNORM)) && atomic_load_explicit(&s->mode, memory_order_acquire) == CV_LINKED ? s : NULL;
}

/* 0: look again, or -errno. A cancellation point, as poll is. */
static int sleep_lone(struct set *p, struct cv_sock *s, uint64_t left)
{
	struct cv_wait ticket;
	int r = 0, type;
	bool linked;

	p->e[0].s = s;
	cv_lock(&s->rx);
	linked = cv_sock_valid(s, p->fds[0].fd) && atomic_load_explicit(&s->mode, memory_order_relaxed) == CV_LINKED;
	if (linked)
		ticket = s->link_ops->wait_begin(&s->st, false);
	cv_unlock(&s->rx);
	if (!linked || anything(p) || cv_signals_seen() != p->signals)
		return 0;
	pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, &type);
	/* Without an end the kernel would resume it after a handler with SA_RESTART: poll always ends with EINTR. */
	ticket.also = &cv_signals_here;
	ticket.also_value = p->signals;
	r = s->link_ops->wait(&ticket, cv_min_u64(left, LONG_NS));
	pthread_setcanceltype(type, NULL);
	return r == -EINTR ? r : 0;
}

/* Number of entries, 0: look again, or -errno. The kernel's part is a cancellation point. */
static int sleep_once(struct set *p, uint64_t left)
{
	struct cv_sock *s = lone(p);

	volatile int r = 0;
	uint64_t n;

	if (s)
		return sleep_lone(p, s, left);
	p->k[p->n].revents = 0;
	start_waiting(p);
	pthread_cleanup_push(stop_waiting, p);
	if (!anything(p))
		r = kernel_wait(p, left);
	pthread_cleanup_pop(1);
	if (r <= 0)
		return r;
	if (p->k[p->n].revents)
		cv_sys3(SYS_read, p->wake_fd, &n, sizeof(n));
	return join(p);
}

/* ---- the loop -------------------------------------------------------------------------------------------------------------------- */

/* Until something of ours is ready, or the kernel is due, or a signal, or the time. */
static int spin(struct set *p, uint64_t until)
{
	uint64_t now;
	int r;

	do {
		r = examine(p);
		if (r || !p->linked || cv_signals_seen() != p->signals)
			break;
		now = cv_ticks();
		if (unlikely(now >= p->yield_at) && cv_spin_yield(&p->yield_at)) {
			p->spin_end = now;
			break;
		}
		cv_pause();
	} while (now < until);
	return r;
}

static int poll_loop(struct set *p)
{
	uint64_t began = 0, left, now;
	struct cv_sock *spun = NULL;
	int r, ours = examine(p);

	for (;;) {
		/* Entries of the kernel's that are ready too must be in the answer. */
		r = began && p->mask && !ours ? 0 : ask_kernel(p, ours);
		if (r || p->deadline == 0)
			break;
		if (cv_signals_seen() != p->signals) {
			r = -EINTR;
			break;
		}
		left = ns_left(p);
		if (!left)
			break;
		now = cv_ticks();
		if (!began) {
			began = now;
			p->yield_at = cv_spin_first(now);
			/* With a mask of its own the wait must not run handlers that the mask blocks: no spinning. */
			spun = p->mask ? NULL : p->linked;
			p->spin_end = spun ? now + cv_spin_budget(spun->spin, spun->set) : now;
		}
		if (p->linked && now < p->spin_end) {
			uint64_t step = cv_min_u64(left, KERNEL_US * 1000) * cv_ticks_per_us() / 1000 + 1;

			ours = spin(p, cv_min_u64(now + step, p->spin_end));
			continue;
		}
		r = sleep_once(p, left);
		if (r)
			break;
		ours = examine(p);
	}
	if (spun && r >= 0)
		cv_spin_feedback(&spun->spin, spun->set, r > 0, cv_ticks() - began);
	return r;
}

int cv_poll_careful(struct pollfd *fds, nfds_t n, int64_t timeout_ns, const sigset_t *mask, const uint16_t *accept)
{
	struct pollfd small_k[CV_POLL_SMALL + 1];
	struct entry small_e[CV_POLL_SMALL];
	struct set p = {.fds = fds, .n = n, .k = small_k, .e = small_e, .accept = accept, .mask = mask, .deadline = NO_DEADLINE};
	size_t size = 0;
	int r;

	p.signals = cv_signals_seen();
	if (timeout_ns >= 0)
		p.deadline = timeout_ns ? cv_now_ns() + (uint64_t)timeout_ns : 0;
	p.wake_fd = timeout_ns ? cv_thread_wake_fd() : -1;
	if (n > CV_POLL_SMALL) {
		size = (n + 1) * sizeof(*p.k) + n * sizeof(*p.e);
		p.e = cv_poll_scratch(size);
		if (!p.e)
			return -ENOMEM;
		p.k = (struct pollfd *)(p.e + n);
	} else {
		for (nfds_t i = 0; i < n; i++)
			p.e[i].waiting = p.e[i].muted = false;
	}
	r = poll_loop(&p);
	if (size)
		cv_poll_scratch_free(p.e, size);
	return r;
}
