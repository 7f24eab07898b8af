/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A world for the readiness layer: a link whose bells the test rings, and sockets whose readiness the test sets. The kernel, its epoll
 * sets and eventfds are real.
 */
#ifndef FAKE_H
#define FAKE_H

#include "preload/epoll_int.h"
#include "preload/poll.h"
#include "preload/spin.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define FAKES 128

struct fake {
	struct cv_sock s;
	int peer;		/* the other end of the twin */
	_Atomic uint32_t bits;	/* what the engine would say */
	_Atomic uint32_t twin;	/* while CAREFUL: what it would leave to the kernel */
	_Atomic uint32_t want, bell, word;
	bool excluded;
};

extern struct cv_settings fake_settings;
extern _Atomic unsigned fake_bells_open, fake_wakes;

/* A tracked socket on TCP. */
struct fake *fake_new(void);
void fake_link(struct fake *f);   /* upgrade it, as the agent does */
void fake_unlink(struct fake *f); /* and back */
/* The peer wrote / made room: bits become so, and it rings if it was asked to. */
void fake_ring(struct fake *f, uint32_t bits, bool tx);
/* The last descriptor is closed. */
void fake_close(struct fake *f);
void fake_reset(void);

static inline int wait0(int ep, struct epoll_event *ev, int max)
{
	memset(ev, 0, sizeof(*ev) * (size_t)max);
	return epoll_wait(ep, ev, max, 0);
}

static inline int ctl(int ep, int op, struct fake *f, uint32_t events)
{
	struct epoll_event ev = {.events = events, .data.ptr = f};

	return epoll_ctl(ep, op, f->s.fd, &ev);
}

#endif
