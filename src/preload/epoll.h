/* SPDX-License-Identifier: Apache-2.0 */
/*
 * epoll sets that hold accelerated sockets: what the kernel says and what links say, in one answer.
 *
 * A registration (cv_epitem) of a tracked socket is recorded when made. While the socket is on TCP, the kernel serves it; once it is
 * LINKED the item is taken out of the kernel's set and served here, and put back on fallback. Lock order: sock.wait_lock is inside
 * epoll.lock; link_ops->want() is called under wait_lock, with mode LINKED seen under it: cv_epoll_moved() passes both locks, so that
 * nobody touches a stream's lines after it returned.
 */
#ifndef CV_EPOLL_H
#define CV_EPOLL_H

#include "sock.h"
#include <sys/epoll.h>

/* A set was created at fd. Replaces what the table held for it. */
void cv_epoll_new(int fd);
/* A descriptor of the set is closed (with the real close: -errno; fd -1: it has gone already) or made. */
int cv_epoll_close(struct cv_epoll *e, int fd);
void cv_epoll_dup(struct cv_epoll *e, int newfd);
/*
 * The socket's mode changed to or from LINKED: move its items between the kernel's set and ours. Called by the agent with tx and rx
 * held, after the new mode is stored and, when it leaves LINKED, before the stream is detached from its link.
 */
void cv_epoll_moved(struct cv_sock *s);
/* The socket may have become ready: put its items on their sets' ready lists and wake sleepers. wait_lock not held. */
void cv_epoll_kick(struct cv_sock *s);
/*
 * A descriptor of this socket goes: its registrations end when the last one does, as in the kernel. Call it after the table entry and
 * refs went, before the real close.
 */
void cv_epoll_sock_closed(struct cv_sock *s);
/*
 * Someone will wait for the set's own descriptor (poll, select, another set): from now on it is readable whenever something in it is
 * ready.
 */
void cv_epoll_polled(struct cv_epoll *e);
/*
 * Who is told of the socket's rings now: the one set it is in, or the agent, who forwards. Call it after waiters came or went. out: the
 * caller waits for space.
 */
void cv_epoll_route(struct cv_sock *s, bool out);
/*
 * fork: prepare takes every set's lock, parent gives them back. In the child inherited sets serve nothing until they are used; then
 * their sockets fall back.
 */
void cv_epoll_fork_prepare(void);
void cv_epoll_fork_parent(void);
void cv_epoll_forked(void);

#endif
