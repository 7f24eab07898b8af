/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The inside of an epoll set, shared by epoll.c (sets, items, bells, moves), epoll_ctl.c and epoll_wait.c.
 *
 * All objects are type-stable: they may be locked, and then found to be something else. Everything in a set is under its lock but what
 * is _Atomic. A socket's item list is under the socket's wait_lock; an item's socket and set change only under the set's lock, so
 * whoever holds that may trust an item that names both.
 */
#ifndef CV_EPOLL_INT_H
#define CV_EPOLL_INT_H

#include "epoll.h"
#include "../base/clock.h"
#include <errno.h>

/*
 * Values that we register with in the program's own kernel set: TAG_BASE is the set's wake fd, TAG_BASE + n the bell in cell n, and
 * from ITEM_TAGS on items. Tracked sockets stand there under our value rather than the program's, so that whatever the kernel reports
 * of one can be held against what we know: which half is where, whether a ONESHOT has fired, whether it has moved meanwhile.
 */
#define CV_EP_TAGS (1u << 26)
#define CV_EP_ITEM_TAGS (1u << 20)
#define CV_EP_HOT 64	/* bells that are polled at once; more stay armed */
#define CV_EP_SETS 64	/* registrations that one socket may have */
#define CV_EP_KERNEL_BUSY_US 30 /* how often the kernel is asked while links are busy, */
#define CV_EP_KERNEL_SPIN_US 5	/* and while we spin */
#define CV_EP_COLD_US 1000

#define CV_EP_FLAGS (EPOLLET | EPOLLONESHOT | EPOLLEXCLUSIVE | EPOLLWAKEUP)

#define CV_EP_OUT (EPOLLOUT | EPOLLWRNORM)

enum cv_item_where { CV_ITEM_KERNEL, CV_ITEM_USER };

struct cv_epbell {
	struct cv_bell *b;
	struct cv_epoll *e; /* NULL: free */
	struct cv_link *link;
	struct cv_epbell *next;	    /* the set's bells; the dead; the free */
	struct cv_epbell *hot_next; /* the polled ones */
	uint64_t rung;		    /* ticks of its last ring */
	uint32_t tag, users;
	bool hot;
};

struct cv_epitem {
	struct cv_epoll *e;
	struct cv_sock *s; /* NULL: a TCP socket that is not connected yet (pending) */
	struct cv_epitem *rnext, *rprev;
	uint64_t data;
	uint32_t events;
	int fd, kfd;	   /* as the program and as the kernel's set names it */
	uint32_t tag;	   /* for good */
	_Atomic bool on;   /* registered; a served item that was deleted is kept for the ADD that tends to follow */
	_Atomic uint8_t where;
	bool ready;	   /* on the ready list */
	bool disabled;	   /* ONESHOT has fired */
	bool dropped;	   /* an edge of the twin was not the program's at the time */
	bool kreg;	   /* KERNEL: really in the kernel's set */
	bool stuck;	   /* KERNEL, by a number that was closed while others of the socket live on: nobody can change it */
	bool outed;	   /* falling back because the set is off */
	uint64_t seen, now; /* ET: how many bytes had come when it was reported last, plus 1; 0: not known. now: at the last cv_ep_due() */
	uint32_t shown;	   /* ET: what was reported last, since it was armed */
	uint8_t idle;	   /* rings that nobody asked for */
	_Atomic bool routed; /* the stream rings eb; written under wait_lock */
	struct cv_epbell *eb;
	struct cv_epitem *snext;	 /* the socket's; the pending; the free */
	struct cv_epitem *enext, *eprev; /* the set's */
};

struct cv_epoll {
	struct cv_lock lock;
	int fd; /* a live descriptor */
	uint32_t refs;
	bool late;	/* made by somebody else: threads may sleep in it that we have not counted */
	bool off;	/* the program uses our tags: everything stays on TCP */
	bool foreign;	/* inherited over fork, not used yet */
	bool inherited; /* the kernel's set is another process's too, and its bells may be reported here */
	_Atomic bool polled;
	_Atomic uint32_t users;	   /* items that are served here */
	_Atomic uint32_t sleepers; /* threads in the kernel's epoll_wait */
	_Atomic(struct cv_epitem *) ready_head;
	struct cv_epitem *ready_tail;
	uint32_t ready_count;
	struct cv_epitem *items;
	struct cv_epbell *bells, *hot, *dead;
	uint32_t nhot, pollers; /* threads that look at copies of the bell list */
	_Atomic int wake_fd;	/* plus 1; 0: none */
	_Atomic uint64_t kernel_at; /* ticks when the kernel was asked last */
	uint32_t spin;
	uint32_t batch; /* events that a wait brings, on average; 1/16 */
	bool turn, crowded; /* see cv_ep_look() */
	_Atomic(struct cv_sock *) busy; /* somebody worked on it when we looked, so the answer may lack it */
	bool no_spin;	    /* the CPU is shared: sleep next time */
	_Atomic int inner[4]; /* sets inside this one, by descriptor plus 1: more are rare, and may be reported readable once too often */
	bool nests;
	const struct cv_settings *set; /* of the socket that was moved here last */
	struct cv_epoll *next;	       /* the free */
	bool used;
};

extern _Atomic uint64_t cv_ep_tag_base; /* 0: none reserved yet */

static inline bool cv_ep_tagged(uint64_t data)
{
	uint64_t base = atomic_load_explicit(&cv_ep_tag_base, memory_order_relaxed);

	return base && data - base < CV_EP_TAGS;
}

/*
 * Edge-triggered, and all is over with the socket: told once. A registration that goes back to the kernel's set would tell it again.
 * Notes what is reported.
 */
static inline bool cv_ep_told(struct cv_epitem *it, uint32_t bits)
{
	bool told = (bits & EPOLLHUP) && !(bits & ~it->shown);

	it->shown = it->events & EPOLLET ? bits : 0;
	return unlikely(told);
}

static inline bool cv_ep_linked(const struct cv_sock *s)
{
	return atomic_load_explicit(&s->mode, memory_order_seq_cst) == CV_LINKED;
}

static inline uint64_t cv_ep_us(uint64_t us)
{
	return us * cv_ticks_per_us();
}

/* Of a stream on a link, while the mode says so and a lock that cv_epoll_moved() passes is held. */
static inline struct cv_link *cv_ep_link_of(const struct cv_sock *s)
{
	return s->st.port ? s->st.port->link : NULL;
}

/* Memory. get: with a tag, NULL when there is none. */
struct cv_epitem *cv_ep_item_get(void);
void cv_ep_item_put(struct cv_epitem *it);
struct cv_epitem *cv_ep_item_of(uint32_t tag);
bool cv_ep_reserve_tags(void);

/* Items. e->lock held. */
struct cv_epitem *cv_ep_find(struct cv_epoll *e, struct cv_sock *s, int fd);
/* Does the kernel know another registration of the socket by this number? */
bool cv_ep_renamed(struct cv_epoll *e, struct cv_sock *s, int fd);
/* A further registration, in the kernel too. s NULL: pending. 0 or -errno. */
int cv_ep_add(struct cv_epoll *e, struct cv_sock *s, int fd, const struct epoll_event *ev, struct cv_epitem **out);
/* The kernel's view of an item: op with our tag. 0 or -errno. */
long cv_ep_raw(struct cv_epitem *it, int op);
/* The kernel's registration gets the program's value back, and the item is forgotten. */
void cv_ep_give_up(struct cv_epitem *it);
void cv_ep_drop(struct cv_epitem *it);
/* Bring an item to where its socket's mode wants it. */
void cv_ep_sync(struct cv_epitem *it);
void cv_ep_push(struct cv_epitem *it);
/* Push, and tell whoever waits elsewhere. */
void cv_ep_announce(struct cv_epitem *it);
void cv_ep_unready(struct cv_epitem *it);
void cv_ep_activate(struct cv_epitem *it);
/* Route the socket's rings; wait_lock held. */
void cv_ep_route(struct cv_sock *s, bool out);
/* Ask for a ring when there is space. */
void cv_ep_want_out(struct cv_epitem *it);
void cv_ep_unready_all(struct cv_epoll *e);
/* The event bits of a socket, of those that this side knows. *twin: for these ask the kernel.
 * *busy: somebody works on it, ask again. */
uint32_t cv_ep_bits(struct cv_sock *s, uint32_t *twin, bool *busy);
/* Is the item ready for what it asks? If it waits for space, the peer is asked to ring. Its wish to be rung for data must stand. */
bool cv_ep_ready_now(struct cv_epitem *it);
/*
 * Edge-triggered, and the socket is or was being switched: has anything come since the last report? Neither the move nor culvert's own
 * records on the twin are news. bits: all that it has. 1: yes, 0: no, -1: it is being worked on.
 * cv_ep_note(): it is reported; plain: cv_ep_due() was not asked before.
 */
int cv_ep_due(struct cv_epitem *it, uint32_t bits);
void cv_ep_note(struct cv_epitem *it, bool plain);
/* Is anything on the ready list really ready? */
bool cv_ep_any_ready(struct cv_epoll *e);

/* Pending registrations: made before connect(). */
bool cv_ep_pending_any(void);
struct cv_epoll *cv_ep_pending_of(struct cv_sock *s, int *fd);
struct cv_epitem *cv_ep_pending_find(struct cv_epoll *e, int fd);
void cv_ep_pending_drop(struct cv_epitem *it);
struct cv_epitem *cv_ep_adopt(struct cv_epitem *p, struct cv_sock *s);

void cv_ep_pending_fork(int what); /* 0 lock, 1 unlock, 2 the child's */

void cv_ep_bell_join(struct cv_epitem *it, struct cv_link *link);
void cv_ep_bell_leave(struct cv_epitem *it);

/* Bells. e->lock held. get: the set's bell on the link, opened if need be; NULL: the agent's serves. put: nobody uses it any more. */
struct cv_epbell *cv_ep_bell_get(struct cv_epoll *e, struct cv_link *link);
void cv_ep_bell_put(struct cv_epbell *eb);
void cv_ep_bells_forked(struct cv_epoll *e);
void cv_ep_bell_fork(void);
void cv_ep_wake_close(struct cv_epoll *e);
void cv_ep_heat(struct cv_epoll *e, uint32_t tag, uint64_t now);
void cv_ep_drain(struct cv_epoll *e, struct cv_epbell *eb);
void cv_ep_drain_hot(struct cv_epoll *e, uint64_t now);
bool cv_ep_arm(struct cv_epoll *e);   /* all that are hot; true: something is there already */
void cv_ep_disarm(struct cv_epoll *e);
void cv_ep_reap(struct cv_epoll *e);
/* In sets that are polled: their descriptor is readable if and only if something is ready. */
void cv_ep_show(struct cv_epoll *e);
/* Wake one that sleeps in the kernel on the set. */
void cv_ep_wake(struct cv_epoll *e);

/* Tags and fork: no lock held. */
void cv_ep_turn_off(struct cv_epoll *e);
void cv_ep_unforeign(struct cv_epoll *e);

/* ---- epoll_look.c ---- */

enum cv_ep_ask {
	CV_EP_ASK_FAIR, /* only for its turn: the kernel will be asked soon enough if links have nothing */
	CV_EP_ASK_DUE,  /* when its time has come */
	CV_EP_ASK_MUST, /* also when links have nothing */
};

/* Both sides without sleeping: count or -errno. due_us: after this time the kernel is asked although links are busy. */
int cv_ep_look(struct cv_epoll *e, int epfd, struct epoll_event *ev, int max, uint64_t due_us, enum cv_ep_ask ask);
/* What the kernel returned: our own taken out, tracked sockets under their names. What is left, in order. */
int cv_ep_filter(struct cv_epoll *e, struct epoll_event *ev, int n);
/* After a sleep that ended with n events of the kernel's: links add theirs. */
int cv_ep_complete(struct cv_epoll *e, struct epoll_event *ev, int max, int n);

/* The call behind epoll_wait and its kin. timeout_ns < 0: none. Result or -errno. */
int cv_ep_wait(struct cv_epoll *e, int epfd, struct epoll_event *ev, int max, int64_t timeout_ns, const void *mask);
void cv_epoll_nest(struct cv_epoll *outer, int fd);
int cv_ep_ctl(struct cv_epoll *e, int epfd, int op, int fd, struct epoll_event *ev);

#endif
