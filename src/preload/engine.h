/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The stream engine's surroundings in a real process: its twin, its link, its deadlines, and what follows from a change of its state (mode, epoll
 * membership, stats, detaching from the link).
 */
#ifndef CV_PRELOAD_ENGINE_H /* src/stream has an engine.h too */
#define CV_PRELOAD_ENGINE_H

#include "sock.h"

void cv_engine_init(struct cv_sock *s);
void cv_engine_limits(struct cv_sock *s);
/* s->link_ops is set: the engine's data path goes there from now on. */
void cv_engine_attach(struct cv_sock *s);
/* Agent's thread, tx and rx held: do what can be done, then bring mode, watches, deadline and stats in line with the engine's state. */
void cv_engine_settle(struct cv_sock *s);
/* Both halves on the twin and nothing under way. plain: besides, the kernel answers everything; else the engine tells of an end that the kernel does not
 * know of (a peer that died with bytes of ours unread, say), and calls stay careful until close. tx and rx held. */
bool cv_engine_raw(const struct cv_sock *s);
bool cv_engine_plain(const struct cv_sock *s);
/* Neither direction of the twin has ended, as far as the kernel has heard. */
bool cv_engine_established(const struct cv_sock *s);
/* Bytes over TCP, by the kernel's count, into the stats row. */
void cv_engine_count_twin(struct cv_sock *s);
/* The connection cannot be carried on exactly: end it, as a reset, never silently wrong. tx and rx held. */
void cv_engine_reset(struct cv_sock *s);
/* Agent's thread, no locks. */
void cv_engine_message(struct cv_stream *st, const struct cv_msg *m, int fd);
void cv_engine_down(struct cv_stream *st, enum cv_reason why);
void cv_engine_late(struct cv_sock *s);
/* Agent's thread, tx and rx held: the application is done with it; true when nothing is under way any more (detached, twin closed). */
bool cv_engine_closed(struct cv_sock *s);

#endif
