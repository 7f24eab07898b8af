/* SPDX-License-Identifier: Apache-2.0 */
#include "agent.h"
#include "../base/clock.h"
#include "../base/lock.h"
#include "../observe/log.h"
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/mman.h>

#define AGENT_EVENTS 64
#define AGENT_STACK (256u * 1024)
#define AGENT_TIMERS_MIN 1024u

static struct {
	struct cv_lock start; /* one starter at a time */
	struct cv_lock busy;  /* held by the agent while it handles events; fork takes it to stop the agent between two */
	_Atomic int running;
	_Atomic int tid;
	int epfd;
	struct cv_watch wake;
	_Atomic(struct cv_work *) posted; /* LIFO, reversed when taken */
	struct cv_timer **heap;
	uint32_t timers, heap_cap;
} agent = {.epfd = -1, .wake = {.fd = -1}};

/* ---- timers: a binary heap by time --------------------------------------------------------------------------------------------- */

static void heap_put(uint32_t i, struct cv_timer *t)
{
	agent.heap[i] = t;
	t->pos = i + 1;
}

static void heap_up(uint32_t i, struct cv_timer *t)
{
	while (i > 0 && agent.heap[(i - 1) / 2]->at > t->at) {
		heap_put(i, agent.heap[(i - 1) / 2]);
		i = (i - 1) / 2;
	}
	heap_put(i, t);
}

static void heap_down(uint32_t i, struct cv_timer *t)
{
	for (;;) {
		uint32_t c = 2 * i + 1;

		if (c >= agent.timers)
			break;
		if (c + 1 < agent.timers && agent.heap[c + 1]->at < agent.heap[c]->at)
			c++;
		if (agent.heap[c]->at >= t->at)
			break;
		heap_put(i, agent.heap[c]);
		i = c;
	}
	heap_put(i, t);
}

static bool heap_room(void)
{
	uint32_t cap = agent.heap_cap ? agent.heap_cap * 2 : AGENT_TIMERS_MIN;
	void *p;

	if (agent.timers < agent.heap_cap)
		return true;
	if (agent.heap)
		p = mremap(agent.heap, agent.heap_cap * sizeof(*agent.heap), cap * sizeof(*agent.heap), MREMAP_MAYMOVE);
	else
		p = mmap(NULL, cap * sizeof(*agent.heap), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (p == MAP_FAILED)
		return false;
	agent.heap = p;
	agent.heap_cap = cap;
	return true;
}

void cv_agent_timer(struct cv_timer *t, uint64_t at)
{
	if (t->pos) { /* out of the heap first: one way to move it */
		uint32_t i = t->pos - 1;
		struct cv_timer *last = agent.heap[--agent.timers];

		t->pos = 0;
		if (last != t) {
			if (i > 0 && agent.heap[(i - 1) / 2]->at > last->at)
				heap_up(i, last);
			else
				heap_down(i, last);
		}
	}
	t->at = at;
	if (!at)
		return;
	if (!heap_room()) {
		cv_warn_once("no memory for timers: deadlines of handshakes are not kept");
		t->at = 0;
		return;
	}
	heap_up(agent.timers++, t);
}

static int timers_run(void)
{
	while (agent.timers) {
		struct cv_timer *t = agent.heap[0];
		uint64_t now = cv_now_ns();

		if (t->at > now)
			return (int)cv_min_u64((t->at - now + 999999) / 1000000, 60000);
		cv_agent_timer(t, 0);
		t->fn(t);
	}
	return -1;
}

/* ---- the loop ------------------------------------------------------------------------------------------------------------------ */

static void work_run(void)
{
	struct cv_work *w = atomic_exchange_explicit(&agent.posted, NULL, memory_order_acquire), *in_order = NULL;

	while (w) {
		struct cv_work *next = w->next;

		w->next = in_order;
		in_order = w;
		w = next;
	}
	while (in_order) {
		w = in_order;
		in_order = w->next;
		/* Released before it runs: whoever posts from now on gets another run. Partner: cv_agent_post(). */
		atomic_store_explicit(&w->queued, 0, memory_order_seq_cst);
		w->fn(w);
	}
}

static void woken(struct cv_watch *w, uint32_t events)
{
	uint64_t n;

	(void)events;
	cv_sys3(SYS_read, w->fd, &n, sizeof(n));
}

/* Somebody closed our descriptor past us. Timers and work go on, slowly, and no CPU is burnt. */
static CV_COLD void epoll_lost(int err)
{
	struct timespec ts = {.tv_nsec = 10000000};

	cv_warn_once("culvert's own epoll set is gone (error %d)", -err);
	cv_sys2(SYS_nanosleep, &ts, NULL);
}

static void *agent_main(void *arg)
{
	struct epoll_event ev[AGENT_EVENTS];
	int timeout = -1;

	(void)arg;
	atomic_store_explicit(&agent.tid, (int)cv_sys0(SYS_gettid), memory_order_relaxed);
	for (;;) {
		long n = cv_sys6(SYS_epoll_pwait, agent.epfd, (long)ev, AGENT_EVENTS, timeout, 0, 0);

		if (unlikely(n < 0 && n != -EINTR))
			epoll_lost((int)n);
		cv_lock(&agent.busy);
		for (long i = 0; i < n; i++) {
			struct cv_watch *w = ev[i].data.ptr;

			w->fn(w, ev[i].events);
		}
		work_run();
		timeout = timers_run();
		/* Work that handlers or timers posted: the wake fd was written, epoll_pwait returns at once. */
		cv_unlock(&agent.busy);
	}
	return NULL;
}

static int agent_spawn(void)
{
	pthread_attr_t attr;
	pthread_t thread;
	sigset_t all, old;
	int err;

	pthread_attr_init(&attr);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	pthread_attr_setstacksize(&attr, AGENT_STACK);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	err = pthread_create(&thread, &attr, agent_main, NULL);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	pthread_attr_destroy(&attr);
	return -err;
}

static int agent_open(void)
{
	int fd = cv_fd_new(SYS_epoll_create1, EPOLL_CLOEXEC, 0, 0, 0);
	int err;

	if (fd < 0)
		return fd;
	agent.epfd = fd;
	fd = cv_fd_new(SYS_eventfd2, 0, O_CLOEXEC | O_NONBLOCK, 0, 0);
	if (fd < 0) {
		err = fd;
		goto close_epoll;
	}
	agent.wake = (struct cv_watch){.fd = fd, .fn = woken};
	err = cv_agent_watch(&agent.wake, EPOLLIN);
	if (err)
		goto close_wake;
	err = agent_spawn();
	if (!err)
		return 0;
close_wake:
	cv_fd_close(agent.wake.fd);
	agent.wake.fd = -1;
close_epoll:
	cv_fd_close(agent.epfd);
	agent.epfd = -1;
	return err;
}

int cv_agent_start(void)
{
	int err = 0;

	if (likely(atomic_load_explicit(&agent.running, memory_order_acquire)))
		return 0;
	cv_lock(&agent.start);
	if (!atomic_load_explicit(&agent.running, memory_order_relaxed)) {
		err = agent_open();
		if (!err)
			atomic_store_explicit(&agent.running, 1, memory_order_release);
		else
			cv_warn_once("cannot start culvert's thread (error %d): connections stay on TCP", -err);
	}
	cv_unlock(&agent.start);
	return err;
}

bool cv_agent_self(void)
{
	return atomic_load_explicit(&agent.running, memory_order_relaxed) &&
	       (int)cv_sys0(SYS_gettid) == atomic_load_explicit(&agent.tid, memory_order_relaxed);
}

bool cv_agent_running(void)
{
	return atomic_load_explicit(&agent.running, memory_order_acquire);
}

static void agent_wake(void)
{
	uint64_t one = 1;

	cv_sys3(SYS_write, agent.wake.fd, &one, sizeof(one));
}

int cv_agent_post(struct cv_work *w)
{
	int err = cv_agent_start();

	if (err)
		return err;
	if (atomic_exchange_explicit(&w->queued, 1, memory_order_seq_cst))
		return 0;

	struct cv_work *head = atomic_load_explicit(&agent.posted, memory_order_relaxed);

	do {
		w->next = head;
	} while (!atomic_compare_exchange_weak_explicit(&agent.posted, &head, w, memory_order_release, memory_order_relaxed));
	if (!head)
		agent_wake();
	return 0;
}

int cv_agent_watch(struct cv_watch *w, uint32_t events)
{
	struct epoll_event ev = {.events = events, .data.ptr = w};
	int op = !events ? EPOLL_CTL_DEL : w->events ? EPOLL_CTL_MOD : EPOLL_CTL_ADD;
	long err;

	if (events == w->events)
		return 0;
	err = cv_sys4(SYS_epoll_ctl, agent.epfd, op, w->fd, &ev);
	if (err == 0 || op == EPOLL_CTL_DEL)
		w->events = events;
	return (int)err;
}

/* ---- fork ---------------------------------------------------------------------------------------------------------------------- */

void cv_agent_fork_prepare(void)
{
	if (!cv_agent_self())
		cv_lock(&agent.busy);
	cv_lock(&agent.start); /* second: who starts the agent may hold a lock that the agent waits for */
}

void cv_agent_fork_parent(void)
{
	cv_unlock(&agent.start);
	if (!cv_agent_self())
		cv_unlock(&agent.busy);
}

void cv_agent_fork_child(void)
{
	agent.start = agent.busy = (struct cv_lock){0};
	atomic_store_explicit(&agent.running, 0, memory_order_relaxed);
	atomic_store_explicit(&agent.posted, NULL, memory_order_relaxed);
	agent.timers = 0;
	agent.epfd = -1;
	agent.wake.fd = -1;
	agent.wake.events = 0;
}
