/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the link's tests stand on: an agent that moves only when told (fake_turn, fake_expire), so that nothing here depends on time; links in pairs, both
 * sides in this process; and a record of what the links told the layer above.
 */
#ifndef FAKE_H
#define FAKE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/sys.h"
#include "link/internal_fd.h"
#include "link/shm.h"
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#define RING 4096u

struct told {
	unsigned offered, accepted, messages, rung, down, dialled;
	struct cv_stream *give; /* what `offered` returns */
	enum cv_reason nak;	/* else what it declines with */
	struct cv_link *link;	/* of the last offer or dial */
	struct cv_tuple tuple;
	struct cv_msg msg;	/* of the last accept or message */
	struct cv_stream *s;	/* of the last accept, message, ring or down */
	uint64_t fd_size;	/* of the file that came with the message; UINT64_MAX: none */
	int take_gen;		/* GROW: what cv_shm_take_gen() said */
	enum cv_reason why;	/* of the last down or dial */
	void *arg;		/* of the last dial */
	uint64_t order;		/* epochs of messages: sums up to (((1*31)+2)*31)+3 ... */
};
extern struct told told;

struct one { /* a stream with its port */
	struct cv_stream s;
	struct cv_port port;
};

struct pair {
	struct cv_shm_link *a, *b; /* side 0, side 1 */
};

/* Forget everything; no link may be left. For cmocka's setup and teardown. */
int fake_setup(void **state);
int fake_teardown(void **state);
/* Run what is posted and what is readable, until there is nothing. */
void fake_turn(void);
/* All timers that are set are due now. Their number. */
unsigned fake_expire(void);
/* Only this one. False: it was not set. */
bool fake_expire_one(struct cv_timer *t);
/* Watches, timers and works known to the agent. */
unsigned fake_watches(void);
unsigned fake_timers(void);

struct cv_tuple tuple_of(unsigned n);
void pair_make(struct pair *p);
void pair_end(struct pair *p);
/* The same slot on both sides. */
void pair_stream(struct pair *p, struct one *a, struct one *b);
void one_init(struct one *o);
/* A sealed (or not) memfd; to close. */
int memfd_of(uint64_t size, bool sealed);
/* A connected pair of SEQPACKET sockets, non-blocking. */
void sockets(int fd[2]);
unsigned open_fds(void);
bool readable(int fd);

#endif
