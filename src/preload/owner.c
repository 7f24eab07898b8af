/* SPDX-License-Identifier: Apache-2.0 */
#include "owner.h"
#include "../base/clock.h"
#include "../observe/log.h"
#include "engine.h"
#include "upgrade.h"
#include <errno.h>
#include <sha256.h>
#include <stddef.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>

#define FORKS_MAX 4096u	 /* later forks: their connections stay on TCP */
#define CELLS 65536u
#define WAIT_NS 5000000000ull
#define REQUEST 0x72767463u
#define MAILS 64 /* taken at a time */

enum { OWNER_LINKED = 1, OWNER_SHARED = 2 };

struct cell {
	_Atomic uint32_t pid;	/* 0: nobody yet */
	_Atomic uint32_t flags; /* futex word */
};

/* Asked of the owner's agent. */
struct request {
	uint32_t magic, fork_seq, index;
};

_Atomic uint32_t cv_fork_seq;
static struct cell *tables[FORKS_MAX]; /* [fork_seq of the socks it is for] */
static _Atomic uint32_t me;
static _Atomic uint64_t family; /* a random number that parents and children share; 0: not drawn yet */
static struct cv_watch mailbox = {.fd = -1};

static uint32_t my_pid(void)
{
	uint32_t pid = atomic_load_explicit(&me, memory_order_relaxed);

	if (unlikely(!pid)) {
		pid = (uint32_t)cv_sys0(SYS_getpid);
		atomic_store_explicit(&me, pid, memory_order_relaxed);
	}
	return pid;
}

static struct cell *cell_of(const struct cv_sock *s)
{
	if (s->fork_seq >= FORKS_MAX || s->index >= CELLS || !tables[s->fork_seq])
		return NULL;
	return &tables[s->fork_seq][s->index];
}

static bool take(struct cell *c)
{
	uint32_t nobody = 0;

	return atomic_compare_exchange_strong_explicit(&c->pid, &nobody, my_pid(), memory_order_seq_cst, memory_order_relaxed) ||
	       nobody == my_pid();
}

enum cv_owner cv_owner_of(const struct cv_sock *s)
{
	struct cell *c;
	uint32_t pid;

	if (!cv_owner_shared(s))
		return CV_OWNER_US;
	c = cell_of(s);
	if (!c || (atomic_load_explicit(&c->flags, memory_order_seq_cst) & OWNER_SHARED))
		return CV_OWNER_OTHER;
	pid = atomic_load_explicit(&c->pid, memory_order_relaxed);
	return !pid ? CV_OWNER_NOBODY : pid == my_pid() ? CV_OWNER_US : CV_OWNER_OTHER;
}

bool cv_owner_linked(struct cv_sock *s)
{
	struct cell *c = cv_owner_shared(s) ? cell_of(s) : NULL;

	/* We set LINKED, then look for SHARED; the other sets SHARED, then looks for LINKED. Partner: cv_owner_io(). */
	return !c || !(atomic_fetch_or_explicit(&c->flags, OWNER_LINKED, memory_order_seq_cst) & OWNER_SHARED);
}

void cv_owner_unlinked(struct cv_sock *s)
{
	struct cell *c = cv_owner_shared(s) ? cell_of(s) : NULL;

	if (!c || atomic_load_explicit(&c->pid, memory_order_relaxed) != my_pid())
		return;
	atomic_fetch_and_explicit(&c->flags, ~(uint32_t)OWNER_LINKED, memory_order_seq_cst);
	cv_sys3(SYS_futex, &c->flags, FUTEX_WAKE, INT32_MAX);
}

void cv_owner_gone(struct cv_sock *s)
{
	struct cell *c = cv_owner_shared(s) ? cell_of(s) : NULL;
	uint32_t pid = my_pid();

	cv_owner_unlinked(s);
	if (c)
		atomic_compare_exchange_strong(&c->pid, &pid, 0);
}

/* ---- asking the owner ----------------------------------------------------------------------------------------------------------- */

static void family_draw(void)
{
	uint64_t none = 0, n = 0;

	if (atomic_load_explicit(&family, memory_order_relaxed))
		return;
	if (cv_sys3(SYS_getrandom, &n, sizeof(n), 0) != sizeof(n) || !n)
		n = cv_now_ns() | 1;
	atomic_compare_exchange_strong(&family, &none, n);
}

/*
 * Abstract, so that it needs no file and works across users; but nobody outside the family shall be able to take it before us, nor shall two
 * processes of the same number in two pid namespaces.
 */
static socklen_t name_of(struct sockaddr_un *a, uint32_t pid)
{
	static const char prefix[] = "culvert-agent/", hex[] = "0123456789abcdef";
	uint64_t v[2] = {atomic_load_explicit(&family, memory_order_relaxed), pid};
	uint8_t sum[SHA256_DIGEST_LENGTH];
	size_t n = 1;
	SHA256_CTX c;

	SHA256Init(&c);
	SHA256Update(&c, (const uint8_t *)v, sizeof(v));
	SHA256Final(sum, &c);
	*a = (struct sockaddr_un){.sun_family = AF_UNIX};
	memcpy(a->sun_path + n, prefix, sizeof(prefix) - 1);
	n += sizeof(prefix) - 1;
	for (size_t i = 0; i < 16; i++) {
		a->sun_path[n++] = hex[sum[i] >> 4];
		a->sun_path[n++] = hex[sum[i] & 15];
	}
	return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + n); /* the length counts, not a terminator */
}

static void ask(uint32_t pid, const struct request *r)
{
	struct sockaddr_un a;
	socklen_t len = name_of(&a, pid);
	int fd = cv_fd_new(SYS_socket, AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, 0);

	if (fd < 0)
		return;
	cv_sys6(SYS_sendto, fd, (long)r, sizeof(*r), MSG_DONTWAIT | MSG_NOSIGNAL, (long)&a, len);
	cv_fd_close(fd);
}

/* Until the owner has it on TCP. */
static int wait_unlinked(struct cell *c, const struct request *r)
{
	uint64_t until = cv_now_ns() + WAIT_NS;
	uint32_t flags, pid;

	while ((flags = atomic_load_explicit(&c->flags, memory_order_seq_cst)) & OWNER_LINKED) {
		struct timespec ts = {.tv_nsec = 50000000};

		pid = atomic_load_explicit(&c->pid, memory_order_relaxed);
		if (cv_now_ns() >= until || !pid || cv_sys2(SYS_kill, pid, 0) == -ESRCH)
			return -ETIMEDOUT;
		ask(pid, r);
		cv_sys4(SYS_futex, &c->flags, FUTEX_WAIT, flags, &ts);
	}
	return 0;
}

int cv_owner_io(struct cv_sock *s, int fd)
{
	struct cell *c = cell_of(s);
	struct request r = {.magic = REQUEST, .fork_seq = s->fork_seq, .index = s->index};
	int err = 0;

	if (!s->foreign && (!c || take(c)))
		return 0;
	if (c) {
		atomic_fetch_or_explicit(&c->flags, OWNER_SHARED, memory_order_seq_cst);
		err = wait_unlinked(c, &r);
	} else {
		err = -ETIMEDOUT;
	}
	cv_sock_lock(s);
	if (cv_fd_get(fd) == (uintptr_t)s) {
		if (s->foreign)
			cv_engine_init(s); /* the copy of the parent's stream means nothing here */
		s->foreign = 0;
		s->fd = fd;
		cv_sock_exclude(s, CV_REASON_FORK);
	}
	cv_sock_unlock(s);
	if (err) {
		cv_log(CV_LOG_WARN, "descriptor %d: process %u did not return the connection to TCP in time; connection ended", fd,
		       c ? atomic_load(&c->pid) : 0);
		cv_sys2(SYS_shutdown, fd, SHUT_RDWR);
	}
	return err;
}

/* ---- being asked ---------------------------------------------------------------------------------------------------------------- */

static void give(const struct request *r)
{
	struct cv_sock *s = cv_sock_by_index(r->index);
	struct cell *c;

	if (!s || !s->used || s->closing || s->fork_seq != r->fork_seq)
		return;
	/* Who may ask has said so in memory that only the family has. */
	c = cell_of(s);
	if (!c || !(atomic_load_explicit(&c->flags, memory_order_seq_cst) & OWNER_SHARED))
		return;
	cv_sock_lock(s);
	if (s->used && !s->closing && s->fork_seq == r->fork_seq) {
		s->stay_out = true;
		cv_stream_leave(&s->st, CV_LEAVE_HANDOVER, CV_REASON_FORK);
		if (s->seek == CV_SEEK_ENGINE)
			cv_engine_settle(s);
		if (!s->port.link)
			cv_owner_unlinked(s);
	}
	cv_sock_unlock(s);
}

static void mail(struct cv_watch *w, uint32_t events)
{
	struct request r;

	(void)events;
	/* Anybody on this host may write here: not without end. What is left is reported again. */
	for (int i = 0; i < MAILS && cv_sys6(SYS_recvfrom, w->fd, (long)&r, sizeof(r), MSG_DONTWAIT, 0, 0) == (long)sizeof(r); i++)
		if (r.magic == REQUEST)
			give(&r);
}

bool cv_owner_listen(void)
{
	struct sockaddr_un a;
	socklen_t len;
	int fd;

	if (mailbox.fd >= 0)
		return true;
	family_draw();
	len = name_of(&a, my_pid());
	fd = cv_fd_new(SYS_socket, AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, 0);
	if (fd < 0)
		return false;
	mailbox = (struct cv_watch){.fd = fd, .fn = mail};
	if (cv_sys3(SYS_bind, fd, &a, len) < 0 || cv_agent_watch(&mailbox, EPOLLIN)) {
		cv_fd_close(fd);
		mailbox.fd = -1;
	}
	return mailbox.fd >= 0;
}

/* ---- fork ----------------------------------------------------------------------------------------------------------------------- */

static void share(struct cv_sock *s, void *arg)
{
	uint32_t now = *(uint32_t *)arg;
	struct cell *c = cell_of(s);

	if (!c || !s->port.link)
		return;
	if (s->fork_seq == now)
		atomic_store_explicit(&c->pid, my_pid(), memory_order_relaxed);
	atomic_fetch_or_explicit(&c->flags, OWNER_LINKED, memory_order_seq_cst);
}

void cv_owner_fork_prepare(void)
{
	uint32_t now = atomic_load_explicit(&cv_fork_seq, memory_order_relaxed);

	family_draw();
	if (now < FORKS_MAX && !tables[now]) {
		void *p = mmap(NULL, CELLS * sizeof(struct cell), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

		tables[now] = p == MAP_FAILED ? NULL : p;
	}
	cv_sock_each(share, &now);
}

void cv_owner_fork_child(void)
{
	atomic_store_explicit(&me, 0, memory_order_relaxed);
	mailbox = (struct cv_watch){.fd = -1};
}
