/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The agent: culvert's one background thread per process, started when first needed, all signals blocked, never on the data path. An event loop of watched
 * fds, timers, and work posted by application threads. After fork the child has none (cv_agent_fork_child) and starts its own when needed.
 */
#ifndef CV_AGENT_H
#define CV_AGENT_H

#include "../base/base.h"

struct cv_watch {
	int fd;
	uint32_t events; /* EPOLLIN ... as now registered; 0 = not registered */
	void (*fn)(struct cv_watch *w, uint32_t events);
};

struct cv_timer {
	uint64_t at; /* CLOCK_MONOTONIC ns; 0 = not set */
	void (*fn)(struct cv_timer *t);
	uint32_t pos; /* the agent's; 0 = not set */
};

struct cv_work {
	struct cv_work *next;
	_Atomic uint32_t queued;
	void (*fn)(struct cv_work *w);
};

/* Start if not running. 0 or -errno. Any thread. */
int cv_agent_start(void);
/* True on the agent's own thread. */
bool cv_agent_self(void);
/* Run w->fn on the agent. Idempotent while queued. Starts the agent if need be. Any thread; async-signal-safe. */
int cv_agent_post(struct cv_work *w);
/* Is it there? Any thread. */
bool cv_agent_running(void);
/* Register, change (events != 0) or remove (events == 0) a watch; `w` is the caller's to guard: the agent's thread, or whoever holds the lock under which
 * that uses it. A handler may still be called once after a removal. 0 or -errno. */
int cv_agent_watch(struct cv_watch *w, uint32_t events);
/* Agent thread only: set (at != 0), move or clear (at == 0) a timer. */
void cv_agent_timer(struct cv_timer *t, uint64_t at);
/* fork protocol: before (waits until the agent is between two events and holds it), parent after, child after. */
void cv_agent_fork_prepare(void);
void cv_agent_fork_parent(void);
void cv_agent_fork_child(void);
/*
 * Makes a descriptor of our own by the system call `nr` (which must give it CLOEXEC) and moves it to a high number; or duplicates `fd` there. The descriptor, or
 * -errno. The kernel numbers it low for an instant: see cv_fd_making.
 */
int cv_fd_new(long nr, long a, long b, long c, long d);
int cv_fd_dup(int fd);
/* Others that come by recvmsg: begin, call, cv_fd_high() for each, end. */
void cv_fd_make_begin(void);
int cv_fd_high(int fd);
void cv_fd_make_end(void);
/* Set while one of ours may have a low number: a loop that closes everything must wait with cv_fd_made() before it looks at cv_fd_internal(). */
extern _Atomic uint32_t cv_fd_making;
void cv_fd_made(void);
/* Is this one of culvert's own fds? Lock-free; for close loops. */
bool cv_fd_internal(int fd);
/* Close an internal fd. */
void cv_fd_close(int fd);

#endif
