/* SPDX-License-Identifier: Apache-2.0 */
/* What happens to tracked connections outside the data path: shutdown, ioctl, the way back to TCP, fork, exit. */
#include "sock_life.h"
#include "../base/clock.h"
#include "../link/internal_fd.h"
#include "engine.h"
#include "owner.h"
#include "real.h"
#include "upgrade.h"
#include <errno.h>
#include <linux/sockios.h>
#include <poll.h>
#include <sys/ioctl.h>

#define FALL_BACK_DEFAULT_NS 5000000000ull

/* ---- the way back to TCP -------------------------------------------------------------------------------------------------------- */

/* Sleep until somebody changes the sock, at most until `until`. */
static void wait_change(struct cv_waiter *w, uint64_t until)
{
	uint64_t now = cv_now_ns(), n;
	struct timespec ts = {.tv_nsec = 1000000};
	struct pollfd p = {.fd = w->wake_fd, .events = POLLIN};

	if (now >= until)
		return;
	if (w->wake_fd >= 0)
		ts.tv_nsec = (long)cv_min_u64(until - now, 100000000);
	cv_sys5(SYS_ppoll, &p, w->wake_fd >= 0 ? 1 : 0, &ts, NULL, 8);
	if (p.revents)
		cv_sys3(SYS_read, w->wake_fd, &n, sizeof(n));
}

/* Who stays and goes on reading has what is left in the ring; what follows is on TCP. tx and rx held. */
static bool fallen_back(const struct cv_sock *s, enum cv_leave how)
{
	return how == CV_LEAVE_STAY ? s->st.tx_state == CV_RAW : cv_engine_raw(s);
}

/* Time is up. Not left to the agent's own deadline: after an exec there is no agent. */
static CV_COLD void give_up(struct cv_sock *s, enum cv_leave how)
{
	cv_sock_lock(s);
	if (!fallen_back(s, how))
		cv_engine_reset(s);
	cv_sock_unlock(s);
	cv_agent_post(&s->work);
}

/* until: at the latest; the policy's bound counts all the same. */
static int fall_back(struct cv_sock *s, enum cv_leave how, enum cv_reason why, bool stay_out, uint64_t until)
{
	struct cv_waiter w = {.wake_fd = -1};
	bool done;

	if (atomic_load_explicit(&s->foreign, memory_order_relaxed))
		return cv_owner_io(s, s->fd);
	cv_sock_lock(s);
	if (stay_out)
		s->stay_out = true;
	done = cv_engine_raw(s);
	if (done && stay_out && cv_engine_plain(s))
		cv_sock_exclude(s, why);
	else if (!done)
		cv_stream_leave(&s->st, how, why);
	cv_sock_unlock(s);
	if (s->seek != CV_SEEK_NO)
		cv_agent_post(&s->work);
	if (done)
		return 0;
	w.wake_fd = cv_thread_wake_fd();
	until = cv_min_u64(until, cv_now_ns() + (s->set ? s->set->handover_timeout : FALL_BACK_DEFAULT_NS));
	cv_sock_add_waiter(s, &w);
	for (;;) {
		cv_sock_lock(s);
		done = fallen_back(s, how);
		cv_sock_unlock(s);
		if (done || cv_now_ns() >= until)
			break;
		wait_change(&w, until);
	}
	cv_sock_del_waiter(s, &w);
	if (!done)
		give_up(s, how);
	if (done && how == CV_LEAVE_HANDOVER) { /* the fds themselves must be plain before they leave our sight */
		cv_sock_lock(s);
		if (stay_out && cv_engine_plain(s) && cv_fd_get(s->fd) == (uintptr_t)s)
			cv_sock_exclude(s, why);
		cv_sock_unlock(s);
	}
	return done ? 0 : -ETIMEDOUT;
}

int cv_sock_fall_back(struct cv_sock *s, enum cv_leave how, enum cv_reason why, bool stay_out)
{
	return fall_back(s, how, why, stay_out, UINT64_MAX);
}

/* ---- calls ---------------------------------------------------------------------------------------------------------------------- */

int cv_sock_shutdown(struct cv_sock *s, int fd, int how)
{
	int ret = 0;

	if (how < SHUT_RD || how > SHUT_RDWR)
		return -EINVAL;
	if (atomic_load_explicit(&s->foreign, memory_order_relaxed) && cv_owner_io(s, fd))
		return -ENOTCONN;
	cv_sock_lock(s);
	if (!cv_sock_at(s, fd)) { /* closed meanwhile */
		ret = (int)cv_sys2(SYS_shutdown, fd, how);
		cv_sock_unlock(s);
		return ret;
	}
	if (cv_engine_plain(s)) {
		/* The kernel's, and never upgraded from now on; a thread inside a plain call is woken by the kernel. */
		ret = (int)cv_sys2(SYS_shutdown, fd, how);
		s->stay_out = true;
	} else {
		if (how != SHUT_RD && cv_stream_shut_wr(&s->st) == CV_USE_TWIN)
			ret = (int)cv_sys2(SYS_shutdown, fd, SHUT_WR);
		if (how != SHUT_WR)
			atomic_store_explicit(&s->rd_shut, true, memory_order_release); /* not the twin: the agent reads it */
	}
	cv_sock_unlock(s);
	cv_sock_changed(s);
	if (s->seek != CV_SEEK_NO)
		cv_agent_post(&s->work);
	return ret;
}

int cv_sock_ioctl(struct cv_sock *s, int fd, unsigned long req, int *out)
{
	int twin = 0, ret = 0;
	uint64_t left;

	if (atomic_load_explicit(&s->mode, memory_order_acquire) == CV_PLAIN)
		return CV_IO_REAL;
	cv_sock_lock(s);
	switch (cv_sock_at(s, fd) ? req : 0) {
	case FIONREAD:
		left = cv_stream_raw_left(&s->st);
		if (left)
			ret = (int)cv_sys3(SYS_ioctl, fd, FIONREAD, &twin);
		*out = (int)cv_min_u64(cv_stream_inq(&s->st) + cv_min_u64((uint64_t)twin, left), INT32_MAX);
		break;
	case TIOCOUTQ:
	case SIOCOUTQNSD:
		*out = (int)cv_min_u64(cv_stream_outq(&s->st), INT32_MAX);
		if (s->st.tx_state == CV_RAW) {
			ret = (int)cv_sys3(SYS_ioctl, fd, req, &twin);
			*out += twin;
		}
		break;
	case SIOCATMARK: /* out-of-band data never travels on a link; what was before it may still be in one */
		*out = 0;
		if (s->st.rx_state == CV_RAW && !cv_stream_inq(&s->st))
			ret = (int)cv_sys3(SYS_ioctl, fd, SIOCATMARK, out);
		break;
	default:
		ret = CV_IO_REAL;
	}
	cv_sock_unlock(s);
	return ret;
}

int cv_sock_error(struct cv_sock *s, int fd)
{
	int err = 0;

	if (atomic_load_explicit(&s->mode, memory_order_acquire) == CV_PLAIN || cv_owner_shared(s))
		return 0;
	cv_sock_lock(s);
	if (cv_sock_valid(s, fd)) {
		if (s->port.link)
			cv_stream_advance(&s->st); /* what the twin has to say goes into it first */
		err = cv_stream_error(&s->st, true);
		if (err) { /* the twin may have the same to tell: once is enough */
			int twin;
			socklen_t len = sizeof(twin);

			cv_sys5(SYS_getsockopt, fd, SOL_SOCKET, SO_ERROR, &twin, &len);
		}
	}
	cv_sock_unlock(s);
	return err;
}

static void leave_all(struct cv_sock *s, void *arg)
{
	enum cv_reason why = (enum cv_reason)(uintptr_t)arg;

	if ((cv_fd_get(s->fd) & 3) == CV_FD_SOCK)
		cv_sock_fall_back(s, CV_LEAVE_STAY, why, true);
}

void cv_sock_uring(void)
{
	cv_sock_each(leave_all, (void *)(uintptr_t)CV_REASON_URING);
	cv_bar();
}

/* ---- fork ----------------------------------------------------------------------------------------------------------------------- */

/*
 * Parent and child share the twin of every stream; owner.c says who may use it. The parent goes on with its links; the child's copies of streams that were on
 * one are marked foreign and cost nothing until they are used.
 */
void cv_sock_fork_prepare(void)
{
	cv_owner_fork_prepare();
}

void cv_sock_fork_parent(void)
{
	atomic_fetch_add_explicit(&cv_fork_seq, 1, memory_order_relaxed);
}

/* Touch only what must change: every page that we write is copied. */
static void child_sock(struct cv_sock *s, void *arg)
{
	(void)arg;
	if (s->tx.word || s->rx.word || s->wait_lock.word)
		s->tx = s->rx = s->wait_lock = (struct cv_lock){0};
	if (s->in_kernel || s->inside)
		s->in_kernel = s->inside = 0;
	if (s->waiters)
		s->waiters = NULL;
	if (s->mode == CV_PLAIN && s->seek == CV_SEEK_NO && !s->work.queued && !s->timer.pos)
		return;
	s->timer.pos = 0;
	s->work.queued = 0;
	s->twin.events = 0;
	if (s->mode == CV_PLAIN || cv_engine_raw(s)) { /* was only being considered: begin anew here, if this process goes on with it */
		s->seek = CV_SEEK_NO;
		s->listener = NULL;
		s->answered = NULL;
		s->next_calls = s->calls;
		s->mode = CV_PLAIN;
		return;
	}
	s->foreign = 1;
	s->mode = CV_CAREFUL;
}

void cv_sock_fork_child(void)
{
	atomic_fetch_add_explicit(&cv_fork_seq, 1, memory_order_relaxed);
	cv_sock_pool_forked();
	cv_sock_each(child_sock, NULL);
	cv_owner_fork_child();
	cv_upgrade_forked();
	cv_fd_forked();
}

/* ---- exit ----------------------------------------------------------------------------------------------------------------------- */

/* What close() would have told the peer; the kernel closes the twin. */
static void exit_sock(struct cv_sock *s, void *arg)
{
	uint64_t until = *(uint64_t *)arg;

	if (s->foreign || s->mode == CV_PLAIN)
		return;
	if (cv_owner_shared(s) && !s->closing && s->fd >= 0) { /* children may go on with it */
		fall_back(s, CV_LEAVE_HANDOVER, CV_REASON_FORK, true, until);
		return;
	}
	if (!s->closing)
		cv_sock_end(s);
	/* What is in a ring stays readable for the peer; what is staged or under way to the twin needs us a little longer. */
	while (cv_stream_busy(&s->st) && s->used && cv_now_ns() < until) {
		struct timespec ts = {.tv_nsec = 1000000};

		cv_agent_post(&s->work);
		cv_sys2(SYS_nanosleep, &ts, NULL);
	}
}

void cv_sock_exit(void)
{
	uint64_t until = cv_now_ns() + FALL_BACK_DEFAULT_NS;

	if (cv_agent_running() && !cv_agent_self())
		cv_sock_each(exit_sock, &until);
	cv_stats_close();
}
