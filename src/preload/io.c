/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The two calls behind every read and write. LINKED is the fast path: lock, engine, unlock. Else CAREFUL: the same with kernel calls that never block,
 * and sleeping in poll on the twin and on the thread's wake fd.
 */
#include "../base/clock.h"
#include "owner.h"
#include "sig.h"
#include "sock_life.h"
#include "spin.h"
#include "upgrade.h"
#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <sys/epoll.h>

/* One call under way: what it moves and how long it may wait. */
struct io {
	struct cv_sock *s;
	int fd, flags;
	const struct iovec *iov;
	int iovcnt;
	size_t total, done;
	bool tx, nonblock;
	uint64_t deadline; /* ns; 0 = not computed, UINT64_MAX = none */
	uint32_t signals;  /* deliveries before it began */
};

static ssize_t fail(long err)
{
	errno = (int)-err;
	return -1;
}

static struct cv_lock *half_lock(const struct io *io)
{
	return io->tx ? &io->s->tx : &io->s->rx;
}

static bool iov_total(const struct iovec *iov, int n, size_t *total)
{
	size_t sum = 0;

	if (unlikely(n < 0 || n > IOV_MAX))
		return false;
	for (int i = 0; i < n; i++) {
		if (unlikely(iov[i].iov_len > (size_t)SSIZE_MAX - sum))
			return false;
		sum += iov[i].iov_len;
	}
	*total = sum;
	return true;
}

/* The rest of the iovec after `skip` bytes, at most `max` pieces: the kernel and the engine see only what is still to do. */
static int iov_rest(struct iovec *out, int max, const struct iovec *iov, int n, size_t skip)
{
	int k = 0;

	for (int i = 0; i < n && k < max; i++) {
		if (skip >= iov[i].iov_len) {
			skip -= iov[i].iov_len;
			continue;
		}
		out[k].iov_base = (char *)iov[i].iov_base + skip;
		out[k++].iov_len = iov[i].iov_len - skip;
		skip = 0;
	}
	return k;
}

static ssize_t twin_call(const struct io *io, struct iovec *iov, int n)
{
	struct msghdr m = {.msg_iov = iov, .msg_iovlen = (size_t)n};
	int flags = (io->flags & ~MSG_WAITALL) | MSG_DONTWAIT;

	if (io->tx)
		return cv_sys3(SYS_sendmsg, io->s->fd, &m, flags | MSG_NOSIGNAL);
	return cv_sys3(SYS_recvmsg, io->s->fd, &m, flags);
}

/* Bytes over TCP are taken from the kernel's own count: cv_engine_count_twin(). */
static void account(struct io *io, ssize_t n)
{
	if (!(io->flags & MSG_PEEK))
		cv_row_add(io->tx ? &io->s->row->tx_link : &io->s->row->rx_link, (uint64_t)n);
}

/* The peer closed or reset its end: send must find that out now, not when the agent gets to it. tx held. */
static CV_COLD void look_at_end(struct cv_sock *s)
{
	cv_lock(&s->rx);
	cv_stream_advance(&s->st);
	cv_unlock(&s->rx);
}

/* One try, the half's lock held: the engine, or the kernel where the half is RAW. */
static ssize_t attempt(struct io *io, bool stalled)
{
	struct cv_stream *st = &io->s->st;
	struct iovec rest[16], *iov = (struct iovec *)io->iov;
	int n = io->iovcnt;
	bool ring = io->tx ? st->tx_state == CV_RING : st->rx_state == CV_RING;
	ssize_t r;

	if (io->done) {
		n = iov_rest(rest, (int)CV_ARRAY_LEN(rest), io->iov, io->iovcnt, io->done);
		iov = rest;
	}
	if (io->tx && ring && unlikely(atomic_load_explicit(&st->rx.w->end, memory_order_relaxed) & (CV_END_RST | CV_END_CLOSED)))
		look_at_end(io->s);
	if (io->tx)
		r = cv_stream_send(st, iov, n, io->total - io->done, stalled);
	else
		r = cv_stream_recv(st, iov, n, io->total - io->done, (io->flags & MSG_PEEK) != 0);
	if (unlikely(r == CV_USE_TWIN)) {
		r = twin_call(io, iov, n);
		ring = false;
	}
	if (likely(r > 0) && likely(ring))
		account(io, r);
	else if (r == -EAGAIN && !io->tx && unlikely(atomic_load_explicit(&io->s->rd_shut, memory_order_relaxed)))
		r = 0;
	return r;
}

/* Still the connection that the call began on, perhaps excluded meanwhile: then attempt() goes to the kernel. */
static bool still_there(const struct io *io)
{
	return cv_sock_at(io->s, io->fd) || atomic_load_explicit(&io->s->orphan, memory_order_relaxed);
}

/* ---- waiting ------------------------------------------------------------------------------------------------------------------- */

static uint64_t time_left(struct io *io)
{
	uint64_t now;

	if (!io->deadline) {
		uint64_t t = cv_sock_timeo(io->s, io->fd, io->tx);

		io->deadline = t ? cv_now_ns() + t : UINT64_MAX;
	}
	if (io->deadline == UINT64_MAX)
		return UINT64_MAX;
	now = cv_now_ns();
	return now < io->deadline ? io->deadline - now : 0;
}

static bool half_news(const struct io *io)
{
	struct cv_sock *s = io->s;
	struct cv_stream *st = &s->st;

	if (atomic_load_explicit(&s->mode, memory_order_relaxed) != CV_LINKED)
		return true;
	if (io->tx)
		return atomic_load_explicit(&st->tx.r->head, memory_order_relaxed) != st->tx.head;
	return atomic_load_explicit(&st->rx.w->tail, memory_order_relaxed) != st->rx.head ||
	       atomic_load_explicit(&st->rx.w->end, memory_order_relaxed);
}

/* True when it paid. Reads of the lines are hints; the next attempt decides. */
static bool spin(struct io *io)
{
	uint32_t budget = cv_spin_budget(io->s->spin, io->s->set);
	uint64_t begin, now, yield_at;
	bool paid = false, shared = false;

	if (!budget)
		goto out;
	begin = now = cv_ticks();
	yield_at = cv_spin_first(begin);
	do {
		for (int i = 0; i < 16 && !paid; i++) {
			paid = half_news(io);
			cv_pause();
		}
		now = cv_ticks();
		if (unlikely(now >= yield_at) && !paid) {
			shared = cv_spin_yield(&yield_at);
			paid = half_news(io);
		}
	} while (!paid && !shared && now - begin < budget && cv_signals_seen() == io->signals);
	cv_spin_feedback(&io->s->spin, io->s->set, paid, now - begin);
	return paid;
out:
	cv_spin_feedback(&io->s->spin, io->s->set, false, 0);
	return false;
}

/* A signal ended the wait. Where all that came are restarting ones the kernel would have gone on. */
static int interrupted(struct io *io)
{
	if (cv_signals_restart(io->signals) && io->deadline == UINT64_MAX) {
		io->signals = cv_signals_seen();
		return 0;
	}
	return -EINTR;
}

/* LINKED: sleep on the link until the peer or somebody here has news. 0: try again; 1: *r is the call's result; -EINTR; -EAGAIN: time is up. */
static int sleep_linked(struct io *io, ssize_t *r)
{
	struct cv_sock *s = io->s;
	struct cv_wait ticket;
	uint64_t left = time_left(io);
	int err;

	if (!left)
		return -EAGAIN;
	cv_lock(half_lock(io));
	if (!still_there(io) || atomic_load_explicit(&s->mode, memory_order_relaxed) != CV_LINKED) {
		cv_unlock(half_lock(io));
		return 0;
	}
	ticket = s->link_ops->wait_begin(&s->st, io->tx);
	*r = attempt(io, true);
	cv_unlock(half_lock(io));
	if (*r != -EAGAIN)
		return 1;
	if (cv_signals_seen() != io->signals)
		return interrupted(io);
	ticket.also = &cv_signals_here; /* a handler that runs between here and the sleep */
	ticket.also_value = io->signals;
	err = s->link_ops->wait(&ticket, left);
	return err == -EINTR ? interrupted(io) : 0;
}

/* CAREFUL: sleep in poll on the twin, when it counts, and on the wake fd. Results as above. */
static int sleep_careful(struct io *io, ssize_t *r)
{
	struct cv_sock *s = io->s;
	struct cv_waiter w = {.wake_fd = cv_thread_wake_fd()};
	uint64_t left = time_left(io), n;
	uint32_t twin = 0;
	struct pollfd p[2];
	struct timespec ts;
	bool linked;
	long err;

	if (!left)
		return -EAGAIN;
	cv_sock_add_waiter(s, &w);
	cv_sock_lock(s);
	*r = -EBADF;
	if (still_there(io)) {
		*r = attempt(io, true);
		cv_stream_poll(&s->st, &twin);
	}
	linked = atomic_load_explicit(&s->mode, memory_order_relaxed) == CV_LINKED; /* meanwhile: no ring would come here */
	cv_sock_unlock(s);
	if (*r != -EAGAIN || linked) {
		cv_sock_del_waiter(s, &w);
		return *r != -EAGAIN;
	}
	p[0] = (struct pollfd){.fd = w.wake_fd, .events = POLLIN};
	p[1] = (struct pollfd){.fd = s->fd, .events = io->tx ? POLLOUT : POLLIN | POLLRDHUP};
	ts = cv_timespec(left);
	err = cv_sys5(SYS_ppoll, p, twin & (io->tx ? EPOLLOUT : EPOLLIN) ? 2 : 1, left == UINT64_MAX ? NULL : &ts, NULL, 8);
	cv_sock_del_waiter(s, &w);
	if (p[0].revents)
		cv_sys3(SYS_read, w.wake_fd, &n, sizeof(n));
	return err == -EINTR ? interrupted(io) : 0;
}

/* ---- the loop ------------------------------------------------------------------------------------------------------------------ */

static bool enough(const struct io *io)
{
	return io->done == io->total || (!io->tx && !(io->flags & MSG_WAITALL)) || (io->flags & MSG_PEEK);
}

static ssize_t finish(struct io *io, ssize_t r)
{
	if (io->done)
		return (ssize_t)io->done;
	if (r >= 0)
		return r;
	if (r == -EPIPE && io->tx && !(io->flags & MSG_NOSIGNAL))
		cv_sys3(SYS_tgkill, cv_sys0(SYS_getpid), cv_sys0(SYS_gettid), SIGPIPE);
	return fail(r);
}

/* A full ring, and the caller does not wait: whoever waits for EPOLLOUT is to be told. */
static ssize_t attempt_with_bell(struct io *io)
{
	struct cv_sock *s = io->s;

	s->link_ops->want(&s->st, s->port.bell, CV_WANT_TX_BELL, 0);
	return attempt(io, false);
}

static CV_COLD ssize_t io_wait(struct io *io, ssize_t r)
{
	struct cv_sock *s = io->s;
	int how;

	for (;;) {
		if (r > 0) {
			io->done += (size_t)r;
			if (enough(io))
				return (ssize_t)io->done;
			r = -EAGAIN;
			if (!io->nonblock)
				goto again;
		}
		if (r != -EAGAIN || io->nonblock)
			return finish(io, r);
		if (atomic_load_explicit(&s->mode, memory_order_acquire) == CV_LINKED)
			how = spin(io) ? 0 : sleep_linked(io, &r);
		else
			how = sleep_careful(io, &r);
		if (how < 0)
			return finish(io, how);
		if (how == 1)
			continue;
again:
		cv_lock(half_lock(io));
		r = still_there(io) ? attempt(io, false) : -EBADF;
		cv_unlock(half_lock(io));
	}
}

static CV_COLD ssize_t io_slow(struct io *io, ssize_t r)
{
	struct cv_sock *s = io->s;

	if (io->nonblock)
		return io_wait(io, r);
	atomic_fetch_add_explicit(&s->inside, 1, memory_order_acq_rel);
	r = io_wait(io, r);
	cv_sock_outside(s);
	return r;
}

static ssize_t io_run(struct io *io)
{
	struct cv_sock *s = io->s;
	ssize_t r;

	if (cv_owner_shared(s) && cv_owner_io(s, io->fd))
		return fail(-ECONNRESET);
	cv_lock(half_lock(io));
	if (unlikely(!cv_sock_valid(s, io->fd))) {
		cv_unlock(half_lock(io));
		return CV_IO_REAL; /* closed or excluded meanwhile: the kernel knows */
	}
	r = attempt(io, false);
	if (unlikely(r == -EAGAIN && io->tx && io->nonblock && atomic_load_explicit(&s->mode, memory_order_relaxed) == CV_LINKED))
		r = attempt_with_bell(io);
	cv_unlock(half_lock(io));
	if (likely(r == (ssize_t)io->total && r > 0))
		return r;
	if (r == 0)
		return 0;
	return io_slow(io, r);
}

static ssize_t io_call(struct cv_sock *s, int fd, const struct iovec *iov, int iovcnt, int flags, bool *bracket, bool tx)
{
	struct io io = {.s = s, .fd = fd, .flags = flags, .iov = iov, .iovcnt = iovcnt, .tx = tx};

	*bracket = false;
	if (unlikely(atomic_load_explicit(&s->mode, memory_order_acquire) == CV_PLAIN)) {
		if (cv_owner_shared(s) && cv_owner_io(s, fd))
			return fail(-ECONNRESET);
		cv_sock_qualify(s);
		if (unlikely(s->wait_until))
			cv_sock_await(s);
		if (cv_sock_enter(s)) {
			*bracket = true;
			return CV_IO_REAL;
		}
	}
	if (unlikely(!iov_total(iov, iovcnt, &io.total)))
		return CV_IO_REAL; /* the kernel has the error */
	if (unlikely(!io.total && tx && !(s->st.tx_slow)))
		return 0;
	io.nonblock = (flags & MSG_DONTWAIT) || atomic_load_explicit(&s->nonblock, memory_order_relaxed);
	io.signals = cv_signals_seen();
	return io_run(&io);
}

ssize_t cv_io_send(struct cv_sock *s, int fd, const struct iovec *iov, int iovcnt, int flags, bool *bracket)
{
	return io_call(s, fd, iov, iovcnt, flags, bracket, true);
}

ssize_t cv_io_recv(struct cv_sock *s, int fd, const struct iovec *iov, int iovcnt, int flags, bool *bracket)
{
	return io_call(s, fd, iov, iovcnt, flags, bracket, false);
}
