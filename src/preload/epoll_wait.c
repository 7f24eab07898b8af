/* SPDX-License-Identifier: Apache-2.0 */
/*
 * epoll_wait: links first, the kernel often enough, then spin, then arm, look again, sleep.
 *
 * A thread that goes to sleep arms every hot bell; one that returns to the program while others sleep, or while the set's own
 * descriptor is polled, does so too. So whenever nobody is awake in here, either a bell is armed or the wake fd was written.
 */
#include "../observe/log.h"
#include "epoll_int.h"
#include "sig.h"
#include "spin.h"
#include "wrap.h"
#include "../observe/stats.h"
#include <limits.h>

#define NO_DEADLINE UINT64_MAX

/* Sleep as the program asked, but no longer than `left` ns. A cancellation point. */
static int kernel_sleep(int epfd, struct epoll_event *ev, int max, uint64_t left, const void *mask)
{
	static _Atomic bool no_pwait2;
	uint64_t ms = left / 1000000 + (left % 1000000 != 0);

	if (left == NO_DEADLINE)
		return cv_real.epoll_pwait(epfd, ev, max, -1, mask);
	/* Whole milliseconds would be late by up to one. */
	if (left < 20000000 && left % 1000000 && !atomic_load_explicit(&no_pwait2, memory_order_relaxed)) {
		struct timespec ts = {.tv_sec = 0, .tv_nsec = (long)left};
		int saved = errno, n = cv_real.epoll_pwait2(epfd, ev, max, &ts, mask);

		if (n >= 0 || errno != ENOSYS)
			return n;
		errno = saved;
		atomic_store_explicit(&no_pwait2, true, memory_order_relaxed);
	}
	return cv_real.epoll_pwait(epfd, ev, max, ms > INT_MAX ? INT_MAX : (int)ms, mask);
}

/* Before returning to the program. */
static CV_COLD void leave_armed(struct cv_epoll *e)
{
	cv_lock(&e->lock);
	if (atomic_load_explicit(&e->polled, memory_order_relaxed))
		cv_ep_show(e);
	else if (cv_ep_arm(e) || cv_ep_any_ready(e))
		cv_ep_wake(e);
	cv_unlock(&e->lock);
}

static inline int leave(struct cv_epoll *e, int n)
{
	if (unlikely(atomic_load_explicit(&e->sleepers, memory_order_seq_cst) || atomic_load_explicit(&e->polled, memory_order_relaxed)))
		leave_armed(e);
	return n;
}

void cv_epoll_polled(struct cv_epoll *e)
{
	atomic_store_explicit(&e->polled, true, memory_order_seq_cst);
	if (e->users || e->wake_fd)
		leave_armed(e);
}

/* Sets inside this one: what they show must be what they have before the kernel is asked. */
static CV_COLD void show_inner(struct cv_epoll *e)
{
	for (unsigned i = 0; i < CV_ARRAY_LEN(e->inner); i++) {
		int fd = atomic_load_explicit(&e->inner[i], memory_order_relaxed) - 1;
		struct cv_epoll *in = fd >= 0 ? cv_fd_epoll(fd) : NULL;

		if (in)
			cv_epoll_polled(in);
	}
}

void cv_epoll_nest(struct cv_epoll *outer, int fd)
{
	for (unsigned i = 0; outer && i < CV_ARRAY_LEN(outer->inner); i++) {
		int zero = 0;

		if (outer->inner[i] == fd + 1 || atomic_compare_exchange_strong(&outer->inner[i], &zero, fd + 1))
			break;
	}
	if (outer)
		outer->nests = true;
	cv_epoll_polled(cv_fd_epoll(fd));
}

/* ---- waiting --------------------------------------------------------------------------------------------------------------------- */

#define IN_VAIN_FEW 4	  /* wake-ups: then a short sleep after each, */
#define IN_VAIN_LONG 100  /* then a long one, */
#define IN_VAIN_WARN 2100 /* and two seconds later a word */
#define NAP_NS 20000

struct wait {
	struct cv_epoll *e;
	int epfd, max;
	struct epoll_event *ev;
	uint64_t deadline; /* ns; NO_DEADLINE */
	const void *mask;
	uint32_t signals;
	uint64_t began, spin_end; /* ticks */
	uint64_t yield_at;
	uint32_t in_vain; /* sleeps that brought the program nothing */
	uint32_t naps;
};

/* Until something is there, or `until` (ticks). No lock; the bells that we look at are kept open for us. */
static void spin(struct wait *w, uint64_t until)
{
	struct cv_epoll *e = w->e;
	struct cv_bell *bell[CV_EP_HOT];
	bool (*pending[CV_EP_HOT])(const struct cv_bell *b);
	uint64_t last;
	unsigned n = 0;

	cv_lock(&e->lock);
	for (struct cv_epbell *eb = e->hot; eb && n < CV_EP_HOT; eb = eb->hot_next) {
		bell[n] = eb->b;
		pending[n++] = eb->link->ops->bell_pending;
	}
	e->pollers++;
	cv_unlock(&e->lock);
	last = cv_ticks();
	for (;;) {
		bool got = atomic_load_explicit(&e->ready_head, memory_order_relaxed) != NULL;
		uint64_t now;

		for (unsigned i = 0; i < n && !got; i++)
			got = pending[i](bell[i]);
		now = cv_ticks();
		if (unlikely(now - last > cv_ep_us(CV_SPIN_GAP_US)))
			cv_spin_lost(now);
		last = now;
		if (got || now >= until || cv_signals_seen() != w->signals || !e->users)
			break;
		if (unlikely(now >= w->yield_at)) {
			if (cv_spin_yield(&w->yield_at)) {
				e->no_spin = true;
				break;
			}
			last = cv_ticks();
		}
		cv_pause();
	}
	cv_lock(&e->lock);
	if (--e->pollers == 0 && unlikely(e->dead))
		cv_ep_reap(e);
	cv_unlock(&e->lock);
}

static uint64_t ns_left(const struct wait *w)
{
	uint64_t now;

	if (w->deadline == NO_DEADLINE)
		return NO_DEADLINE;
	now = cv_now_ns();
	return now < w->deadline ? w->deadline - now : 0;
}

/*
 * The kernel reports what the program shall not see: the twin of a connection that is being switched, say. Whoever works on that may need this CPU. If it
 * does not end, the kernel has a registration that has no record here.
 */
static CV_COLD void woken_in_vain(struct wait *w, uint64_t left)
{
	struct timespec ts = {.tv_nsec = w->in_vain < IN_VAIN_LONG ? NAP_NS : 1000000};

	if (++w->in_vain > IN_VAIN_FEW && left > (uint64_t)ts.tv_nsec && !w->mask)
		cv_sys2(SYS_nanosleep, &ts, 0);
	if (w->in_vain == IN_VAIN_WARN)
		cv_warn_once("epoll set %d: the kernel reports a descriptor that culvert has no record of", w->e->fd);
}

/* Events, 0: look again, or -errno. */
static int sleep_once(struct wait *w, uint64_t left)
{
	struct cv_epoll *e = w->e;
	bool again;
	int n, err, kept;

	cv_lock(&e->lock);
	atomic_fetch_add_explicit(&e->sleepers, 1, memory_order_seq_cst);
	again = cv_ep_arm(e) || atomic_load_explicit(&e->ready_head, memory_order_relaxed);
	if (again && atomic_fetch_sub_explicit(&e->sleepers, 1, memory_order_seq_cst) == 1 && !e->polled)
		cv_ep_disarm(e);
	cv_unlock(&e->lock);
	if (again) {
		cv_sys0(SYS_sched_yield); /* whoever holds that socket's locks may need this CPU */
		return 0;
	}

	cv_count(CV_CTR_SLEEPS, 1);
	n = kernel_sleep(w->epfd, w->ev, w->max, left, w->mask);
	err = errno;
	cv_lock(&e->lock);
	if (atomic_fetch_sub_explicit(&e->sleepers, 1, memory_order_seq_cst) == 1 && !e->polled)
		cv_ep_disarm(e);
	cv_unlock(&e->lock);
	atomic_store_explicit(&e->kernel_at, cv_ticks(), memory_order_relaxed);
	if (n < 0)
		return -err;
	kept = cv_ep_filter(e, w->ev, n);
	if (unlikely(n > 0 && !kept))
		woken_in_vain(w, left);
	return kept;
}

#define NAPS_MAX 2
#define NAP_BATCH 3 /* events that the last waits brought, at least */

/*
 * All CPUs are busy, and many peers have work for us: to arm the bells would make the first of them wake us, often onto its own CPU, before the others
 * have had their turn. A short sleep that nobody ends leaves them the CPU, and then serves them all.
 */
static bool nap(struct wait *w, uint64_t left)
{
	struct timespec ts = {.tv_nsec = NAP_NS};

	if (likely(w->e->batch < NAP_BATCH * 16) || w->naps == NAPS_MAX || w->mask || left < 4 * NAP_NS || !w->e->users || !cv_spin_busy(cv_ticks()))
		return false;
	w->naps++;
	cv_sys2(SYS_nanosleep, &ts, NULL);
	return true;
}

/* Nothing is there: spin for a while. False: the time for that is over. */
static bool spin_some(struct wait *w, uint64_t left)
{
	uint64_t now = cv_ticks(), step = cv_min_u64(left, CV_EP_KERNEL_SPIN_US * 1000);

	if (!w->began) {
		const struct cv_settings *set = w->e->set;

		w->began = now;
		w->yield_at = cv_spin_first(now);
		/* With a mask of its own the wait must not run handlers that the mask blocks: no spinning. */
		w->spin_end = w->mask || !set || !w->e->users ? now : now + cv_spin_budget(w->e->spin, set);
	}
	if (now >= w->spin_end)
		return false;
	if (unlikely(w->e->no_spin)) { /* this time we sleep, even if the last wait ended well */
		w->e->no_spin = false;
		w->spin_end = now;
		return false;
	}
	spin(w, cv_min_u64(now + cv_ep_us(1) * step / 1000 + 1, w->spin_end));
	return true;
}

/*
 * Nothing was there, but a socket was being worked on: let that be done, and look again, before the program is told that there is
 * nothing. e->lock cannot be held meanwhile, it comes after the socket's.
 */
static CV_COLD bool let_finish(struct cv_epoll *e, unsigned *times)
{
	struct cv_sock *s = atomic_exchange_explicit(&e->busy, NULL, memory_order_relaxed);

	if (!s || ++*times > 8)
		return false;
	cv_lock(&s->tx);
	cv_lock(&s->rx);
	cv_unlock(&s->rx);
	cv_unlock(&s->tx);
	return true;
}

static int wait_served(struct wait *w)
{
	struct cv_epoll *e = w->e;
	enum cv_ep_ask ask = w->deadline ? CV_EP_ASK_FAIR : CV_EP_ASK_MUST;
	unsigned busy = 0;
	uint64_t left;
	int n;

	for (;;) {
		n = cv_ep_look(e, w->epfd, w->ev, w->max, ask == CV_EP_ASK_DUE ? CV_EP_KERNEL_SPIN_US : CV_EP_KERNEL_BUSY_US, ask);
		if (!n && unlikely(e->busy) && let_finish(e, &busy))
			continue;
		if (n || w->deadline == 0)
			break;
		if (unlikely(cv_fd_epoll(w->epfd) != e))
			return -EBADF; /* closed by another thread while we waited */
		left = ns_left(w);
		if (!left)
			break;
		if (spin_some(w, left) || nap(w, left)) {
			ask = CV_EP_ASK_DUE;
		} else {
			ask = CV_EP_ASK_FAIR;
			n = cv_ep_complete(e, w->ev, w->max, sleep_once(w, left));
			if (n)
				break;
		}
		if (unlikely(cv_signals_seen() != w->signals)) {
			n = cv_ep_look(e, w->epfd, w->ev, w->max, CV_EP_KERNEL_SPIN_US, CV_EP_ASK_MUST);
			n = n ? n : -EINTR;
			break;
		}
	}
	if (n > 0)
		e->batch += (uint32_t)((n * 16 - (int)e->batch) / 4);
	if (w->began && e->set && n >= 0)
		cv_spin_feedback(&e->spin, e->set, n > 0, cv_ticks() - w->began);
	return leave(e, n);
}

static bool unserved(struct cv_epoll *e)
{
	return !atomic_load_explicit(&e->users, memory_order_seq_cst) && !atomic_load_explicit(&e->ready_head, memory_order_seq_cst);
}

/*
 * Nothing is served here now. It may be before the wait ends: then the wake fd is written, or the new bell rings. True: *n is the
 * result, as the kernel's.
 */
static bool sleep_unserved(struct cv_epoll *e, int epfd, struct epoll_event *ev, int max, int64_t timeout_ns, const void *mask, int *n)
{
	bool slept;

	atomic_fetch_add_explicit(&e->sleepers, 1, memory_order_seq_cst);
	/* Again, now that it shows that we sleep. Partner: cv_ep_announce(). */
	slept = unserved(e);
	if (slept)
		*n = kernel_sleep(epfd, ev, max, timeout_ns < 0 ? NO_DEADLINE : (uint64_t)timeout_ns, mask);
	atomic_fetch_sub_explicit(&e->sleepers, 1, memory_order_seq_cst);
	return slept;
}

int cv_ep_wait(struct cv_epoll *e, int epfd, struct epoll_event *ev, int max, int64_t timeout_ns, const void *mask)
{
	struct wait w = {.e = e, .epfd = epfd, .max = max, .ev = ev, .mask = mask, .deadline = NO_DEADLINE, .signals = cv_signals_seen()};
	int n;

	if (timeout_ns > 0)
		w.deadline = cv_now_ns() + (uint64_t)timeout_ns;
	else if (timeout_ns == 0)
		w.deadline = 0;
	if (unlikely(e->foreign))
		cv_ep_unforeign(e);
	if (unlikely(e->nests))
		show_inner(e);
	if (unserved(e) && sleep_unserved(e, epfd, ev, max, timeout_ns, mask, &n)) {
		if (n <= 0)
			return n < 0 ? -errno : 0;
		n = cv_ep_filter(e, ev, n);
		if (n > 0)
			return leave(e, n);
	}
	return wait_served(&w);
}

/* ---- the calls ------------------------------------------------------------------------------------------------------------------- */

static inline bool usable(const struct epoll_event *ev, int max)
{
	return max > 0 && (size_t)max <= INT_MAX / sizeof(*ev) && (uintptr_t)ev >= 4096;
}

/*
 * A set that we did not see being made, or a call that must fail. While it slept the set may have become known, with the first of our
 * sockets in it.
 */
static int unknown(int epfd, struct epoll_event *ev, int max, int64_t timeout_ns, int n)
{
	struct cv_epoll *e = n > 0 ? cv_fd_epoll(epfd) : NULL;

	if (likely(!e))
		return n;
	n = cv_ep_filter(e, ev, n);
	return n ? n : CV_RET(cv_ep_wait(e, epfd, ev, max, timeout_ns, NULL));
}

static inline int64_t ms_to_ns(int ms)
{
	return ms < 0 ? -1 : ms * INT64_C(1000000);
}

static int created(int fd)
{
	if (fd >= 0 && !cv_borrowed()) {
		cv_fd_fresh(fd);
		cv_epoll_new(fd);
	}
	return fd;
}

int epoll_create(int size)
{
	return created(cv_real.epoll_create(size));
}

int epoll_create1(int flags)
{
	return created(cv_real.epoll_create1(flags));
}

int epoll_wait(int epfd, struct epoll_event *ev, int max, int timeout)
{
	struct cv_epoll *e = cv_fd_epoll(epfd);

	if (unlikely(!e || !usable(ev, max)))
		return unknown(epfd, ev, max, ms_to_ns(timeout), cv_real.epoll_wait(epfd, ev, max, timeout));
	return CV_RET(cv_ep_wait(e, epfd, ev, max, ms_to_ns(timeout), NULL));
}

int epoll_pwait(int epfd, struct epoll_event *ev, int max, int timeout, const sigset_t *mask)
{
	struct cv_epoll *e = cv_fd_epoll(epfd);

	if (unlikely(!e || !usable(ev, max)))
		return unknown(epfd, ev, max, ms_to_ns(timeout), cv_real.epoll_pwait(epfd, ev, max, timeout, mask));
	return CV_RET(cv_ep_wait(e, epfd, ev, max, ms_to_ns(timeout), mask));
}

int epoll_pwait2(int epfd, struct epoll_event *ev, int max, const struct timespec *timeout, const sigset_t *mask)
{
	struct cv_epoll *e = cv_fd_epoll(epfd);
	int64_t ns = -1;

	if (timeout && timeout->tv_sec < INT64_C(1) << 33) /* more is as good as never */
		ns = timeout->tv_sec * INT64_C(1000000000) + timeout->tv_nsec;
	if (unlikely(!e || !usable(ev, max) || (timeout && (timeout->tv_sec < 0 || (unsigned long)timeout->tv_nsec >= 1000000000u))))
		return unknown(epfd, ev, max, ns, cv_real.epoll_pwait2(epfd, ev, max, timeout, mask));
	return CV_RET(cv_ep_wait(e, epfd, ev, max, ns, mask));
}
