/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Links: what carries streams between two processes. One ops table per transport, chosen when the link is made.
 *
 * A link carries many streams, each in a slot. It has *bells* in each direction: bell 0 belongs to the receiving process's agent, further ones to its wait
 * domains (an epoll instance, or a thread in poll). A stream's `want` says whether and on which bell its reader (and its blocked writer) wants to be rung. A bell
 * is a queue of slots, a flag `armed`, and a kernel-visible wake fd (eventfd, comp channel) that is written only when armed.
 *
 * Any thread may call anything here; stream calls hold that stream's locks as ops->publish etc. do.
 */
#ifndef CV_LINK_H
#define CV_LINK_H

#include "../stream/stream.h"

#define CV_LINK_BELLS 64

enum { CV_WANT_RX_BELL = 1, CV_WANT_TX_BELL = 2, CV_WANT_RX_FUTEX = 4, CV_WANT_TX_FUTEX = 8 };

struct cv_link;

/* Both ends of a TCP connection as its client sees them; IPv4 as v4-mapped. Network order. What the two processes find each other by. */
struct cv_tuple {
	uint8_t client[16], server[16];
	uint16_t client_port, server_port;
};

/* The link's side of one stream: where its control lines are. Set while the stream holds a slot. */
struct cv_port {
	struct cv_link *link;
	uint32_t slot;
	void *mine, *peer; /* this side's and the peer's want line (the transport's type) */
	unsigned bell;	   /* of ours that the stream's rings go to now; 0: the agent's */
	int grow_fd;	   /* memory to go with the next GROW message; -1: none */
	struct {
		uint8_t *base;
		uint64_t size;
	} extra[2 * (CV_RING_GENS - 1)]; /* mapped generations beyond the first, to unmap at the end */
	uint32_t extras;
	struct cv_tuple offer; /* goes out with the OPEN */
};

/* A bell of ours: peers ring it, we drain it. */
struct cv_bell {
	struct cv_link *link;
	unsigned index;
	int fd;		/* wake fd: readable after a ring while armed. High, CLOEXEC. */
	void *owner;	/* the domain; for whoever opened it */
};

/* A blocking call's place to sleep. */
struct cv_wait {
	_Atomic uint32_t *word;
	uint32_t value;
	const uint32_t *also; /* a word of this process that ends the wait when it differs already; NULL: none */
	uint32_t also_value;
};

typedef void (*cv_bell_fn)(void *arg, struct cv_stream *s);

struct cv_link_ops {
	const char *name; /* "shm", "rdma" */
	/* Stream ops of this transport: publish, credit, grow, msg. */
	void (*publish)(struct cv_stream *s, uint32_t end);
	void (*credit)(struct cv_stream *s, bool fenced);

	/* A further bell for a wait domain; NULL when there is none left: use bell 0 (the agent forwards). */
	struct cv_bell *(*bell_open)(struct cv_link *l, void *owner);
	void (*bell_close)(struct cv_bell *b);
	/* Has it been rung? One load. */
	bool (*bell_pending)(const struct cv_bell *b);
	/* Take all rings, calling fn for each stream. Number taken. */
	unsigned (*bell_drain)(struct cv_bell *b, cv_bell_fn fn, void *arg);
	/* Before sleeping: from now on a ring writes the wake fd. Full fence inside; look at bell_pending() and at the streams afterwards. */
	void (*bell_arm)(struct cv_bell *b);
	void (*bell_disarm)(struct cv_bell *b);

	/* Route the stream's rings to the bell (index; 0 = agent) and add / remove CV_WANT_* bits. Full fence inside: look at the stream afterwards. */
	void (*want)(struct cv_stream *s, unsigned bell, uint32_t set, uint32_t clear);
	/* Blocking wait for one half of one stream, without a bell. begin: with that half's lock held; look at the stream again before waiting. wait: no
	 * lock; until rung, woken locally or the time (ns, UINT64_MAX: none). 0, -EINTR, -ETIMEDOUT. */
	struct cv_wait (*wait_begin)(struct cv_stream *s, bool tx);
	int (*wait)(const struct cv_wait *w, uint64_t timeout_ns);
	/* Wake local waiters of both halves. */
	void (*wake_local)(struct cv_stream *s);
	/* Stream ops of this transport, continued. */
	int (*msg)(struct cv_stream *s, const struct cv_msg *m);
	int (*grow)(struct cv_stream *s, uint64_t size, uint8_t **base, uint64_t *got);
	/* The stream is done with its slot (RAW again, or closed). The peer may still read what is in the ring. Any thread, tx and rx held. */
	void (*detach)(struct cv_stream *s);
};

/* What links tell the layer above. All on the agent's thread. */
struct cv_link_events {
	/* The peer offers to switch the connection; slot is free here. Return the stream, attached to nothing, with both halves locked; or NULL and *nak: NONE = not
	 * yet (the link keeps the offer and asks again at cv_shm_offers()), else the reason to decline with. */
	struct cv_stream *(*offered)(struct cv_link *l, const struct cv_tuple *t, enum cv_reason *nak);
	/* After `offered`: the stream is attached; take the OPEN. Still locked; unlocks. */
	void (*accept)(struct cv_stream *s, const struct cv_msg *open, const uint8_t identity[32]);
	/* A control message for a stream; fd: what came with it (the link closes it), or -1. Takes the locks itself. */
	void (*message)(struct cv_stream *s, const struct cv_msg *m, int fd);
	/* A bell rang for the stream on the agent's bell. */
	void (*rung)(struct cv_stream *s);
	/* The link ended; called once for each stream that is attached. */
	void (*down)(struct cv_stream *s, enum cv_reason why);
	/* A dial ended: up (link usable) or not. arg as given to cv_shm_dial(). */
	void (*dialled)(void *arg, struct cv_link *l, enum cv_reason why);
};
extern const struct cv_link_events *cv_link_events;

struct cv_link {
	const struct cv_link_ops *ops;
	struct cv_link *next; /* all links of this process, newest first; agent's thread */
	bool up;
	uint8_t identity[32];
	int32_t peer_pid;
	uint32_t peer_uid; /* as SO_PEERCRED shows it */
};
extern struct cv_link *cv_links;
#endif
