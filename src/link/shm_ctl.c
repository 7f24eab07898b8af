/* SPDX-License-Identifier: Apache-2.0 */
/* The shm link's control channel: packets over the agents' SEQPACKET socket, slots, further ring generations. */
#include "../base/clock.h"
#include "../observe/stats.h"
#include "shm.h"
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>

/* ---- packets ------------------------------------------------------------------------------------------------------------------- */

int cv_pkt_send(int sock, const struct cv_shm_pkt *p, const int *fds, int nfds)
{
	union {
		char buf[CMSG_SPACE(2 * sizeof(int))];
		struct cmsghdr align;
	} c = {0};
	struct iovec iov = {.iov_base = (void *)p, .iov_len = sizeof(*p)};
	struct msghdr m = {.msg_iov = &iov, .msg_iovlen = 1};
	long n;

	if (nfds) {
		struct cmsghdr *h = &c.align;

		m.msg_control = c.buf;
		m.msg_controllen = CMSG_SPACE((size_t)nfds * sizeof(int));
		h->cmsg_level = SOL_SOCKET;
		h->cmsg_type = SCM_RIGHTS;
		h->cmsg_len = CMSG_LEN((size_t)nfds * sizeof(int));
		memcpy(CMSG_DATA(h), fds, (size_t)nfds * sizeof(int));
	}
	n = cv_sys3(SYS_sendmsg, sock, &m, MSG_DONTWAIT | MSG_NOSIGNAL);
	return n < 0 ? (int)n : 0;
}

int cv_pkt_recv(int sock, struct cv_shm_pkt *p, int fds[2])
{
	union {
		char buf[CMSG_SPACE(8 * sizeof(int))];
		struct cmsghdr align;
	} c = {0};
	struct iovec iov = {.iov_base = p, .iov_len = sizeof(*p)};
	struct msghdr m = {.msg_iov = &iov, .msg_iovlen = 1, .msg_control = c.buf, .msg_controllen = sizeof(c.buf)};
	int got = 0;
	long n;

	fds[0] = fds[1] = -1;
	cv_fd_make_begin();
	n = cv_sys3(SYS_recvmsg, sock, &m, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	for (struct cmsghdr *h = n > 0 ? CMSG_FIRSTHDR(&m) : NULL; h; h = CMSG_NXTHDR(&m, h)) {
		if (h->cmsg_level != SOL_SOCKET || h->cmsg_type != SCM_RIGHTS)
			continue;
		size_t count = (h->cmsg_len - CMSG_LEN(0)) / sizeof(int);

		for (size_t i = 0; i < count; i++) {
			int fd;

			memcpy(&fd, CMSG_DATA(h) + i * sizeof(int), sizeof(fd));
			if (got < 2)
				fds[got++] = cv_fd_high(fd);
			else /* nobody honest sends more */
				cv_sys1(SYS_close, fd);
		}
	}
	cv_fd_make_end();
	if (n < 0)
		return (int)n;
	if (n == (long)sizeof(*p) && !(m.msg_flags & (MSG_TRUNC | MSG_CTRUNC)))
		return 0;
	cv_fd_close(fds[0]);
	cv_fd_close(fds[1]);
	return n == 0 ? -EPIPE : -EPROTO;
}

/* A packet that is lost would leave its stream waiting for ever. Of a dead peer the channel itself tells: cv_shm_readable(). */
static void lost(struct cv_shm_link *l, int err)
{
	if (err && err != -EPIPE && err != -ECONNRESET)
		cv_shm_breach(&l->link);
}

static void queue_flush(struct cv_shm_link *l)
{
	while (l->queued) {
		struct cv_shm_queued *q = &l->queue[l->queue_head % CV_SHM_SENDQ];
		int err = cv_pkt_send(l->sock.fd, &q->pkt, &q->fd, q->fd >= 0);

		if (err == -EAGAIN)
			return;
		lost(l, err);
		cv_fd_close(q->fd); /* a dup of its own */
		l->queue_head++;
		l->queued--;
	}
}

static int queue_put(struct cv_shm_link *l, const struct cv_shm_pkt *p, int fd)
{
	if (!l->queue) {
		void *q = mmap(NULL, CV_SHM_SENDQ * sizeof(*l->queue), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		if (q == MAP_FAILED)
			return -ENOMEM;
		l->queue = q;
	}
	if (l->queued == CV_SHM_SENDQ)
		return -ENOBUFS;

	struct cv_shm_queued *q = &l->queue[(l->queue_head + l->queued) % CV_SHM_SENDQ];

	q->pkt = *p;
	q->fd = fd < 0 ? -1 : cv_fd_dup(fd);
	l->queued++;
	cv_agent_post(&l->pump);
	return 0;
}

int cv_shm_send(struct cv_shm_link *l, const struct cv_shm_pkt *p, int fd)
{
	int err = -EPIPE;

	cv_lock(&l->send);
	if (l->link.up) {
		queue_flush(l);
		err = l->queued ? -EAGAIN : cv_pkt_send(l->sock.fd, p, &fd, fd >= 0);
		if (err == -EAGAIN)
			err = queue_put(l, p, fd);
		lost(l, err);
	}
	cv_unlock(&l->send);
	return err ? -EPIPE : 0;
}

/* ---- slots --------------------------------------------------------------------------------------------------------------------- */

enum { SLOT_USED = 1, SLOT_WE_BYE = 2, SLOT_PEER_BYE = 4 };

/* The pointers first: a poll without locks may still be looking at the ring's last life. */
static void set_ring(struct cv_ring *g, struct cv_ring_w *w, struct cv_ring_r *r, uint8_t *base, uint64_t size)
{
	g->w = w;
	g->r = r;
	g->gen[0] = (struct cv_ring_gen){.base = base, .size = size};
	for (unsigned i = 1; i < CV_RING_GENS; i++)
		g->gen[i] = (struct cv_ring_gen){0};
	g->gens = 1;
	g->first = 0;
	g->tail = g->head = 0;
}

void cv_shm_set_lines(struct cv_shm_link *l, struct cv_stream *s, uint32_t slot)
{
	struct cv_shm_slot *m = &l->seg->slot[slot];
	int me = l->side;
	struct cv_port *p = s->port;

	p->link = &l->link;
	p->slot = slot;
	p->bell = 0;
	p->grow_fd = -1;
	p->extras = 0;
	p->mine = &m->want[me];
	p->peer = &m->want[!me];
	set_ring(&s->tx, &m->w[me], &m->r[me], l->rings + (2ull * slot + (unsigned)me) * l->ring, l->ring);
	set_ring(&s->rx, &m->w[!me], &m->r[!me], l->rings + (2ull * slot + (unsigned)!me) * l->ring, l->ring);
	atomic_fetch_add_explicit(&l->attached, 1, memory_order_relaxed);
	atomic_store_explicit(&l->streams[slot], s, memory_order_release);
}

int cv_shm_attach(struct cv_link *link, struct cv_stream *s, const struct cv_tuple *t)
{
	struct cv_shm_link *l = cv_shm_of(link);
	uint32_t slot = l->slots;

	if (!link->up || l->side != 0) /* the struct may have become another link's since the dial */
		return -EPIPE;
	cv_lock(&l->lock);
	for (uint32_t i = 0; i < l->slots; i++) {
		uint32_t c = (l->slot_hint + i) % l->slots;

		if (!l->slot_state[c]) {
			slot = c;
			l->slot_state[c] = SLOT_USED;
			l->slots_used++;
			l->slot_hint = c + 1;
			break;
		}
	}
	cv_unlock(&l->lock);
	if (slot == l->slots)
		return -ENOSPC;
	memset(&l->seg->slot[slot], 0, sizeof(l->seg->slot[slot])); /* both sides are done with it; the peer looks only after the offer */
	cv_shm_set_lines(l, s, slot);
	s->port->offer = *t;
	return 0;
}

/* Side 0's bookkeeping of a slot; side 1 only tells. */
void cv_shm_slot_bye(struct cv_shm_link *l, uint32_t slot, uint8_t who)
{
	if (l->side != 0)
		return;
	cv_lock(&l->lock);
	l->slot_state[slot] |= who;
	if ((l->slot_state[slot] & (SLOT_WE_BYE | SLOT_PEER_BYE)) == (SLOT_WE_BYE | SLOT_PEER_BYE)) {
		l->slot_state[slot] = 0;
		l->slots_used--;
		l->slot_hint = slot; /* its memory is warm */
	}
	cv_unlock(&l->lock);
}

static void bye(struct cv_shm_link *l, uint32_t slot)
{
	struct cv_shm_pkt p = {.kind = CV_PKT_BYE, .slot = slot};

	cv_shm_slot_bye(l, slot, SLOT_WE_BYE);
	cv_shm_send(l, &p, -1);
}

void cv_shm_detach(struct cv_stream *s)
{
	struct cv_port *port = s->port;
	struct cv_shm_link *l = cv_shm_of(port->link);

	if (!port->link)
		return;
	atomic_store_explicit(&l->streams[port->slot], NULL, memory_order_release);
	for (uint32_t i = 0; i < port->extras; i++)
		munmap(port->extra[i].base, port->extra[i].size);
	port->extras = 0;
	cv_fd_close(port->grow_fd);
	port->grow_fd = -1;
	bye(l, port->slot);
	port->link = NULL;
	atomic_fetch_sub_explicit(&l->attached, 1, memory_order_release);
	if (!l->link.up)
		cv_shm_reap(l);
}

/* ---- the engine's messages ----------------------------------------------------------------------------------------------------- */

int cv_shm_msg(struct cv_stream *s, const struct cv_msg *m)
{
	struct cv_port *port = s->port;
	struct cv_shm_pkt p = {.kind = CV_PKT_STREAM, .slot = port->slot, .msg = *m};
	int fd = -1, err;

	if (!port->link)
		return -EPIPE;
	if (m->type == CV_MSG_OPEN) {
		p.kind = CV_PKT_OFFER;
		p.tuple = port->offer;
	} else if (m->type == CV_MSG_GROW) {
		fd = port->grow_fd;
		port->grow_fd = -1;
	}
	err = cv_shm_send(cv_shm_of(port->link), &p, fd);
	cv_fd_close(fd);
	return err;
}

static int extra_add(struct cv_port *port, uint8_t *base, uint64_t size)
{
	if (port->extras == CV_ARRAY_LEN(port->extra))
		return -ENOSPC;
	port->extra[port->extras].base = base;
	port->extra[port->extras++].size = size;
	return 0;
}

int cv_shm_grow(struct cv_stream *s, uint64_t size, uint8_t **base, uint64_t *got)
{
	struct cv_port *port = s->port;
	int fd;
	void *p;

	if (port->extras == CV_ARRAY_LEN(port->extra) || port->grow_fd >= 0)
		return -ENOSPC;
	fd = cv_memfd("culvert-ring", size);
	if (fd < 0)
		return fd;
	p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd, 0);
	if (p == MAP_FAILED) {
		cv_fd_close(fd);
		return -ENOMEM;
	}
	extra_add(port, p, size);
	port->grow_fd = fd;
	*base = p;
	*got = size;
	cv_count(CV_CTR_GROWN, 1);
	return 0;
}

/* Map a generation that the peer sends; rx lock held by the caller. */
int cv_shm_take_gen(struct cv_stream *s, const struct cv_msg *m, int fd)
{
	uint64_t size = m->c;
	void *p;
	int err;

	if (fd < 0 || size < 4096 || size > CV_SHM_EXTRA_MAX || (size & (size - 1)) || cv_memfd_check(fd, size))
		return -EPROTO;
	p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd, 0);
	if (p == MAP_FAILED)
		return -ENOMEM;
	err = m->a < CV_RING_GENS ? cv_ring_add_gen(&s->rx, (unsigned)m->a, p, size, m->b) : -EPROTO;
	if (!err)
		err = extra_add(s->port, p, size);
	if (err)
		munmap(p, size);
	return err;
}

/* ---- what arrives -------------------------------------------------------------------------------------------------------------- */

static int take_offer(struct cv_shm_link *l, const struct cv_shm_pkt *p)
{
	enum cv_reason nak = CV_REASON_NONE;
	struct cv_stream *s;

	if (l->side != 1 || p->msg.type != CV_MSG_OPEN || atomic_load_explicit(&l->streams[p->slot], memory_order_relaxed))
		return -EPROTO;
	s = cv_link_events->offered(&l->link, &p->tuple, &nak);
	if (s) {
		cv_shm_set_lines(l, s, p->slot);
		cv_link_events->accept(s, &p->msg, l->link.identity);
	} else if (nak != CV_REASON_NONE) {
		struct cv_shm_pkt answer = {.kind = CV_PKT_STREAM,
					    .slot = p->slot,
					    .msg = {.type = CV_MSG_NAK, .epoch = p->msg.epoch, .a = nak}};

		cv_shm_send(l, &answer, -1);
		bye(l, p->slot);
	} else { /* not qualified here yet */
		l->parked_map[p->slot / 64] |= 1ull << (p->slot % 64);
		l->parked[p->slot] = (struct cv_shm_parked){.tuple = p->tuple, .open = p->msg};
	}
	return 0;
}

static bool unpark(struct cv_shm_link *l, uint32_t slot)
{
	uint64_t bit = 1ull << (slot % 64);

	if (!(l->parked_map[slot / 64] & bit))
		return false;
	l->parked_map[slot / 64] &= ~bit;
	return true;
}

void cv_shm_offers(const struct cv_tuple *t)
{
	for (struct cv_link *k = cv_links; k; k = k->next) {
		struct cv_shm_link *l = cv_shm_of(k);

		if (k->ops != &cv_shm_ops || l->side != 1)
			continue;
		for (uint32_t w = 0; w < CV_SHM_WORDS; w++) {
			for (uint64_t bits = l->parked_map[w]; bits; bits &= bits - 1) {
				uint32_t slot = w * 64 + (uint32_t)__builtin_ctzll(bits);
				struct cv_shm_pkt p = {.kind = CV_PKT_OFFER, .slot = slot};

				if (memcmp(&l->parked[slot].tuple, t, sizeof(*t)) != 0)
					continue;
				unpark(l, slot);
				p.tuple = *t;
				p.msg = l->parked[slot].open;
				if (take_offer(l, &p))
					cv_shm_fail(l, CV_REASON_PROTOCOL);
				return;
			}
		}
	}
}

static int take_stream(struct cv_shm_link *l, const struct cv_shm_pkt *p, int fd)
{
	struct cv_stream *s = atomic_load_explicit(&l->streams[p->slot], memory_order_acquire);

	if (!s) { /* for one that has left; a cancelled offer may still wait here */
		if (unpark(l, p->slot))
			bye(l, p->slot);
		return 0;
	}
	cv_link_events->message(s, &p->msg, fd);
	return 0;
}

static int take(struct cv_shm_link *l, const struct cv_shm_pkt *p, int fds[2])
{
	uint64_t one = 1;
	int old;

	if (p->kind == CV_PKT_BELL) {
		if (p->slot >= CV_LINK_BELLS || fds[0] < 0 || cv_wake_fd_check(fds[0]))
			return -EPROTO;
		old = atomic_load_explicit(&l->peer_fd[p->slot], memory_order_relaxed);
		if (old < 0)
			atomic_store_explicit(&l->peer_fd[p->slot], fds[0], memory_order_release);
		else if (cv_sys3(SYS_dup3, fds[0], old, O_CLOEXEC) < 0) /* the number stays: a thread may be about to write to it. Partner: kick() */
			return -EPROTO;
		/* A ring between its opening and now went to an older fd or to the agent: one wake-up too many does no harm. */
		if (atomic_load_explicit(&l->attached, memory_order_relaxed)) /* before, there were no rings, and it may be a stranger's */
			cv_sys3(SYS_write, fds[0], &one, sizeof(one));
		if (old < 0)
			fds[0] = -1;
		return 0;
	}
	if (p->slot >= l->slots)
		return -EPROTO;
	switch (p->kind) {
	case CV_PKT_OFFER:
		return take_offer(l, p);
	case CV_PKT_STREAM:
		return take_stream(l, p, fds[0]);
	case CV_PKT_BYE:
		if (unpark(l, p->slot))
			bye(l, p->slot);
		cv_shm_slot_bye(l, p->slot, SLOT_PEER_BYE);
		return 0;
	default:
		return -EPROTO;
	}
}

void cv_shm_readable(struct cv_watch *w, uint32_t events)
{
	struct cv_shm_link *l = cv_container_of(w, struct cv_shm_link, sock);
	struct cv_shm_pkt p;
	int fds[2], err = 0;

	for (int i = 0; i < 256 && l->link.up && !err; i++) { /* bounded: other links have a turn too */
		err = cv_pkt_recv(w->fd, &p, fds);
		if (err)
			break;
		err = take(l, &p, fds);
		cv_fd_close(fds[0]);
		cv_fd_close(fds[1]);
	}
	if (!l->link.up)
		return;
	if (err == -EPROTO) {
		cv_shm_fail(l, CV_REASON_PROTOCOL);
		return;
	}
	if (err && err != -EAGAIN) {
		/* The peer's process ends. The kernel closes its channel a moment before its twins: hear first how those end, and write nothing to the dead. */
		cv_agent_watch(w, 0);
		cv_agent_timer(&l->grave, cv_now_ns() + CV_SHM_GRAVE_NS);
		return;
	}
	if (events & EPOLLOUT || l->queued) {
		cv_lock(&l->send);
		queue_flush(l);
		cv_unlock(&l->send);
	}
	cv_agent_watch(w, l->queued ? EPOLLIN | EPOLLOUT : EPOLLIN);
}
