/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rendezvous on one host: the TCP client listens on an abstract unix socket named after the 4-tuple, the owner of the accepted socket dials it. The dialer
 * speaks first (HELLO with the segment and its bell), the listener answers HELLO_OK with its bell. Who the peer is, is proved later, by the fence
 * on the twin; a squatter here gains nothing. All on the agent's thread, nothing blocks.
 */
#include "../base/clock.h"
#include "shm.h"
#include <errno.h>
#include <fcntl.h>
#include <sha256.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#define LISTENERS_MAX 64
#define CALLS_MAX 256
#define IDLE_LINKS_MAX 64
#define HELLO_TIMEOUT_NS 2000000000ull

struct cv_listener {
	struct cv_watch watch;
	bool used;
};

/* One handshake: a dial, or an accepted dial. */
struct call {
	struct cv_watch watch;
	struct cv_timer timer;
	struct cv_shm_link *link; /* dialer: the segment made for it */
	void *arg;
	struct ucred peer;
	uint64_t ino;
	bool used, dialer;
};

static struct cv_listener listeners[LISTENERS_MAX];
static struct call calls[CALLS_MAX];

static socklen_t name_of(struct sockaddr_un *a, const struct cv_tuple *t)
{
	static const char hex[] = "0123456789abcdef";
	const uint8_t *raw = (const uint8_t *)t;
	size_t n = 0;

	*a = (struct sockaddr_un){.sun_family = AF_UNIX};
	memcpy(a->sun_path + 1, "culvert/", 8);
	n = 9;
	for (size_t i = 0; i < sizeof(*t); i++) {
		a->sun_path[n++] = hex[raw[i] >> 4];
		a->sun_path[n++] = hex[raw[i] & 15];
	}
	return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + n);
}

static int unix_socket(void)
{
	return cv_fd_new(SYS_socket, AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, 0);
}

/*
 * What both ends must agree upon: uids of dialer and listener, each as it really is on one side and as SO_PEERCRED shows it on the other, and the
 * segment. A relay between two honest sides shows them different uids or different segments.
 */
static void identity(uint8_t out[32], uint32_t dialer_uid, uint32_t listener_uid, uint64_t ino)
{
	uint64_t v[3] = {dialer_uid, listener_uid, ino};
	SHA256_CTX c;

	SHA256Init(&c);
	SHA256Update(&c, (const uint8_t *)"culvert shm 1", 13);
	SHA256Update(&c, (const uint8_t *)v, sizeof(v));
	SHA256Final(out, &c);
}

static void call_end(struct call *c)
{
	cv_agent_timer(&c->timer, 0);
	if (c->watch.fd >= 0) {
		cv_agent_watch(&c->watch, 0);
		cv_fd_close(c->watch.fd);
	}
	if (c->link)
		cv_shm_drop(c->link);
	c->link = NULL;
	c->used = false;
}

static void call_failed(struct call *c, enum cv_reason why)
{
	bool dialer = c->dialer;
	void *arg = c->arg;

	call_end(c);
	if (dialer)
		cv_link_events->dialled(arg, NULL, why);
}

static void call_late(struct cv_timer *t)
{
	call_failed(cv_container_of(t, struct call, timer), CV_REASON_TIMEOUT);
}

static void call_up(struct call *c, int peer_bell)
{
	struct cv_shm_link *l = c->link;
	bool dialer = c->dialer;
	void *arg = c->arg;
	uint8_t id[32];
	uint32_t me = (uint32_t)cv_sys0(SYS_geteuid);
	int sock = c->watch.fd;

	identity(id, dialer ? me : c->peer.uid, dialer ? c->peer.uid : me, c->ino);
	cv_agent_watch(&c->watch, 0);
	c->watch.fd = -1;
	c->link = NULL;
	call_end(c);
	cv_shm_up(l, sock, peer_bell, id, c->peer.pid, c->peer.uid);
	if (dialer)
		cv_link_events->dialled(arg, &l->link, CV_REASON_NONE);
}

/* The dialer gets HELLO_OK. */
static void answered(struct call *c)
{
	struct cv_shm_pkt p;
	int fds[2], err = cv_pkt_recv(c->watch.fd, &p, fds);

	if (err == -EAGAIN)
		return;
	if (!err && p.kind == CV_PKT_HELLO_OK && p.version == CV_WIRE_VERSION && fds[0] >= 0 && !cv_wake_fd_check(fds[0])) {
		cv_fd_close(fds[1]);
		call_up(c, fds[0]);
		return;
	}
	if (!err) {
		cv_fd_close(fds[0]);
		cv_fd_close(fds[1]);
	}
	call_failed(c, err == -EPIPE || err == -ECONNRESET ? CV_REASON_PEER_REFUSED : CV_REASON_PROTOCOL);
}

/* Anybody on this host may dial and make us map a segment: not without end. Honest links soon carry a stream. */
static bool too_many_idle(void)
{
	unsigned idle = 0;

	for (struct cv_link *k = cv_links; k; k = k->next)
		if (k->ops == &cv_shm_ops && cv_shm_of(k)->side == 1 && !atomic_load_explicit(&cv_shm_of(k)->attached, memory_order_relaxed))
			idle++;
	return idle >= IDLE_LINKS_MAX;
}

/* The listener gets HELLO. */
static void greeted(struct call *c)
{
	struct cv_shm_pkt p, ok = {.kind = CV_PKT_HELLO_OK, .version = CV_WIRE_VERSION};
	int fds[2], err = cv_pkt_recv(c->watch.fd, &p, fds);
	struct stat st;

	if (err == -EAGAIN)
		return;
	if (err) {
		call_end(c);
		return;
	}
	if (too_many_idle() || p.kind != CV_PKT_HELLO || p.version != CV_WIRE_VERSION || fds[0] < 0 || fds[1] < 0 || fstat(fds[0], &st) < 0 ||
	    cv_wake_fd_check(fds[1]) || cv_shm_map(&c->link, fds[0], p.ring, p.slots)) {
		cv_fd_close(fds[0]);
		cv_fd_close(fds[1]);
		call_end(c);
		return;
	}
	c->ino = st.st_ino;
	cv_fd_close(fds[0]);
	if (cv_pkt_send(c->watch.fd, &ok, &c->link->bell0.fd, 1)) {
		cv_fd_close(fds[1]);
		call_end(c);
		return;
	}
	call_up(c, fds[1]);
}

static void call_ready(struct cv_watch *w, uint32_t events)
{
	struct call *c = cv_container_of(w, struct call, watch);

	(void)events;
	if (!c->used)
		return;
	if (c->dialer)
		answered(c);
	else
		greeted(c);
}

static struct call *call_new(int sock, bool dialer)
{
	socklen_t len = sizeof(struct ucred);

	for (unsigned i = 0; i < CALLS_MAX; i++) {
		struct call *c = &calls[i];

		if (c->used)
			continue;
		*c = (struct call){.watch = {.fd = sock, .fn = call_ready}, .timer = {.fn = call_late}, .used = true, .dialer = dialer};
		cv_sys5(SYS_getsockopt, sock, SOL_SOCKET, SO_PEERCRED, &c->peer, &len);
		cv_agent_timer(&c->timer, cv_now_ns() + HELLO_TIMEOUT_NS);
		if (!cv_agent_watch(&c->watch, EPOLLIN))
			return c;
		call_end(c);
		return NULL;
	}
	cv_fd_close(sock);
	return NULL;
}

/* ---- client -------------------------------------------------------------------------------------------------------------------- */

static void knocked(struct cv_watch *w, uint32_t events)
{
	int fd;

	(void)events;
	fd = cv_fd_new(SYS_accept4, w->fd, 0, 0, SOCK_CLOEXEC | SOCK_NONBLOCK);
	if (fd == -EMFILE || fd == -ENFILE) /* it would be reported again and again; the search ends without an answer */
		cv_agent_watch(w, 0);
	if (fd < 0)
		return;
	call_new(fd, false);
}

int cv_shm_listen(struct cv_listener **out, const struct cv_tuple *t)
{
	struct sockaddr_un a;
	socklen_t len = name_of(&a, t);
	int fd, err;

	for (unsigned i = 0; i < LISTENERS_MAX; i++) {
		struct cv_listener *l = &listeners[i];

		if (l->used)
			continue;
		fd = unix_socket();
		if (fd < 0)
			return fd;
		err = (int)cv_sys3(SYS_bind, fd, &a, len);
		if (!err)
			err = (int)cv_sys2(SYS_listen, fd, 4);
		l->watch = (struct cv_watch){.fd = fd, .fn = knocked};
		if (!err)
			err = cv_agent_watch(&l->watch, EPOLLIN);
		if (err) {
			cv_fd_close(fd);
			return err;
		}
		l->used = true;
		*out = l;
		return 0;
	}
	return -EMFILE;
}

void cv_shm_unlisten(struct cv_listener *l)
{
	if (!l || !l->used)
		return;
	cv_agent_watch(&l->watch, 0);
	cv_fd_close(l->watch.fd);
	l->used = false;
}

/* ---- server -------------------------------------------------------------------------------------------------------------------- */

/* One that has room. A process of another pid namespace shows as 0: no telling which. */
static struct cv_link *link_to(int32_t pid)
{
	for (struct cv_link *k = cv_links; k; k = k->next)
		if (pid > 0 && k->up && k->ops == &cv_shm_ops && k->peer_pid == pid && cv_shm_of(k)->side == 0 &&
		    atomic_load_explicit(&cv_shm_of(k)->slots_used, memory_order_relaxed) < cv_shm_of(k)->slots)
			return k;
	return NULL;
}

static bool calling(int32_t pid)
{
	for (unsigned i = 0; i < CALLS_MAX; i++)
		if (pid > 0 && calls[i].used && calls[i].dialer && calls[i].link && calls[i].peer.pid == pid)
			return true;
	return false;
}

static int greet(struct call *c, uint64_t ring)
{
	struct cv_shm_pkt hello = {.kind = CV_PKT_HELLO, .version = CV_WIRE_VERSION};
	int fds[2], err;
	struct stat st;

	err = cv_shm_create(&c->link, ring, &fds[0]);
	if (err)
		return err;
	hello.ring = c->link->ring;
	hello.slots = c->link->slots;
	fds[1] = c->link->bell0.fd;
	err = fstat(fds[0], &st) < 0 ? -EBADF : cv_pkt_send(c->watch.fd, &hello, fds, 2);
	if (!err)
		c->ino = st.st_ino;
	cv_fd_close(fds[0]);
	return err;
}

int cv_shm_dial(const struct cv_tuple *t, uint64_t ring, void *arg)
{
	struct sockaddr_un a;
	socklen_t len = name_of(&a, t);
	struct cv_link *k;
	struct call *c;
	int fd = unix_socket(), err;

	if (fd < 0)
		return fd;
	err = (int)cv_sys3(SYS_connect, fd, &a, len);
	if (err) {
		cv_fd_close(fd);
		return err;
	}
	c = call_new(fd, true);
	if (!c)
		return -EMFILE;
	/* Who answered may be a process that we have a link with, or are just making one with: that one will do. */
	k = link_to(c->peer.pid);
	if (k || calling(c->peer.pid)) {
		call_end(c);
		if (k)
			cv_link_events->dialled(arg, k, CV_REASON_NONE);
		return k ? 0 : -EALREADY;
	}
	err = greet(c, ring);
	if (err) {
		call_end(c);
		return err;
	}
	c->arg = arg;
	return 0;
}

void cv_rendezvous_forked(void)
{
	memset(listeners, 0, sizeof(listeners));
	memset(calls, 0, sizeof(calls));
}
