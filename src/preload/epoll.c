/* SPDX-License-Identifier: Apache-2.0 */
/* epoll sets: their memory, their descriptors, fork, and giving up on one. */
#include "epoll_int.h"
#include "../observe/log.h"
#include <sys/mman.h>

/* ---- memory: one slab, type-stable ---------------------------------------------------------------------------------------------- */

static struct cv_lock slab_lock; /* a leaf */
static struct cv_epitem *item_free;
static struct cv_epoll *set_free;
static struct cv_epoll first_sets[8]; /* a program that only makes a set costs no system call */
static struct set_chunk {
	struct set_chunk *next;
	struct cv_epoll set[15];
} *set_chunks;
static uint32_t first_used;

static void *chunk_map(size_t size)
{
	void *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return p == MAP_FAILED ? NULL : p;
}

#define ITEM_CHUNK 512
static struct cv_epitem *item_chunk[(CV_EP_TAGS - CV_EP_ITEM_TAGS) / ITEM_CHUNK]; /* by tag; untouched pages of .bss cost nothing */
static uint32_t item_chunks;

static void item_more(void)
{
	struct cv_epitem *it;

	if (item_chunks == CV_ARRAY_LEN(item_chunk) || !(it = chunk_map(ITEM_CHUNK * sizeof(*it))))
		return;
	for (uint32_t i = ITEM_CHUNK; i-- > 0;) {
		it[i].tag = CV_EP_ITEM_TAGS + item_chunks * ITEM_CHUNK + i;
		it[i].snext = item_free;
		item_free = &it[i];
	}
	__atomic_store_n(&item_chunk[item_chunks++], it, __ATOMIC_RELEASE);
}

struct cv_epitem *cv_ep_item_of(uint32_t tag)
{
	struct cv_epitem *c = __atomic_load_n(&item_chunk[(tag - CV_EP_ITEM_TAGS) / ITEM_CHUNK], __ATOMIC_ACQUIRE);

	return c ? &c[(tag - CV_EP_ITEM_TAGS) % ITEM_CHUNK] : NULL;
}

struct cv_epitem *cv_ep_item_get(void)
{
	struct cv_epitem *it;

	if (unlikely(!cv_ep_reserve_tags()))
		return NULL;
	cv_lock(&slab_lock);
	if (unlikely(!item_free))
		item_more();
	it = item_free;
	if (it)
		item_free = it->snext;
	cv_unlock(&slab_lock);
	return it;
}

void cv_ep_item_put(struct cv_epitem *it)
{
	it->e = NULL;
	it->s = NULL;
	cv_lock(&slab_lock);
	it->snext = item_free;
	item_free = it;
	cv_unlock(&slab_lock);
}

static struct cv_epoll *set_get(void)
{
	struct cv_epoll *e;

	cv_lock(&slab_lock);
	if (!set_free && first_used < CV_ARRAY_LEN(first_sets)) {
		set_free = &first_sets[first_used++];
	} else if (!set_free) {
		struct set_chunk *c = chunk_map(sizeof(*c));

		for (size_t i = 0; c && i < CV_ARRAY_LEN(c->set); i++) {
			c->set[i].next = set_free;
			set_free = &c->set[i];
		}
		if (c) {
			c->next = set_chunks;
			set_chunks = c;
		}
	}
	e = set_free;
	if (e)
		set_free = e->next;
	cv_unlock(&slab_lock);
	return e;
}

static void sets_each(void (*fn)(struct cv_epoll *e))
{
	for (uint32_t i = 0; i < first_used; i++)
		fn(&first_sets[i]);
	for (struct set_chunk *c = set_chunks; c; c = c->next)
		for (size_t i = 0; i < CV_ARRAY_LEN(c->set); i++)
			fn(&c->set[i]);
}

/* ---- sets ------------------------------------------------------------------------------------------------------------------------ */

static void set_end(struct cv_epoll *e)
{
	cv_lock(&e->lock);
	for (struct cv_epitem *it = e->items, *next; it; it = next) {
		next = it->enext;
		if (it->s)
			cv_ep_drop(it);
		else
			cv_ep_pending_drop(it);
	}
	while (e->bells) /* held by nobody any more, but not emptied when the items were foreign */
		cv_ep_bell_put(e->bells);
	cv_ep_wake_close(e);
	e->used = false;
	cv_unlock(&e->lock);
	cv_lock(&slab_lock);
	e->next = set_free;
	set_free = e;
	cv_unlock(&slab_lock);
}

static void set_release(struct cv_epoll *e, int fd)
{
	bool last;
	int other;

	if (fd >= 0)
		cv_fd_set(fd, 0);
	cv_lock(&e->lock);
	last = --e->refs == 0;
	if (!last && cv_fd_epoll(e->fd) != e) {
		other = cv_fd_find((uintptr_t)e | CV_FD_EPOLL, fd);
		e->fd = other >= 0 ? other : e->fd;
	}
	cv_unlock(&e->lock);
	if (last)
		set_end(e);
}

void cv_epoll_new(int fd)
{
	struct cv_epoll *e = cv_fd_epoll(fd);

	if (unlikely(e)) /* closed behind our back */
		set_release(e, fd);
	if (fd < 0 || !(e = set_get()))
		return;
	cv_lock(&e->lock);
	e->fd = fd;
	e->refs = 1;
	e->off = e->foreign = e->inherited = e->late = e->no_spin = e->turn = e->crowded = false;
	e->polled = false;
	e->users = e->sleepers = 0;
	e->wake_fd = 0;
	e->kernel_at = 0;
	e->spin = e->batch = 0;
	e->set = NULL;
	e->nests = false;
	e->busy = NULL;
	for (unsigned i = 0; i < CV_ARRAY_LEN(e->inner); i++)
		e->inner[i] = 0;
	e->used = true;
	cv_unlock(&e->lock);
	if (cv_fd_set(fd, (uintptr_t)e | CV_FD_EPOLL))
		set_end(e);
}

int cv_epoll_close(struct cv_epoll *e, int fd)
{
	set_release(e, fd);
	return fd >= 0 ? (int)cv_sys1(SYS_close, fd) : 0;
}

void cv_epoll_dup(struct cv_epoll *e, int newfd)
{
	cv_lock(&e->lock);
	e->refs++;
	cv_unlock(&e->lock);
	if (cv_fd_set(newfd, (uintptr_t)e | CV_FD_EPOLL)) {
		cv_lock(&e->lock);
		e->refs--;
		cv_unlock(&e->lock);
	}
}

/* ---- fork ------------------------------------------------------------------------------------------------------------------------ */

static void lock_set(struct cv_epoll *e)
{
	cv_lock(&e->lock);
}

static void unlock_set(struct cv_epoll *e)
{
	cv_unlock(&e->lock);
}

void cv_epoll_fork_prepare(void)
{
	sets_each(lock_set);
	cv_ep_pending_fork(0);
	cv_lock(&slab_lock);
}

void cv_epoll_fork_parent(void)
{
	cv_unlock(&slab_lock);
	cv_ep_pending_fork(1);
	sets_each(unlock_set);
}

/* The child's set is the same kernel object as the parent's, bells and all: they are the parent's. */
static void set_forked(struct cv_epoll *e)
{
	atomic_store(&e->lock.word, 0);
	if (!e->used)
		return;
	e->sleepers = 0;
	e->pollers = 0;
	e->wake_fd = 0;
	e->foreign = e->inherited = true;
	e->off = true;
	cv_ep_bells_forked(e);
	for (struct cv_epitem *it = e->items; it; it = it->enext) {
		it->eb = NULL;
		it->routed = false;
	}
}

void cv_epoll_forked(void)
{
	atomic_store(&slab_lock.word, 0);
	cv_ep_pending_fork(2);
	cv_ep_bell_fork();
	sets_each(set_forked);
}

/* First use in the child: what the parent serves from links goes back to TCP, where the kernel's set serves both. */
void cv_ep_unforeign(struct cv_epoll *e)
{
	struct cv_epitem *it;

	cv_lock(&e->lock);
	for (it = e->items; it;) {
		struct cv_sock *s = it->s;

		if (!s || it->outed || it->where != CV_ITEM_USER) {
			it = it->enext;
			continue;
		}
		it->outed = true;
		cv_unlock(&e->lock);
		cv_sock_fall_back(s, CV_LEAVE_STAY, CV_REASON_FORK, true);
		cv_lock(&e->lock);
		it = e->items; /* the list may have changed */
	}
	/* The parent has put back what it served, under the tags that we know too: from now on they all are the kernel's. */
	cv_ep_unready_all(e);
	for (it = e->items; it; it = it->enext) {
		it->where = CV_ITEM_KERNEL;
		it->kreg = true;
	}
	e->users = 0;
	e->foreign = false;
	cv_unlock(&e->lock);
}

void cv_ep_turn_off(struct cv_epoll *e)
{
	struct cv_epitem *it, *next;

	cv_lock(&e->lock);
	if (e->off) {
		cv_unlock(&e->lock);
		return;
	}
	e->off = true; /* nothing moves in any more */
	cv_warn_once("epoll set %d uses data values inside an address range that was reserved for culvert: its sockets stay on TCP", e->fd);
	for (it = e->items; it;) {
		struct cv_sock *s = it->s;

		if (!s || it->outed) {
			it = it->enext;
			continue;
		}
		it->outed = true;
		cv_unlock(&e->lock);
		cv_sock_fall_back(s, CV_LEAVE_STAY, CV_REASON_EPOLL, true);
		cv_lock(&e->lock);
		it = e->items;
	}
	for (it = e->items; it; it = next) {
		next = it->enext;
		cv_ep_give_up(it);
	}
	cv_ep_wake_close(e);
	cv_unlock(&e->lock);
}
