/* SPDX-License-Identifier: Apache-2.0 */
#include "fake.h"
#include <dirent.h>
#include <linux/memfd.h>
#include <sys/epoll.h>

#define WATCHES 512
#define TIMERS 512

struct told told;
static struct cv_watch *watches[WATCHES];
static struct cv_timer *timers[TIMERS];
static struct cv_lock work_lock; /* the data path posts from any thread */
static struct cv_work *works, **works_end = &works;
static unsigned fds_before;

/* ---- the agent ----------------------------------------------------------------------------------------------------------------- */

int cv_agent_start(void)
{
	return 0;
}

bool cv_agent_self(void)
{
	return true;
}

bool cv_agent_running(void)
{
	return true;
}

int cv_agent_post(struct cv_work *w)
{
	if (atomic_exchange(&w->queued, 1))
		return 0;
	cv_lock(&work_lock);
	w->next = NULL;
	*works_end = w;
	works_end = &w->next;
	cv_unlock(&work_lock);
	return 0;
}

int cv_agent_watch(struct cv_watch *w, uint32_t events)
{
	unsigned i, room = WATCHES;

	if (events == w->events)
		return 0;
	for (i = 0; i < WATCHES && watches[i] != w; i++)
		if (!watches[i])
			room = i;
	if (i == WATCHES)
		i = room;
	assert_true(i < WATCHES);
	watches[i] = events ? w : NULL;
	w->events = events;
	return 0;
}

void cv_agent_timer(struct cv_timer *t, uint64_t at)
{
	if (t->pos)
		timers[t->pos - 1] = NULL;
	t->pos = 0;
	t->at = at;
	for (unsigned i = 0; at && i < TIMERS && !t->pos; i++) {
		if (!timers[i]) {
			timers[i] = t;
			t->pos = i + 1;
		}
	}
}

static bool work_one(void)
{
	struct cv_work *w;

	cv_lock(&work_lock);
	w = works;
	if (w) {
		works = w->next;
		if (!works)
			works_end = &works;
	}
	cv_unlock(&work_lock);
	if (!w)
		return false;
	atomic_store(&w->queued, 0);
	w->fn(w);
	return true;
}

static bool watch_one(void)
{
	bool any = false;

	for (unsigned i = 0; i < WATCHES; i++) {
		struct cv_watch *w = watches[i];
		struct pollfd p;

		if (!w)
			continue;
		p = (struct pollfd){.fd = w->fd, .events = (short)w->events};
		if (poll(&p, 1, 0) != 1)
			continue;
		assert_int_equal(p.revents & POLLNVAL, 0); /* closed, but still watched */
		any = true;
		w->fn(w, (uint32_t)p.revents);
	}
	return any;
}

void fake_turn(void)
{
	for (unsigned i = 0; i < 10000; i++) {
		bool work = work_one();

		if (!watch_one() && !work)
			return;
	}
	fail_msg("the agent does not come to rest");
}

unsigned fake_expire(void)
{
	unsigned n = 0;

	for (unsigned i = 0; i < TIMERS; i++) {
		struct cv_timer *t = timers[i];

		if (!t)
			continue;
		cv_agent_timer(t, 0);
		t->fn(t);
		n++;
	}
	return n;
}

bool fake_expire_one(struct cv_timer *t)
{
	if (!t->pos)
		return false;
	cv_agent_timer(t, 0);
	t->fn(t);
	return true;
}

unsigned fake_watches(void)
{
	unsigned n = 0;

	for (unsigned i = 0; i < WATCHES; i++)
		n += watches[i] != NULL;
	return n;
}

unsigned fake_timers(void)
{
	unsigned n = 0;

	for (unsigned i = 0; i < TIMERS; i++)
		n += timers[i] != NULL;
	return n;
}

/* ---- the layer above ----------------------------------------------------------------------------------------------------------- */

static struct cv_stream *offered(struct cv_link *l, const struct cv_tuple *t, enum cv_reason *nak)
{
	told.offered++;
	told.link = l;
	told.tuple = *t;
	*nak = told.nak;
	return told.give;
}

static void accept_open(struct cv_stream *s, const struct cv_msg *open, const uint8_t identity[32])
{
	told.accepted++;
	told.s = s;
	told.msg = *open;
	assert_memory_equal(identity, s->port->link->identity, 32);
}

static void message(struct cv_stream *s, const struct cv_msg *m, int fd)
{
	struct stat st;

	told.messages++;
	told.s = s;
	told.msg = *m;
	told.order = told.order * 31 + m->epoch;
	told.fd_size = fd >= 0 && fstat(fd, &st) == 0 ? (uint64_t)st.st_size : UINT64_MAX;
	if (m->type == CV_MSG_GROW)
		told.take_gen = cv_shm_take_gen(s, m, fd);
}

static void rung(struct cv_stream *s)
{
	told.rung++;
	told.s = s;
}

static void down(struct cv_stream *s, enum cv_reason why)
{
	told.down++;
	told.s = s;
	told.why = why;
}

static void dialled(void *arg, struct cv_link *l, enum cv_reason why)
{
	told.dialled++;
	told.arg = arg;
	told.link = l;
	told.why = why;
}

static const struct cv_link_events events = {
	.offered = offered, .accept = accept_open, .message = message, .rung = rung, .down = down, .dialled = dialled};

int fake_setup(void **state)
{
	(void)state;
	memset(&told, 0, sizeof(told));
	cv_link_events = &events;
	fds_before = open_fds();
	return 0;
}

/* Every test leaves things as it found them: no link, watch, timer or descriptor. */
int fake_teardown(void **state)
{
	(void)state;
	while (cv_links)
		cv_shm_fail(cv_shm_of(cv_links), CV_REASON_CLOSED);
	fake_turn();
	fake_expire(); /* dead links stay mapped for a while */
	if (open_fds() != fds_before) {
		print_error("%u descriptors before, %u now\n", fds_before, open_fds());
		return -1;
	}
	return fake_watches() || fake_timers() ? -1 : 0;
}

/* ---- links --------------------------------------------------------------------------------------------------------------------- */

struct cv_tuple tuple_of(unsigned n)
{
	struct cv_tuple t = {.client_port = (uint16_t)n, .server_port = (uint16_t)(n >> 16)};

	/* No other test run may use the name. */
	memcpy(t.client, &(pid_t){getpid()}, sizeof(pid_t));
	t.server[15] = 1;
	return t;
}

void sockets(int fd[2])
{
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fd), 0);
}

void pair_make(struct pair *p)
{
	static const uint8_t id[32] = "both sides agree upon this";
	int fd, sv[2];

	assert_int_equal(cv_shm_create(&p->a, RING, &fd), 0);
	assert_int_equal(cv_shm_map(&p->b, fd, p->a->ring, p->a->slots), 0);
	cv_fd_close(fd);
	sockets(sv);
	cv_shm_up(p->a, cv_fd_high(sv[0]), cv_fd_high(dup(p->b->bell0.fd)), id, INT32_MAX, 0); /* no such process */
	cv_shm_up(p->b, cv_fd_high(sv[1]), cv_fd_high(dup(p->a->bell0.fd)), id, INT32_MAX, 0);
}

void pair_end(struct pair *p)
{
	cv_shm_fail(p->a, CV_REASON_CLOSED);
	cv_shm_fail(p->b, CV_REASON_CLOSED);
	fake_turn();
	fake_expire_one(&p->a->unmap);
	fake_expire_one(&p->b->unmap);
}

void one_init(struct one *o)
{
	memset(o, 0, sizeof(*o));
	o->s.port = &o->port;
	o->port.grow_fd = -1;
}

void pair_stream(struct pair *p, struct one *a, struct one *b)
{
	struct cv_tuple t = tuple_of(1);

	one_init(a);
	one_init(b);
	assert_int_equal(cv_shm_attach(&p->a->link, &a->s, &t), 0);
	cv_shm_set_lines(p->b, &b->s, a->port.slot);
}

int memfd_of(uint64_t size, bool sealed)
{
	int fd = memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, (off_t)size), 0);
	if (sealed)
		assert_int_equal(fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL), 0);
	return fd;
}

unsigned open_fds(void)
{
	DIR *d = opendir("/proc/self/fd");
	unsigned n = 0;

	assert_non_null(d);
	while (readdir(d))
		n++;
	closedir(d);
	return n;
}

bool readable(int fd)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};

	return poll(&p, 1, 0) == 1 && (p.revents & POLLIN);
}
