/* SPDX-License-Identifier: Apache-2.0 */
/* Making and ending shm links: the segment, the list of links, the agent's bell. */
#include "../base/clock.h"
#include "../observe/log.h"
#include "../observe/stats.h"
#include "internal_fd.h"
#include "shm.h"
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <linux/memfd.h>
#include <poll.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#define GRAVE_LOOKS 100 /* then the process lives on, and has but closed the channel */

#define UNMAP_NS 500000000ull

struct cv_link *cv_links;
const struct cv_link_events *cv_link_events;

static struct cv_shm_link *free_links; /* type-stable: late looks at a dead link's struct are safe */

/* A file that grows beyond RLIMIT_FSIZE raises SIGXFSZ, which ends the program: ask first. */
static bool size_allowed(uint64_t size)
{
	struct rlimit rl;

	return cv_sys4(SYS_prlimit64, 0, RLIMIT_FSIZE, 0, &rl) < 0 || rl.rlim_cur >= size;
}

int cv_memfd(const char *name, uint64_t size)
{
	int fd = size_allowed(size) ? cv_fd_new(SYS_memfd_create, (long)name, MFD_CLOEXEC | MFD_ALLOW_SEALING, 0, 0) : -EFBIG;
	long err;

	if (fd < 0)
		return fd;
	err = cv_sys2(SYS_ftruncate, fd, size);
	if (!err)
		err = cv_sys3(SYS_fcntl, fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL);
	if (!err)
		return fd;
	cv_fd_close(fd);
	return (int)err;
}

int cv_memfd_check(int fd, uint64_t size)
{
	struct statfs fs;
	struct stat st;
	long seals = cv_sys2(SYS_fcntl, fd, F_GET_SEALS);

	/* Without these seals the peer could shrink it under us and turn every access into SIGBUS. */
	if (seals < 0 || (seals & (F_SEAL_SHRINK | F_SEAL_GROW)) != (F_SEAL_SHRINK | F_SEAL_GROW))
		return -EPROTO;
	if (fstat(fd, &st) < 0 || (uint64_t)st.st_size != size)
		return -EPROTO;
	/* hugetlbfs has seals too, and a fault there is SIGBUS whenever the pool is empty. */
	if (cv_sys2(SYS_fstatfs, fd, &fs) < 0 || fs.f_type != TMPFS_MAGIC)
		return -EPROTO;
	return 0;
}

int cv_wake_fd_check(int fd)
{
	struct stat st;
	long flags = cv_sys2(SYS_fcntl, fd, F_GETFL);

	/* We write to it: a pipe could raise SIGPIPE, a file be written in our name, and all of them hold us up. Anonymous inodes are of no type. */
	return flags < 0 || !(flags & O_NONBLOCK) || fstat(fd, &st) < 0 || (st.st_mode & S_IFMT) ? -EPROTO : 0;
}

static uint64_t rings_offset(uint32_t slots)
{
	uint64_t n = sizeof(struct cv_shm_segment) + (uint64_t)slots * sizeof(struct cv_shm_slot);

	return (n + 4095) & ~4095ull;
}

static uint64_t segment_size(uint64_t ring, uint32_t slots)
{
	return rings_offset(slots) + 2 * ring * slots;
}

static void pump(struct cv_work *w)
{
	struct cv_shm_link *l = cv_container_of(w, struct cv_shm_link, pump);

	if (l->link.up)
		cv_shm_readable(&l->sock, EPOLLOUT);
}

/* A process that is ending tells its pidfd when all its descriptors are closed. */
static bool alive(int32_t pid)
{
	int fd = cv_fd_new(SYS_pidfd_open, pid, 0, 0, 0);
	struct pollfd p = {.fd = fd, .events = POLLIN};
	struct timespec none = {0};
	bool ended;

	if (fd < 0) /* no descriptor to ask with is no answer: GRAVE_LOOKS bounds it */
		return fd == -EMFILE || fd == -ENFILE || fd == -ENOMEM;
	ended = cv_sys5(SYS_ppoll, &p, 1, &none, NULL, 8) == 1;
	cv_fd_close(fd);
	return !ended;
}

static void buried(struct cv_timer *t)
{
	struct cv_shm_link *l = cv_container_of(t, struct cv_shm_link, grave);

	if (alive(l->link.peer_pid) && ++l->grave_looks < GRAVE_LOOKS)
		cv_agent_timer(t, cv_now_ns() + CV_SHM_GRAVE_NS);
	else
		cv_shm_fail(l, CV_REASON_PEER_DEAD);
}

static void breached(struct cv_work *w)
{
	cv_shm_fail(cv_container_of(w, struct cv_shm_link, breach), CV_REASON_PROTOCOL);
}

void cv_shm_breach(struct cv_link *l)
{
	cv_agent_post(&cv_shm_of(l)->breach);
}

static void reap(struct cv_work *w);
static void unmap(struct cv_timer *t);

static struct cv_shm_link *link_new(void)
{
	struct cv_shm_link *l = free_links;

	if (l) {
		free_links = l->free_next;
		memset(l, 0, sizeof(*l));
	} else {
		l = mmap(NULL, sizeof(*l), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		if (l == MAP_FAILED)
			return NULL;
	}
	l->link.ops = &cv_shm_ops;
	l->sock.fd = l->bell0.fd = -1;
	l->breach.fn = breached;
	l->grave.fn = buried;
	l->unmap.fn = unmap;
	l->pump.fn = pump;
	l->reap.fn = reap;
	for (unsigned i = 0; i < CV_LINK_BELLS; i++) {
		l->peer_fd[i] = -1;
		l->bells[i] = (struct cv_bell){.link = &l->link, .index = i, .fd = -1};
	}
	return l;
}

void cv_shm_drop(struct cv_shm_link *l)
{
	if (l->seg)
		munmap(l->seg, l->seg_size);
	if (l->parked)
		munmap(l->parked, l->slots * sizeof(*l->parked));
	if (l->queue)
		munmap(l->queue, CV_SHM_SENDQ * sizeof(*l->queue));
	if (l->bell0.events)
		cv_agent_watch(&l->bell0, 0);
	cv_fd_close(l->bell0.fd);
	for (unsigned i = 0; i < CV_LINK_BELLS; i++)
		cv_fd_close(l->peer_fd[i]);
	l->seg = NULL;
	l->parked = NULL;
	l->queue = NULL;
	l->free_next = free_links;
	free_links = l;
}

static void bell0_rung(struct cv_watch *w, uint32_t events);

static int map(struct cv_shm_link *l, int fd, uint64_t ring, uint32_t slots)
{
	void *p = mmap(NULL, segment_size(ring, slots), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd, 0);
	int efd;

	if (p == MAP_FAILED)
		return -ENOMEM;
	l->seg = p;
	l->seg_size = segment_size(ring, slots);
	l->ring = ring;
	l->slots = slots;
	l->rings = (uint8_t *)p + rings_offset(slots);
	efd = cv_fd_new(SYS_eventfd2, 0, O_CLOEXEC | O_NONBLOCK, 0, 0);
	if (efd < 0)
		return efd;
	l->bell0 = (struct cv_watch){.fd = efd, .fn = bell0_rung};
	l->bells[0].fd = efd;
	l->bells[0].owner = l;
	atomic_store_explicit(&l->seg->bell[l->side][0].armed, 1, memory_order_seq_cst);
	return 0;
}

int cv_shm_create(struct cv_shm_link **out, uint64_t ring, int *fd)
{
	uint32_t slots = (uint32_t)cv_min_u64(CV_SHM_SLOTS, CV_SHM_RINGS_MAX / (2 * ring));
	struct cv_shm_link *l = link_new();
	int err;

	if (!l)
		return -ENOMEM;
	*fd = cv_memfd("culvert-link", segment_size(ring, slots));
	err = *fd;
	if (*fd >= 0) {
		err = map(l, *fd, ring, slots);
		if (err)
			cv_fd_close(*fd);
	}
	if (err < 0) {
		cv_shm_drop(l);
		return err;
	}
	l->seg->head.magic = CV_SHM_MAGIC;
	l->seg->head.version = CV_WIRE_VERSION;
	l->seg->head.size = l->seg_size;
	l->seg->head.ring = ring;
	l->seg->head.slots = slots;
	*out = l;
	return 0;
}

int cv_shm_map(struct cv_shm_link **out, int fd, uint64_t ring, uint32_t slots)
{
	struct cv_shm_link *l;
	int err = -EPROTO;

	if (ring < 4096 || ring > CV_SHM_RINGS_MAX / 2 || (ring & (ring - 1)) || slots == 0 || slots > CV_SHM_SLOTS ||
	    cv_memfd_check(fd, segment_size(ring, slots)))
		return -EPROTO;
	l = link_new();
	if (!l)
		return -ENOMEM;
	l->side = 1;
	err = map(l, fd, ring, slots);
	if (!err) {
		l->parked = mmap(NULL, slots * sizeof(*l->parked), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		if (l->parked == MAP_FAILED) {
			l->parked = NULL;
			err = -ENOMEM;
		}
	}
	if (err) {
		cv_shm_drop(l);
		return err;
	}
	*out = l;
	return 0;
}

void cv_shm_up(struct cv_shm_link *l, int sock, int peer_bell0, const uint8_t identity[32], int32_t peer_pid, uint32_t peer_uid)
{
	l->sock = (struct cv_watch){.fd = sock, .fn = cv_shm_readable};
	atomic_store_explicit(&l->peer_fd[0], peer_bell0, memory_order_release);
	memcpy(l->link.identity, identity, sizeof(l->link.identity));
	l->link.peer_pid = peer_pid;
	l->link.peer_uid = peer_uid;
	l->link.up = true;
	l->link.next = cv_links;
	cv_links = &l->link;
	cv_count(CV_CTR_LINKS, 1);
	if (cv_agent_watch(&l->bell0, EPOLLIN) || cv_agent_watch(&l->sock, EPOLLIN))
		cv_shm_fail(l, CV_REASON_NO_MEMORY);
}

static void unlist(struct cv_link *k)
{
	for (struct cv_link **p = &cv_links; *p; p = &(*p)->next) {
		if (*p == k) {
			*p = k->next;
			return;
		}
	}
}

void cv_shm_fail(struct cv_shm_link *l, enum cv_reason why)
{
	if (!l->link.up)
		return;
	cv_log(CV_LOG_INFO, "link to process %d ended: %s", (int)l->link.peer_pid, cv_reason_name(why));
	cv_count(CV_CTR_LINKS_LOST, 1);
	cv_lock(&l->send);
	l->link.up = false;
	cv_unlock(&l->send);
	unlist(&l->link);
	cv_agent_timer(&l->grave, 0);
	cv_agent_watch(&l->sock, 0);
	cv_agent_watch(&l->bell0, 0);
	cv_fd_close(l->sock.fd);
	l->sock.fd = -1;
	for (uint32_t i = 0; i < l->slots; i++) {
		struct cv_stream *s = atomic_load_explicit(&l->streams[i], memory_order_acquire);

		if (s)
			cv_link_events->down(s, why);
	}
	cv_shm_reap(l);
}

void cv_shm_reap(struct cv_shm_link *l)
{
	cv_agent_post(&l->reap);
}

static bool held(const struct cv_shm_link *l)
{
	if (l->link.up || !l->seg || atomic_load_explicit(&l->attached, memory_order_acquire))
		return true;
	for (unsigned i = 1; i < CV_LINK_BELLS; i++)
		if (l->bells[i].owner)
			return true; /* its wait domain notices and closes it */
	return false;
}

static void unmap(struct cv_timer *t)
{
	struct cv_shm_link *l = cv_container_of(t, struct cv_shm_link, unmap);

	if (!held(l))
		cv_shm_drop(l);
}

/* Nobody holds it any more; but a thread that spins or polls without a lock may still be about to look at a line of the segment. */
static void reap(struct cv_work *w)
{
	struct cv_shm_link *l = cv_container_of(w, struct cv_shm_link, reap);

	if (!held(l) && !l->unmap.pos)
		cv_agent_timer(&l->unmap, cv_now_ns() + UNMAP_NS);
}

/* ---- the agent's bell ---------------------------------------------------------------------------------------------------------- */

static void rung(void *arg, struct cv_stream *s)
{
	(void)arg;
	cv_link_events->rung(s);
}

/* Bells whose eventfd the peer did not have yet were rung on ours: pass it on. */
static void forward(struct cv_shm_link *l)
{
	uint64_t one = 1;

	for (unsigned i = 1; i < CV_LINK_BELLS; i++) {
		struct cv_shm_bell *b = &l->seg->bell[l->side][i];

		cv_lock(&l->lock);
		if (l->bells[i].owner && !atomic_load_explicit(&b->armed, memory_order_relaxed) &&
		    cv_shm_ops.bell_pending(&l->bells[i]))
			cv_sys3(SYS_write, l->bells[i].fd, &one, sizeof(one));
		cv_unlock(&l->lock);
	}
}

static void bell0_rung(struct cv_watch *w, uint32_t events)
{
	struct cv_shm_link *l = cv_container_of(w, struct cv_shm_link, bell0);
	uint64_t n, one = 1;

	(void)events;
	cv_sys3(SYS_read, w->fd, &n, sizeof(n));
	if (!l->link.up)
		return;
	cv_shm_ops.bell_drain(&l->bells[0], rung, NULL);
	forward(l);
	cv_shm_ops.bell_arm(&l->bells[0]);
	/* A peer that rings without end must not hold us here: everything else has its turn first. */
	if (l->link.up && cv_shm_ops.bell_pending(&l->bells[0]))
		cv_sys3(SYS_write, w->fd, &one, sizeof(one));
}

/* ---- fork ---------------------------------------------------------------------------------------------------------------------- */

/* The child keeps the mappings (its copies of streams point into them) but takes no part; fds are closed by cv_fd_forked(). */
void cv_shm_forked(void)
{
	for (struct cv_link *k = cv_links; k; k = k->next) {
		struct cv_shm_link *l = cv_shm_of(k);

		k->up = false;
		l->lock = l->send = (struct cv_lock){0};
		l->sock.fd = l->bell0.fd = -1;
		for (unsigned i = 0; i < CV_LINK_BELLS; i++)
			l->peer_fd[i] = -1;
	}
	cv_links = NULL;
	free_links = NULL;
}
