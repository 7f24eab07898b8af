/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How a tracked connection gets onto a link and back: policy, quiescence, rendezvous, the engine's needs, deadlines. Runs on the agent, but for what an
 * application thread must do itself: asking for it (qualify), waiting for a return to TCP (fall_back), and the hand-over to the agent at close (ended).
 */
#ifndef CV_UPGRADE_H
#define CV_UPGRADE_H

#include "sock.h"

enum cv_seek {
	CV_SEEK_NO,	/* not trying */
	CV_SEEK_FIND,	/* rendezvous: listening, or dialling; the application makes plain calls */
	CV_SEEK_QUIET,	/* the peer is there: waits until no thread is inside a plain call */
	CV_SEEK_ENGINE, /* attached to a link; the engine is at work, or done */
};

/* A new socket: the engine and thresholds; before and after it enters the fd table. */
void cv_upgrade_init(struct cv_sock *s);
void cv_upgrade_begin(struct cv_sock *s);
/* The application closed its last descriptor; tx and rx held, let go here. Frees the sock, or the agent does when all is done. */
void cv_upgrade_ended(struct cv_sock *s);
/* policy upgrade-wait: wait (bounded) until the upgrade has come or failed. */
void cv_sock_await(struct cv_sock *s);
/* The engine is RAW again and off its link: rest, or stay out. Agent, tx and rx held. */
void cv_upgrade_rest(struct cv_sock *s, enum cv_reason why);
/* The child after fork: nothing of the parent's rendezvous is ours. */
void cv_upgrade_forked(void);
extern const struct cv_policy *cv_policy_now;

#endif
