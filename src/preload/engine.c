/* SPDX-License-Identifier: Apache-2.0 */
#include "engine.h"
#include "../base/clock.h"
#include "../link/shm.h"
#include "../observe/log.h"
#include "epoll.h"
#include "owner.h"
#include "upgrade.h"
#include <errno.h>
#include <linux/sockios.h>
#include <linux/tcp.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>

#define RING_HOT (256ull << 10) /* about what stays in a core's L2 beside the program's own data */

/* ---- what the engine asks for --------------------------------------------------------------------------------------------------- */

/* Without a descriptor (it was closed behind our back) nothing comes and nothing goes. */
static ssize_t twin_send(struct cv_stream *st, const void *buf, size_t len)
{
	int fd = cv_sock_of(st)->fd;

	return fd < 0 ? -EAGAIN : cv_sys6(SYS_sendto, fd, (long)buf, (long)len, MSG_DONTWAIT | MSG_NOSIGNAL, 0, 0);
}

static ssize_t twin_recv(struct cv_stream *st, void *buf, size_t len, bool peek)
{
	int fd = cv_sock_of(st)->fd;

	return fd < 0 ? -EAGAIN : cv_sys6(SYS_recvfrom, fd, (long)buf, (long)len, MSG_DONTWAIT | (peek ? MSG_PEEK : 0), 0, 0);
}

/* include/net/tcp_states.h: libc's netinet/tcp.h, which has them too, does not go with linux/tcp.h. */
enum { TCP_ESTABLISHED = 1, TCP_TIME_WAIT = 6, TCP_CLOSE = 7, TCP_CLOSE_WAIT = 8, TCP_LAST_ACK = 9, TCP_CLOSING = 11 };

static uint8_t tcp_state(const struct cv_sock *s)
{
	struct tcp_info info = {0};
	socklen_t len = sizeof(info);

	return cv_sys5(SYS_getsockopt, s->fd, IPPROTO_TCP, TCP_INFO, &info, &len) == 0 ? info.tcpi_state : TCP_CLOSE;
}

bool cv_engine_established(const struct cv_sock *s)
{
	return tcp_state(s) == TCP_ESTABLISHED;
}

/* The kernel counts the peer's FIN among the bytes received. */
static uint64_t fin_counted(uint8_t state)
{
	return state == TCP_TIME_WAIT || state == TCP_CLOSE_WAIT || state == TCP_LAST_ACK || state == TCP_CLOSING;
}

static int offsets_once(const struct cv_sock *s, uint64_t *rd, uint64_t *wr)
{
	struct tcp_info info;
	socklen_t len = sizeof(info);
	int inq = 0, outq = 0;
	long err;

	memset(&info, 0, sizeof(info));
	err = cv_sys5(SYS_getsockopt, s->fd, IPPROTO_TCP, TCP_INFO, &info, &len);
	if (!err)
		err = cv_sys3(SYS_ioctl, s->fd, SIOCINQ, &inq);
	if (!err)
		err = cv_sys3(SYS_ioctl, s->fd, SIOCOUTQ, &outq);
	if (err)
		return (int)err;
	if (len < offsetof(struct tcp_info, tcpi_bytes_received) + sizeof(info.tcpi_bytes_received))
		return -ENOTSUP; /* before Linux 4.1 */
	*rd = info.tcpi_bytes_received - (uint64_t)inq - fin_counted(info.tcpi_state);
	*wr = info.tcpi_bytes_acked + (uint64_t)outq - (s->role == CV_ROLE_CLIENT); /* its SYN counts */
	return 0;
}

/* Until two readings agree: an acknowledgement or a segment may come between the calls. */
static int twin_offsets(struct cv_stream *st, uint64_t *rd, uint64_t *wr)
{
	const struct cv_sock *s = cv_sock_of(st);
	uint64_t r0, w0;
	int err = offsets_once(s, rd, wr);

	for (int i = 0; !err && i < 100; i++) {
		r0 = *rd;
		w0 = *wr;
		err = offsets_once(s, rd, wr);
		if (!err && r0 == *rd && w0 == *wr)
			return 0;
	}
	return err ? err : -EAGAIN;
}

static bool twin_alive(struct cv_stream *st)
{
	uint8_t state = tcp_state(cv_sock_of(st));

	return state == TCP_ESTABLISHED || state == TCP_CLOSE_WAIT;
}

static void twin_shut_wr(struct cv_stream *st)
{
	cv_sys2(SYS_shutdown, cv_sock_of(st)->fd, SHUT_WR);
}

/* Locks held, any thread: waiters look again, and the agent brings everything else in line. */
static void changed(struct cv_stream *st)
{
	struct cv_sock *s = cv_sock_of(st);

	cv_sock_changed(s);
	cv_agent_post(&s->work);
}

static void randomness(struct cv_stream *st, void *buf, size_t len)
{
	(void)st;
	if (cv_sys3(SYS_getrandom, buf, len, 0) != (long)len) { /* before its pool is filled, or ENOSYS: never silently weak */
		cv_warn_once("no randomness for a handshake");
		memset(buf, 0, len);
	}
}

static void *page_alloc(size_t len)
{
	void *p = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return p == MAP_FAILED ? NULL : p;
}

static void page_free(void *p, size_t len)
{
	munmap(p, len);
}

/* A stream off any link has nothing to publish to. */
static void no_publish(struct cv_stream *st, uint32_t end)
{
	(void)st;
	(void)end;
}

static void no_credit(struct cv_stream *st, bool fenced)
{
	(void)st;
	(void)fenced;
}

static int no_msg(struct cv_stream *st, const struct cv_msg *m)
{
	(void)st;
	(void)m;
	return -EPIPE;
}

static int no_grow(struct cv_stream *st, uint64_t size, uint8_t **base, uint64_t *got)
{
	(void)st;
	(void)size;
	(void)base;
	(void)got;
	return -ENOTCONN;
}

#define ENGINE_OPS(publish_, credit_, msg_, grow_) \
	{ \
		.twin_send = twin_send, .twin_recv = twin_recv, .twin_offsets = twin_offsets, .twin_alive = twin_alive, .twin_shut_wr = twin_shut_wr, \
		.changed = changed, .random = randomness, .alloc = page_alloc, .free = page_free, .publish = publish_, \
		.credit = credit_, .msg = msg_, .grow = grow_, \
	}

static const struct cv_stream_ops off_link = ENGINE_OPS(no_publish, no_credit, no_msg, no_grow);
static struct cv_stream_ops on_shm = ENGINE_OPS(no_publish, no_credit, no_msg, no_grow);

static void twin_event(struct cv_watch *w, uint32_t events);

void cv_engine_init(struct cv_sock *s)
{
	struct cv_stream_limits none = {0};

	cv_stream_init(&s->st, &off_link, &none);
	s->st.port = &s->port;
	s->twin.fn = twin_event; /* the same each time */
}

void cv_engine_limits(struct cv_sock *s)
{
	s->st.lim = (struct cv_stream_limits){.ring_max = s->set->ring_max,
					      .ring_hot = cv_min_u64(RING_HOT, s->set->ring_max),
					      .spill_max = s->set->spill_max};
}

void cv_engine_attach(struct cv_sock *s)
{
	on_shm.publish = s->link_ops->publish; /* the same values each time */
	on_shm.credit = s->link_ops->credit;
	on_shm.msg = s->link_ops->msg;
	on_shm.grow = s->link_ops->grow;
	s->st.ops = &on_shm;
}

/* ---- after a change ------------------------------------------------------------------------------------------------------------- */

/* Agent's thread, tx and rx held: act upon news. */
static void go_on(struct cv_sock *s)
{
	if (s->closing)
		cv_agent_post(&s->work); /* may free the sock, whose locks are held here */
	else
		cv_engine_settle(s);
}

static void twin_event(struct cv_watch *w, uint32_t events)
{
	struct cv_sock *s = cv_container_of(w, struct cv_sock, twin);

	(void)events;
	cv_sock_lock(s);
	if (s->used && s->twin.events)
		go_on(s);
	cv_sock_unlock(s);
}

static void watch(struct cv_sock *s)
{
	uint32_t needs = cv_stream_needs(&s->st);

	if (s->fd < 0)
		return;
	if (s->twin.fd != s->fd)
		s->twin.events = 0; /* the old number went away, and its registration with it */
	s->twin.fd = s->fd;
	/* Edge-triggered: an EOF, or part of a record, that the engine has seen must not come again and again. */
	cv_agent_watch(&s->twin, needs ? needs | EPOLLET : 0);
}

void cv_engine_count_twin(struct cv_sock *s)
{
	uint64_t rd, wr;

	if (s->fd < 0 || offsets_once(s, &rd, &wr))
		return;
	atomic_store_explicit(&s->row->rx_tcp, rd, memory_order_relaxed);
	atomic_store_explicit(&s->row->tx_tcp, wr, memory_order_relaxed);
}

static void now_linked(struct cv_sock *s)
{
	cv_engine_count_twin(s);
	atomic_store_explicit(&s->row->state, CV_ROW_LINK, memory_order_relaxed);
	atomic_store_explicit(&s->row->transport, CV_ROW_T_SHM, memory_order_relaxed);
	atomic_store_explicit(&s->row->reason, CV_REASON_NONE, memory_order_relaxed);
	cv_row_inc(&s->row->upgrades);
	cv_count(CV_CTR_UPGRADES, 1);
	if (!s->was_linked)
		cv_count(CV_CTR_UPGRADED, 1);
	s->was_linked = true;
	s->rounds = 0;
	s->wait_until = 0;
	atomic_store_explicit(&s->mode, CV_LINKED, memory_order_release);
	cv_epoll_moved(s);
	cv_sock_changed(s);
}

static void no_longer_linked(struct cv_sock *s)
{
	atomic_store_explicit(&s->mode, CV_CAREFUL, memory_order_release);
	atomic_store_explicit(&s->row->state, CV_ROW_RETURNING, memory_order_relaxed);
	atomic_store_explicit(&s->row->transport, CV_ROW_T_TCP, memory_order_relaxed);
	cv_row_inc(&s->row->fallbacks);
	cv_count(CV_CTR_FALLBACKS, 1);
	cv_row_reason(s->row, s->st.reason);
	cv_epoll_moved(s);
	cv_sock_changed(s);
}

static void detach(struct cv_sock *s)
{
	if (!s->port.link)
		return;
	s->link_ops->wake_local(&s->st); /* whoever sleeps on the link's words */
	s->link_ops->detach(&s->st);
	s->st.ops = &off_link;
	cv_owner_unlinked(s);
}

bool cv_engine_raw(const struct cv_sock *s)
{
	return s->st.tx_state == CV_RAW && s->st.rx_state == CV_RAW && !cv_stream_busy(&s->st);
}

bool cv_engine_plain(const struct cv_sock *s)
{
	const struct cv_stream *st = &s->st;

	return cv_engine_raw(s) && !st->rx_eof && !st->tx_dead && !st->spill.len && !atomic_load_explicit(&st->err, memory_order_relaxed);
}

void cv_engine_reset(struct cv_sock *s)
{
	struct sockaddr unspec = {.sa_family = AF_UNSPEC};

	cv_count(CV_CTR_RESETS, 1);
	cv_log(CV_LOG_WARN, "descriptor %d: the return to TCP could not be completed in time; connection reset", s->fd);
	cv_sys3(SYS_connect, s->fd, &unspec, sizeof(unspec)); /* makes the kernel send a RST */
	cv_stream_link_down(&s->st, CV_REASON_TIMEOUT);
	cv_stream_advance(&s->st);
}

void cv_engine_settle(struct cv_sock *s)
{
	struct cv_stream *st = &s->st;
	bool linked = atomic_load_explicit(&s->mode, memory_order_relaxed) == CV_LINKED;
	bool ring;

	if (cv_stream_advance(st) == -EPROTO && s->port.link)
		cv_shm_breach(s->port.link);
	if (s->stay_out && s->port.link && !cv_stream_busy(st)) /* asked for while the handshake was under way */
		cv_stream_leave(st, CV_LEAVE_HANDOVER, CV_REASON_FORK);
	ring = st->tx_state == CV_RING && st->rx_state == CV_RING;
	if (ring && !linked)
		now_linked(s);
	else if (!ring && linked)
		no_longer_linked(s);
	watch(s);
	if (cv_engine_raw(s)) {
		cv_agent_timer(&s->timer, 0);
		detach(s);
		if (cv_engine_plain(s))
			cv_upgrade_rest(s, (enum cv_reason)st->reason);
		else
			atomic_store_explicit(&s->row->state, CV_ROW_TCP, memory_order_relaxed);
		return;
	}
	if (!cv_stream_busy(st)) {
		cv_agent_timer(&s->timer, 0);
	} else if (!s->timer.pos) {
		uint64_t bound = ring || st->tx_state == CV_DRAINING ? s->set->handover_timeout : s->set->handshake_timeout;

		cv_agent_timer(&s->timer, cv_now_ns() + bound);
	}
}

void cv_engine_message(struct cv_stream *st, const struct cv_msg *m, int fd)
{
	struct cv_sock *s = cv_sock_of(st);
	int err = 0;

	cv_sock_lock(s);
	if (s->port.link && !s->closing) {
		if (m->type == CV_MSG_GROW && m->epoch == st->epoch)
			err = cv_shm_take_gen(st, m, fd);
		if (!err)
			err = cv_stream_on_msg(st, m);
		if (err)
			cv_shm_breach(s->port.link);
		cv_engine_settle(s);
	}
	cv_sock_unlock(s);
	if (m->type == CV_MSG_GROW)
		cv_sock_changed(s);
}

void cv_engine_down(struct cv_stream *st, enum cv_reason why)
{
	struct cv_sock *s = cv_sock_of(st);

	cv_sock_lock(s);
	if (s->port.link) {
		/* A process that dies closes its twins with its channel: hear first what TCP has to say of its end, and answer nothing to the dead. */
		cv_stream_advance(st);
		/* A peer that had closed this one owed it nothing more. */
		if (why == CV_REASON_PEER_DEAD && (atomic_load_explicit(&st->rx.w->end, memory_order_relaxed) & CV_END_CLOSED))
			why = CV_REASON_CLOSED;
		cv_stream_link_down(st, why);
		go_on(s);
	}
	cv_sock_unlock(s);
}

void cv_engine_late(struct cv_sock *s)
{
	cv_sock_lock(s);
	if (s->used && s->seek == CV_SEEK_ENGINE) {
		if (cv_stream_timeout(&s->st) == -ETIMEDOUT)
			cv_engine_reset(s);
		s->late = s->closing;
		go_on(s);
	}
	cv_sock_unlock(s);
}

bool cv_engine_closed(struct cv_sock *s)
{
	if (s->fd >= 0 && cv_stream_busy(&s->st) && !s->late) {
		cv_stream_advance(&s->st);
		watch(s);
		if (cv_stream_busy(&s->st)) {
			if (!s->timer.pos)
				cv_agent_timer(&s->timer, cv_now_ns() + s->set->handover_timeout);
			return false;
		}
	}
	if (s->fd >= 0) {
		if (s->twin.events)
			cv_agent_watch(&s->twin, 0);
		if (s->st.reset_twin || s->late)
			cv_sock_arrange_reset(s->fd);
		cv_fd_close(s->fd);
		s->fd = s->twin.fd = -1;
	}
	detach(s);
	return true;
}
