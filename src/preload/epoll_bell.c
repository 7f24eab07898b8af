/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bells of epoll sets: one per link that the set has a socket on, and the set's own wake fd. Their fds stand edge-triggered in the
 * program's own kernel set, with data values from a reserved piece of address space.
 *
 * Hot bells are polled and not armed while somebody is awake; cold ones stay armed. A bell that has not rung for a while goes cold, one
 * that the kernel reports goes hot.
 */
#include "epoll_int.h"
#include "../link/agent.h"
#include <fcntl.h>
#include <sys/mman.h>

_Atomic uint64_t cv_ep_tag_base;

static struct cv_lock cell_lock; /* a leaf */
#define CELL_CHUNK 512
#define CELL_CHUNKS (CV_EP_ITEM_TAGS / CELL_CHUNK)
static struct cv_epbell *cells[CELL_CHUNKS];
static struct cv_epbell *cell_free;
static uint32_t cell_count;

/* Programs put a small number in the low half and leave rubbish in the high one: our low half must not look like a descriptor. */
static CV_COLD void reserve_tags(void)
{
	char *p;

	cv_lock(&cell_lock);
	if (!cv_ep_tag_base) {
		p = mmap(NULL, 3 * (size_t)CV_EP_TAGS, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
		if (p != MAP_FAILED) {
			uint32_t low = (uint32_t)(uintptr_t)p;

			/* one of two places is at least as far from 2^32 and its multiples as the numbers of descriptors reach */
			cv_ep_tag_base = (uintptr_t)p + (low < CV_EP_TAGS || low > UINT32_MAX - CV_EP_TAGS ? 2 * (uintptr_t)CV_EP_TAGS : 0);
		}
	}
	cv_unlock(&cell_lock);
}

bool cv_ep_reserve_tags(void)
{
	if (unlikely(!cv_ep_tag_base))
		reserve_tags();
	return cv_ep_tag_base != 0;
}

static struct cv_epbell *cell_get(void)
{
	struct cv_epbell *c;

	cv_lock(&cell_lock);
	if (!cell_free && cell_count / CELL_CHUNK < CELL_CHUNKS) {
		c = mmap(NULL, CELL_CHUNK * sizeof(*c), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		if (c != MAP_FAILED) {
			__atomic_store_n(&cells[cell_count / CELL_CHUNK], c, __ATOMIC_RELEASE);
			for (unsigned i = cell_count ? 0 : 1; i < CELL_CHUNK; i++) { /* tag 0 is the wake fd's */
				c[i].tag = cell_count + i;
				c[i].next = cell_free;
				cell_free = &c[i];
			}
			cell_count += CELL_CHUNK;
		}
	}
	c = cell_free;
	if (c)
		cell_free = c->next;
	cv_unlock(&cell_lock);
	return c;
}

static void cell_put(struct cv_epbell *c)
{
	cv_lock(&cell_lock);
	c->next = cell_free;
	cell_free = c;
	cv_unlock(&cell_lock);
}

void cv_ep_bell_fork(void)
{
	atomic_store(&cell_lock.word, 0);
}

static struct cv_epbell *cell_of(uint32_t tag)
{
	struct cv_epbell *c = __atomic_load_n(&cells[tag / CELL_CHUNK], __ATOMIC_ACQUIRE);

	return c ? &c[tag % CELL_CHUNK] : NULL;
}

static long tag_add(struct cv_epoll *e, int fd, uint32_t tag)
{
	struct epoll_event ev = {.events = EPOLLIN | EPOLLET, .data.u64 = cv_ep_tag_base + tag};

	return cv_sys4(SYS_epoll_ctl, e->fd, EPOLL_CTL_ADD, fd, &ev);
}

/* ---- the wake fd ----------------------------------------------------------------------------------------------------------------- */

static int wake_open(struct cv_epoll *e)
{
	int fd;

	if (!cv_ep_reserve_tags())
		return -1;
	fd = cv_fd_new(SYS_eventfd2, 0, O_CLOEXEC | O_NONBLOCK, 0, 0);
	if (fd < 0)
		return -1;
	if (tag_add(e, fd, 0)) {
		cv_fd_close(fd);
		return -1;
	}
	e->wake_fd = fd + 1;
	return fd;
}

void cv_ep_wake(struct cv_epoll *e)
{
	uint64_t one = 1;
	int fd = e->wake_fd - 1;

	if (fd < 0 && !e->off)
		fd = wake_open(e);
	if (fd >= 0) /* edge-triggered: each write is news, nobody needs to read */
		cv_sys3(SYS_write, fd, &one, sizeof(one));
}

void cv_ep_wake_close(struct cv_epoll *e)
{
	cv_fd_close(e->wake_fd - 1);
	e->wake_fd = 0;
}

/* ---- bells ----------------------------------------------------------------------------------------------------------------------- */

static void heat(struct cv_epbell *eb, uint64_t now)
{
	struct cv_epoll *e = eb->e;

	eb->rung = now;
	if (eb->hot)
		return;
	eb->hot = true;
	eb->hot_next = e->hot;
	e->hot = eb;
	e->nhot++;
}

static void cool(struct cv_epbell *eb)
{
	struct cv_epbell **p;

	if (!eb->hot)
		return;
	for (p = &eb->e->hot; *p != eb; p = &(*p)->hot_next)
		;
	*p = eb->hot_next;
	eb->hot = false;
	eb->e->nhot--;
}

static void bell_finish(struct cv_epbell *eb)
{
	eb->link->ops->bell_close(eb->b);
	cell_put(eb);
}

struct cv_epbell *cv_ep_bell_get(struct cv_epoll *e, struct cv_link *link)
{
	struct cv_epbell *eb;

	for (eb = e->bells; eb; eb = eb->next)
		if (eb->link == link)
			return eb;
	if (!e->wake_fd && wake_open(e) < 0)
		return NULL;
	eb = cell_get();
	if (!eb)
		return NULL;
	eb->b = link->ops->bell_open(link, e);
	if (!eb->b) {
		cell_put(eb);
		return NULL;
	}
	if (tag_add(e, eb->b->fd, eb->tag)) {
		link->ops->bell_close(eb->b);
		cell_put(eb);
		return NULL;
	}
	eb->link = link;
	eb->e = e;
	eb->users = 0;
	eb->hot = false;
	eb->next = e->bells;
	e->bells = eb;
	if (e->nhot < CV_EP_HOT)
		heat(eb, cv_ticks()); /* armed since it was opened, until somebody who is awake disarms it */
	return eb;
}

void cv_ep_bell_put(struct cv_epbell *eb)
{
	struct cv_epoll *e = eb->e;
	struct cv_epbell **p;

	for (p = &e->bells; *p != eb; p = &(*p)->next)
		;
	*p = eb->next;
	cool(eb);
	cv_sys4(SYS_epoll_ctl, e->fd, EPOLL_CTL_DEL, eb->b->fd, 0);
	eb->e = NULL;
	if (e->pollers) { /* somebody may be looking at it this moment */
		eb->next = e->dead;
		e->dead = eb;
	} else {
		bell_finish(eb);
	}
}

void cv_ep_reap(struct cv_epoll *e)
{
	struct cv_epbell *eb = e->dead, *next;

	e->dead = NULL;
	for (; eb; eb = next) {
		next = eb->next;
		bell_finish(eb);
	}
}

void cv_ep_bells_forked(struct cv_epoll *e)
{
	e->bells = e->hot = e->dead = NULL;
	e->nhot = 0;
}

static void on_ring(void *arg, struct cv_stream *st)
{
	struct cv_epoll *e = arg;
	struct cv_sock *s = cv_sock_of(st);
	struct cv_epitem *it = __atomic_load_n(&s->items, __ATOMIC_ACQUIRE);

	if (unlikely(!it || it->e != e || it->s != s)) {
		/*
		 * Not the first of several, or a late ring for a socket that was routed elsewhere, whose new place has looked at it
		 * since.
		 */
		cv_lock(&s->wait_lock);
		for (it = s->items; it && it->e != e; it = it->snext)
			;
		cv_unlock(&s->wait_lock);
		if (!it)
			return;
	}
	if (likely(it->on && !it->disabled)) {
		it->idle = 0;
		cv_ep_push(it);
	} else if (++it->idle > 16) { /* nobody is interested: stop the peer from ringing */
		struct cv_link *link;

		it->idle = 0;
		cv_lock(&s->wait_lock);
		link = cv_ep_linked(s) && st->port ? st->port->link : NULL;
		if (link && it->routed) {
			it->routed = false;
			link->ops->want(st, 0, 0, CV_WANT_RX_BELL | CV_WANT_TX_BELL);
		}
		cv_unlock(&s->wait_lock);
	}
}

void cv_ep_drain(struct cv_epoll *e, struct cv_epbell *eb)
{
	eb->link->ops->bell_drain(eb->b, on_ring, e);
}

void cv_ep_drain_hot(struct cv_epoll *e, uint64_t now)
{
	struct cv_epbell *eb, *next;

	for (eb = e->hot; eb; eb = next) {
		next = eb->hot_next;
		if (eb->link->ops->bell_pending(eb->b)) {
			eb->rung = now;
			cv_ep_drain(e, eb);
		} else if (unlikely((int64_t)(now - eb->rung) > (int64_t)cv_ep_us(CV_EP_COLD_US))) {
			eb->link->ops->bell_arm(eb->b);
			if (!eb->link->ops->bell_pending(eb->b))
				cool(eb);
		}
	}
}

void cv_ep_heat(struct cv_epoll *e, uint32_t tag, uint64_t now)
{
	struct cv_epbell *eb = tag ? cell_of(tag) : NULL;

	if (!eb || eb->e != e) /* the wake fd, or one that was closed since */
		return;
	if (eb->hot || e->nhot < CV_EP_HOT) {
		heat(eb, now);
		return;
	}
	/* Too many: this one stays armed. */
	do {
		cv_ep_drain(e, eb);
		eb->link->ops->bell_arm(eb->b);
	} while (eb->link->ops->bell_pending(eb->b));
}

bool cv_ep_arm(struct cv_epoll *e)
{
	bool pending = false;

	for (struct cv_epbell *eb = e->hot; eb; eb = eb->hot_next) {
		eb->link->ops->bell_arm(eb->b);
		pending |= eb->link->ops->bell_pending(eb->b);
	}
	return pending;
}

void cv_ep_disarm(struct cv_epoll *e)
{
	for (struct cv_epbell *eb = e->hot; eb; eb = eb->hot_next)
		eb->link->ops->bell_disarm(eb->b);
}

/*
 * The kernel asks the eventfds in a set whether they are readable when it is asked whether the set is: those that nobody waits for must
 * not be. The fds first: a ring after that writes again, since the bells are armed next.
 */
void cv_ep_show(struct cv_epoll *e)
{
	uint64_t n;

	if (e->wake_fd)
		cv_sys3(SYS_read, e->wake_fd - 1, &n, sizeof(n));
	for (struct cv_epbell *eb = e->bells; eb; eb = eb->next)
		cv_sys3(SYS_read, eb->b->fd, &n, sizeof(n));
	for (struct cv_epbell *eb = e->bells; eb; eb = eb->next) {
		eb->link->ops->bell_arm(eb->b);
		if (eb->link->ops->bell_pending(eb->b))
			cv_ep_drain(e, eb);
	}
	if (cv_ep_any_ready(e))
		cv_ep_wake(e);
}
