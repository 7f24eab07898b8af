/* SPDX-License-Identifier: Apache-2.0 */
/* How a connection gets onto a link: policy, quiescence, rendezvous. The agent's thread unless said otherwise. */
#include "upgrade.h"
#include "../base/clock.h"
#include "../link/holder.h"
#include "../link/shm.h"
#include "engine.h"
#include "owner.h"
#include "sig.h"
#include <errno.h>
#include <linux/tcp.h>
#include <string.h>

#define BUCKETS 1024
#define ROUNDS_MAX 3	     /* tries that failed: then the connection stays on TCP */
#define ROUND_CALLS 1024     /* calls between two rounds */
#define LISTEN_NS 500000000ull

/* Pauses between a server's dials. The client qualifies a little later than we, and its agent may have to wait for a CPU. */
static const uint32_t redial_us[] = {100, 300, 500, 1000, 2000, 3000, 5000, 8000, 12000, 20000, 30000, 50000, 80000, 120000};

static struct cv_sock *seekers[BUCKETS]; /* clients, by tuple */
static struct cv_sock *queue, **queue_end = &queue; /* clients that found all listeners taken */

/* ---- addresses ----------------------------------------------------------------------------------------------------------------- */

static bool plain_addr(uint8_t out[16], uint16_t *port, const struct sockaddr_storage *a)
{
	if (a->ss_family == AF_INET6) {
		const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)a;

		memcpy(out, &in6->sin6_addr, 16);
		*port = in6->sin6_port;
		return true;
	}
	if (a->ss_family == AF_INET) {
		const struct sockaddr_in *in = (const struct sockaddr_in *)a;

		memset(out, 0, 10);
		out[10] = out[11] = 0xff;
		memcpy(out + 12, &in->sin_addr, 4);
		*port = in->sin_port;
		return true;
	}
	return false;
}

static void row_addrs(struct cv_sock *s, const struct sockaddr_storage *local, const struct sockaddr_storage *peer)
{
	struct cv_row *row = s->row;
	uint8_t l[16], p[16];

	if (!plain_addr(l, &row->local_port, local) || !plain_addr(p, &row->peer_port, peer))
		return;
	if (local->ss_family == AF_INET) {
		memcpy(row->local_addr, l + 12, 4);
		memcpy(row->peer_addr, p + 12, 4);
	} else {
		memcpy(row->local_addr, l, 16);
		memcpy(row->peer_addr, p, 16);
	}
	row->family = local->ss_family;
}

/* Is it an address of this host? The kernel lets us bind a datagram socket to nothing else. */
static bool address_is_local(const struct sockaddr_storage *peer)
{
	struct sockaddr_storage a = *peer;
	int fd = cv_fd_new(SYS_socket, a.ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0, 0);
	bool local;

	if (fd < 0)
		return false;
	if (a.ss_family == AF_INET)
		((struct sockaddr_in *)&a)->sin_port = 0;
	else
		((struct sockaddr_in6 *)&a)->sin6_port = 0;
	local = cv_sys3(SYS_bind, fd, &a, sizeof(a)) == 0;
	cv_fd_close(fd);
	return local;
}

/* ---- seekers ------------------------------------------------------------------------------------------------------------------- */

static struct cv_sock **bucket(const struct cv_tuple *t)
{
	const uint8_t *b = (const uint8_t *)t;
	uint32_t h = 2166136261u;

	for (size_t i = 0; i < sizeof(*t); i++)
		h = (h ^ b[i]) * 16777619u;
	return &seekers[h % BUCKETS];
}

static struct cv_sock *seeker(const struct cv_tuple *t)
{
	for (struct cv_sock *s = *bucket(t); s; s = s->hash_next)
		if (memcmp(&s->tuple, t, sizeof(*t)) == 0)
			return s;
	return NULL;
}

static void queue_drop(struct cv_sock *s)
{
	for (struct cv_sock **p = &queue; *p; p = &(*p)->queue_next) {
		if (*p == s) {
			*p = s->queue_next;
			if (queue_end == &s->queue_next)
				queue_end = p;
			return;
		}
	}
}

static void listen_next(void)
{
	while (queue) {
		struct cv_sock *s = queue;

		if (cv_shm_listen(&s->listener, &s->tuple) == -EMFILE)
			return;
		queue_drop(s);
		cv_agent_timer(&s->timer, cv_now_ns() + LISTEN_NS);
	}
}

/* The search is over, one way or the other. */
static void seek_end(struct cv_sock *s)
{
	for (struct cv_sock **p = bucket(&s->tuple); *p; p = &(*p)->hash_next) {
		if (*p == s) {
			*p = s->hash_next;
			break;
		}
	}
	queue_drop(s);
	if (s->listener) {
		cv_shm_unlisten(s->listener);
		s->listener = NULL;
		listen_next();
	}
	cv_agent_timer(&s->timer, 0);
}

static bool final(enum cv_reason why)
{
	return why == CV_REASON_POLICY || why == CV_REASON_NOT_TCP || why == CV_REASON_NOT_LOCAL || why == CV_REASON_SELF ||
	       why == CV_REASON_HALF_CLOSED || why == CV_REASON_OPTION || why == CV_REASON_FORK;
}

/* Back to PLAIN, to try again after more traffic, or out for good. tx and rx held, both halves RAW. */
void cv_upgrade_rest(struct cv_sock *s, enum cv_reason why)
{
	s->seek = CV_SEEK_NO;
	if (s->closing)
		return;
	if (s->st.tx_dead || cv_stream_error(&s->st, false)) { /* the kernel has nothing more to tell, or not all: calls stay with the engine */
		s->stay_out = true;
		s->wait_until = 0;
		cv_row_reason(s->row, why);
		atomic_store_explicit(&s->row->state, CV_ROW_TCP, memory_order_relaxed);
		atomic_store_explicit(&s->mode, CV_CAREFUL, memory_order_seq_cst);
		cv_sock_changed(s);
		return;
	}
	s->rounds++;
	if (s->stay_out || final(why) || s->rounds >= ROUNDS_MAX) {
		cv_sock_exclude(s, why);
		return;
	}
	cv_row_reason(s->row, why);
	atomic_store_explicit(&s->row->state, CV_ROW_TCP, memory_order_relaxed);
	s->tries = 0;
	/* The peer may never come; a switch that met unread bytes or a race may well succeed a moment later. */
	s->next_calls = s->rest_calls = s->calls + (why == CV_REASON_PEER_ABSENT ? ROUND_CALLS : ROUND_CALLS / 16) * s->rounds;
	s->next_bytes = s->rest_bytes = s->bytes + (64ull << 20);
	s->wait_until = 0;
	atomic_store_explicit(&s->mode, CV_PLAIN, memory_order_seq_cst);
	cv_sock_changed(s);
}

static void give_up(struct cv_sock *s, enum cv_reason why)
{
	cv_sock_lock(s);
	if (s->seek == CV_SEEK_FIND || s->seek == CV_SEEK_QUIET) {
		seek_end(s);
		cv_upgrade_rest(s, why);
	}
	cv_sock_unlock(s);
}

/* ---- finding the peer ---------------------------------------------------------------------------------------------------------- */

static void dial(struct cv_sock *s)
{
	int err = cv_shm_dial(&s->tuple, s->set->ring, s);

	if (!err || s->seek != CV_SEEK_FIND)
		return;
	if (s->tries < CV_ARRAY_LEN(redial_us)) {
		cv_agent_timer(&s->timer, cv_now_ns() + redial_us[s->tries++] * 1000ull);
		return;
	}
	give_up(s, err == -ECONNREFUSED ? CV_REASON_PEER_ABSENT : CV_REASON_NO_MEMORY);
}

/* Look for the peer's culvert; the application goes on with plain calls meanwhile. */
static void find(struct cv_sock *s)
{
	struct cv_sock **b = bucket(&s->tuple);
	int err;

	if (s->role == CV_ROLE_SERVER) {
		dial(s);
		return;
	}
	s->hash_next = *b; /* from now on an offer finds it */
	*b = s;
	err = cv_shm_listen(&s->listener, &s->tuple);
	cv_agent_timer(&s->timer, cv_now_ns() + LISTEN_NS);
	if (err == -EMFILE && !s->listener) {
		s->queue_next = NULL;
		*queue_end = s;
		queue_end = &s->queue_next;
		cv_agent_timer(&s->timer, cv_now_ns() + 10 * LISTEN_NS);
	} else if (err) {
		give_up(s, err == -EADDRINUSE ? CV_REASON_PEER_REFUSED : CV_REASON_NO_MEMORY);
	}
}

/* tx and rx held. NONE: go on; YOUNG: later; else exclude. */
static enum cv_reason admit(struct cv_sock *s)
{
	struct sockaddr_storage local = {0}, peer = {0};
	socklen_t ll = sizeof(local), pl = sizeof(peer), nl;
	char ulp[16] = "";
	enum cv_owner owner;
	int proto = 0;

	if (cv_sys3(SYS_getpeername, s->fd, &peer, &pl) < 0 || cv_sys3(SYS_getsockname, s->fd, &local, &ll) < 0)
		return CV_REASON_CONNECTING; /* still, or dead already */
	if (!plain_addr(s->role == CV_ROLE_CLIENT ? s->tuple.server : s->tuple.client,
			s->role == CV_ROLE_CLIENT ? &s->tuple.server_port : &s->tuple.client_port, &peer) ||
	    !plain_addr(s->role == CV_ROLE_CLIENT ? s->tuple.client : s->tuple.server,
			s->role == CV_ROLE_CLIENT ? &s->tuple.client_port : &s->tuple.server_port, &local))
		return CV_REASON_NOT_TCP;
	row_addrs(s, &local, &peer);
	s->set = cv_policy_decide(cv_policy_now, (enum cv_role)s->role, (struct sockaddr *)&local, (struct sockaddr *)&peer, NULL);
	if (!s->set->transport_count)
		return CV_REASON_POLICY;
	cv_engine_limits(s);
	if (s->calls / 2 < s->set->after_requests && s->bytes < s->set->after_bytes) {
		s->next_calls = (uint32_t)cv_min_u64(s->set->after_requests * 2, UINT32_MAX);
		s->next_bytes = s->set->after_bytes;
		return CV_REASON_YOUNG;
	}
	nl = sizeof(proto);
	if (cv_sys5(SYS_getsockopt, s->fd, SOL_SOCKET, SO_PROTOCOL, &proto, &nl) < 0 || proto != IPPROTO_TCP)
		return CV_REASON_NOT_TCP;
	if (!cv_engine_established(s))
		return CV_REASON_HALF_CLOSED;
	nl = sizeof(ulp);
	if (cv_sys5(SYS_getsockopt, s->fd, IPPROTO_TCP, TCP_ULP, ulp, &nl) == 0 && ulp[0])
		return CV_REASON_OPTION;
	if (memcmp(s->tuple.client, s->tuple.server, 16) == 0 && s->tuple.client_port == s->tuple.server_port)
		return CV_REASON_SELF;
	owner = cv_owner_of(s);
	if (owner != CV_OWNER_US)
		return owner == CV_OWNER_NOBODY ? CV_REASON_YOUNG : CV_REASON_FORK;
	for (int i = 0; i < s->set->transport_count; i++)
		if (s->set->transports[i] == CV_TRANSPORT_SHM && address_is_local(&peer))
			return CV_REASON_NONE;
	return CV_REASON_NOT_LOCAL;
}

static void consider(struct cv_sock *s)
{
	enum cv_reason why;

	if (s->closing)
		return;
	if (s->calls < s->rest_calls && s->bytes < s->rest_bytes) { /* posted for an earlier user of this memory */
		s->next_calls = s->rest_calls;
		s->next_bytes = s->rest_bytes;
		return;
	}
	why = admit(s);
	if (why == CV_REASON_CONNECTING && s->tries < CV_ARRAY_LEN(redial_us)) {
		cv_agent_timer(&s->timer, cv_now_ns() + redial_us[s->tries++] * 1000ull);
		return;
	}
	if (why == CV_REASON_YOUNG || why == CV_REASON_CONNECTING) {
		if (s->next_calls == UINT32_MAX)
			s->next_calls = s->calls + 16;
		return;
	}
	if (why != CV_REASON_NONE) {
		cv_sock_exclude(s, why);
		return;
	}
	cv_signals_watch(); /* from here on calls hold locks that a handler may want */
	cv_count(CV_CTR_TRIED, 1);
	atomic_store_explicit(&s->row->reason, CV_REASON_CONNECTING, memory_order_relaxed);
	s->seek = CV_SEEK_FIND;
	s->tries = 0;
}

/*
 * The peer is there: from now on calls are made carefully. True when no thread is inside a plain call any more; else the last one to leave posts our work. tx
 * and rx held. Partner: cv_sock_enter().
 */
static bool quiesce(struct cv_sock *s)
{
	if (s->seek == CV_SEEK_FIND) {
		s->seek = CV_SEEK_QUIET;
		atomic_store_explicit(&s->row->state, CV_ROW_SWITCHING, memory_order_relaxed);
		atomic_store_explicit(&s->mode, CV_CAREFUL, memory_order_seq_cst);
	}
	return atomic_load_explicit(&s->in_kernel, memory_order_seq_cst) == 0;
}

/* Is the connection still alive, and this process's to offer or to take? A dead one's tuple may be another's already. tx and rx held. */
static enum cv_reason still(struct cv_sock *s)
{
	if (!cv_engine_established(s))
		return CV_REASON_HALF_CLOSED;
	return cv_owner_of(s) == CV_OWNER_US ? CV_REASON_NONE : CV_REASON_FORK; /* forked meanwhile: who does I/O first goes on with it */
}

/* ---- what the link tells ------------------------------------------------------------------------------------------------------- */

static void attached(struct cv_sock *s, struct cv_link *l)
{
	s->link_ops = l->ops;
	cv_engine_attach(s);
	if (!cv_owner_linked(s) || !cv_owner_listen()) /* shared since; or a child could not ask for it */
		s->stay_out = true;
	s->seek = CV_SEEK_ENGINE;
	/* The route for rings until an epoll set or a poller takes it over: the agent, which passes news on. */
	l->ops->want(&s->st, 0, CV_WANT_RX_BELL, 0);
}

/* Server, quiet: offer the connection to the process that answered. tx and rx held. */
static void offer(struct cv_sock *s)
{
	struct cv_link *l = s->answered;
	enum cv_reason why = still(s);

	s->answered = NULL;
	if (why == CV_REASON_NONE && (!l || !l->up))
		why = CV_REASON_PEER_ABSENT;
	if (why == CV_REASON_NONE && !cv_holder_is(&s->tuple, false, l->peer_uid))
		why = CV_REASON_STRANGER;
	if (why == CV_REASON_NONE && cv_shm_attach(l, &s->st, &s->tuple)) /* full, or down, since the dial: from the start */
		why = CV_REASON_NO_SLOT;
	seek_end(s);
	if (why != CV_REASON_NONE) {
		cv_upgrade_rest(s, why);
		return;
	}
	attached(s, l);
	cv_stream_open(&s->st, l->identity);
	cv_engine_settle(s);
}

static void dialled(void *arg, struct cv_link *l, enum cv_reason why)
{
	struct cv_sock *s = arg;

	if (!l) {
		give_up(s, why);
		return;
	}
	cv_sock_lock(s);
	/* stay_out: excluded since, perhaps for a program that reads the twin by now; the work that ends the search is on its way */
	if (s->seek == CV_SEEK_FIND && !s->closing && !s->stay_out && s->role == CV_ROLE_SERVER) {
		s->answered = l;
		cv_agent_timer(&s->timer, cv_now_ns() + s->set->handshake_timeout);
		if (quiesce(s))
			offer(s);
	}
	cv_sock_unlock(s);
}

static struct cv_stream *offered(struct cv_link *l, const struct cv_tuple *t, enum cv_reason *nak)
{
	struct cv_sock *s = seeker(t);

	*nak = CV_REASON_NONE;
	if (!s)
		return NULL;
	if (!cv_holder_is(t, true, l->peer_uid)) { /* ours goes on looking for the true one */
		*nak = CV_REASON_STRANGER;
		return NULL;
	}
	cv_sock_lock(s);
	if (!s->closing && !s->stay_out && (s->seek == CV_SEEK_FIND || s->seek == CV_SEEK_QUIET) && quiesce(s)) {
		enum cv_reason why = still(s);

		if (why == CV_REASON_NONE)
			return &s->st;
		if (why != CV_REASON_HALF_CLOSED) /* else the offer may be for this tuple's next connection */
			*nak = why;
		seek_end(s);
		cv_upgrade_rest(s, why);
	}
	cv_sock_unlock(s);
	return NULL;
}

static void accepted(struct cv_stream *st, const struct cv_msg *open, const uint8_t identity[32])
{
	struct cv_sock *s = cv_sock_of(st);

	seek_end(s);
	attached(s, st->port->link);
	cv_stream_accept(st, open, identity);
	cv_engine_settle(s);
	cv_sock_unlock(s);
}

static void rung(struct cv_stream *st)
{
	cv_sock_changed(cv_sock_of(st));
}

static const struct cv_link_events events = {
	.offered = offered,
	.accept = accepted,
	.message = cv_engine_message,
	.rung = rung,
	.down = cv_engine_down,
	.dialled = dialled,
};

/* ---- the agent's turns --------------------------------------------------------------------------------------------------------- */

static void work(struct cv_work *w);

static void timer(struct cv_timer *t)
{
	struct cv_sock *s = cv_container_of(t, struct cv_sock, timer);

	if (s->seek == CV_SEEK_ENGINE)
		cv_engine_late(s);
	else if (s->seek == CV_SEEK_NO)
		work(&s->work); /* was still connecting */
	else if (s->seek == CV_SEEK_FIND && s->role == CV_ROLE_SERVER && !s->answered)
		dial(s);
	else
		give_up(s, s->seek == CV_SEEK_QUIET ? CV_REASON_TIMEOUT : CV_REASON_PEER_ABSENT);
}

/* tx and rx held; lets go. */
static void finish_closed(struct cv_sock *s)
{
	if (s->seek == CV_SEEK_FIND || s->seek == CV_SEEK_QUIET)
		seek_end(s);
	if (s->seek == CV_SEEK_ENGINE && !cv_engine_closed(s)) {
		cv_sock_unlock(s);
		return;
	}
	s->seek = CV_SEEK_NO;
	cv_agent_timer(&s->timer, 0);
	cv_stream_fini(&s->st);
	atomic_store_explicit(&s->used, false, memory_order_release);
	cv_sock_unlock(s);
	cv_sock_free(s);
}

static void work(struct cv_work *w)
{
	struct cv_sock *s = cv_container_of(w, struct cv_sock, work);
	bool go = false, ask;
	struct cv_tuple t;

	if (!atomic_load_explicit(&s->used, memory_order_acquire))
		return;
	cv_sock_lock(s);
	if (!s->used) {
		cv_sock_unlock(s);
		return;
	}
	if (s->closing) {
		finish_closed(s);
		return;
	}
	if (s->seek == CV_SEEK_NO && atomic_load_explicit(&s->mode, memory_order_relaxed) == CV_PLAIN && !s->stay_out) {
		consider(s);
		go = s->seek == CV_SEEK_FIND;
	}
	if (s->seek == CV_SEEK_ENGINE)
		cv_engine_settle(s);
	if ((s->seek == CV_SEEK_QUIET || s->seek == CV_SEEK_FIND) && s->stay_out) {
		seek_end(s);
		s->seek = CV_SEEK_NO;
		go = false;
	}
	ask = s->seek == CV_SEEK_QUIET && quiesce(s);
	if (ask && s->role == CV_ROLE_SERVER) {
		offer(s);
		ask = false;
	}
	t = s->tuple;
	cv_sock_unlock(s);
	if (go)
		find(s);
	if (go || ask)
		cv_shm_offers(&t); /* one may wait for it */
}

/* ---- from application threads -------------------------------------------------------------------------------------------------- */

void cv_upgrade_init(struct cv_sock *s)
{
	uint64_t requests, bytes;

	cv_link_events = &events; /* the same each time */
	cv_engine_init(s);
	s->work.fn = work;
	s->timer.fn = timer;
	cv_policy_first(cv_policy_now, &requests, &bytes);
	s->next_calls = (uint32_t)cv_min_u64(requests * 2, UINT32_MAX);
	s->next_bytes = bytes;
	s->rest_calls = 0;
	s->rest_bytes = 0;
}

void cv_upgrade_begin(struct cv_sock *s)
{
	uint64_t wait = cv_policy_longest_wait(cv_policy_now);

	if (s->next_calls)
		return;
	if (wait)
		s->wait_until = cv_now_ns() + wait;
	cv_agent_post(&s->work);
}

void cv_sock_qualify(struct cv_sock *s)
{
	if (likely(++s->calls < s->next_calls && s->bytes < s->next_bytes))
		return;
	s->next_calls = UINT32_MAX; /* asked; the answer sets it anew */
	s->next_bytes = UINT64_MAX;
	cv_agent_post(&s->work);
}

void cv_sock_left_last(struct cv_sock *s)
{
	cv_agent_post(&s->work);
}

void cv_sock_exclude(struct cv_sock *s, enum cv_reason why)
{
	cv_row_reason(s->row, why);
	atomic_store_explicit(&s->row->state, CV_ROW_TCP, memory_order_relaxed);
	s->stay_out = true;
	s->wait_until = 0;
	if (s->refs == 1 && s->fd >= 0 && cv_fd_get(s->fd) == (uintptr_t)s)
		cv_fd_set(s->fd, (uintptr_t)s | CV_FD_OUT);
	else
		cv_fd_retag((uintptr_t)s, (uintptr_t)s | CV_FD_OUT);
	atomic_store_explicit(&s->mode, CV_PLAIN, memory_order_seq_cst);
	cv_sock_changed(s);
}

void cv_sock_await(struct cv_sock *s)
{
	struct cv_waiter w = {.wake_fd = cv_thread_wake_fd()};
	uint64_t until = s->wait_until, now, n;

	if (w.wake_fd < 0 || cv_agent_self())
		return;
	cv_sock_add_waiter(s, &w);
	while ((now = cv_now_ns()) < until && s->wait_until && !s->stay_out &&
	       atomic_load_explicit(&s->mode, memory_order_acquire) != CV_LINKED) {
		struct timespec ts = {.tv_nsec = (long)cv_min_u64(until - now, 20000000)};
		struct {
			int fd;
			short events, revents;
		} p = {.fd = w.wake_fd, .events = 1};

		cv_sys5(SYS_ppoll, &p, 1, &ts, NULL, 8);
		if (p.revents)
			cv_sys3(SYS_read, w.wake_fd, &n, sizeof(n));
	}
	s->wait_until = 0;
	cv_sock_del_waiter(s, &w);
}

void cv_upgrade_ended(struct cv_sock *s)
{
	/* Never tried: nothing of the agent's points to it but perhaps queued work, which looks at `used` under the locks. */
	bool simple = s->seek == CV_SEEK_NO && !s->port.link && !s->timer.pos;

	if (simple) {
		cv_stream_fini(&s->st);
		atomic_store_explicit(&s->used, false, memory_order_release);
	}
	cv_sock_unlock(s);
	if (simple)
		cv_sock_free(s);
	else
		cv_agent_post(&s->work);
}

void cv_upgrade_forked(void)
{
	memset(seekers, 0, sizeof(seekers));
	queue = NULL;
	queue_end = &queue;
	cv_rendezvous_forked();
	cv_shm_forked();
}
