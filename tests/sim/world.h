/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The simulated world: two processes (sides 0 and 1), the TCP connection between them, links, and two applications. Everything happens in steps
 * chosen by a generator that starts from the seed; nothing depends on time or addresses, so that a seed replays.
 */
#ifndef SIM_WORLD_H
#define SIM_WORLD_H

#include "stream/engine.h"
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>

#define PIPE 4096u /* bytes of a direction of TCP, both buffers together */
#define SLOTS 4
#define GEN_MEM 8192u
#define MSGS 64
#define PATTERN 65536u

/* One direction of the TCP connection. Offsets count from the beginning: read <= arrived <= sent <= written. */
struct pipe {
	uint64_t written, sent, arrived, read;
	uint32_t snd_cap, rcv_cap;
	bool fin, fin_sent, fin_arrived; /* after the last written byte */
	bool rst, rst_arrived;		 /* after the last sent byte; what was not sent is lost */
	uint8_t buf[PIPE];
};

/* One direction of a stream in a slot. `real` is what the writer has stored, `seen` what has come to the other side. */
struct lane {
	struct cv_ring_w w_real, w_seen;
	struct cv_ring_r r_real, r_seen;
	bool w_bell, r_bell; /* a doorbell goes with the next look */
	unsigned gens;
	uint64_t size[CV_RING_GENS], start[CV_RING_GENS];
	uint8_t mem[CV_RING_GENS][GEN_MEM];	/* the writer's: the segment (shm), the mirror (rdma) */
	uint8_t remote[CV_RING_GENS][GEN_MEM]; /* rdma: the reader's ring */
};

struct slot {
	bool used[2];
	struct lane lane[2]; /* [writer] */
};

struct packet {
	int slot;
	uint32_t link; /* generation of the link */
	struct cv_msg msg;
};

struct side {
	struct cv_stream s;
	int slot; /* -1: attached to none */
	/* kernel */
	bool shut, closed, dead; /* of the twin: SHUT_WR, descriptor closed, connection gone */
	int err;		 /* sk_err */
	/* link */
	struct packet q[MSGS]; /* on their way to this side */
	unsigned q_head, q_tail;
	uint32_t link_seen; /* the link's generation that this side believes alive */
	bool tx_blocked, rx_blocked; /* the application sleeps until a doorbell or a change wakes it */
	bool news;	    /* ops->changed since the agent looked */
	bool lingering, foreign, killed;
	/* application */
	uint64_t sent, got, to_send;
	bool app_shut, app_closed, app_aborted, eof, reset, gone; /* gone: a send failed */
	bool broken;						  /* a deadline or a breach reset the connection here */
	bool unread_close;					  /* closed with bytes unread, as the engine saw */
	uint64_t got_at_end;					  /* of the peer's stream, when it closed or was killed */
	bool clean_kill;
	bool frozen_kill; /* killed FROZEN, its ring had room for all, in a schedule where nothing else calls the upgrade off */
	uint64_t peer_sent_at_kill;
	uint64_t published_at_kill;
	uint32_t called_off; /* epoch of an OPEN that was taken back here */
	bool handed; /* a hand-over was asked for: what a dead peer still held is then nobody's to tell */
	bool server; /* says nothing before it has heard all of the peer */
	bool lazy;   /* seldom reads */
	bool polite; /* closes only at the end */
};

struct world {
	uint64_t seed, rng;
	bool verbose, rdma, fair;
	unsigned step;
	bool link_up, chaos_reset;
	uint32_t link; /* generation */
	bool link_died, killed_any, raced;
	bool flushing_kill;
	unsigned ups, leaves;
	struct side side[2];
	struct side ghost; /* see ghost.h; slot -1: none */
	int ghost_victim;
	struct pipe pipe[2]; /* [writer] */
	struct slot slot[SLOTS];
	struct cv_stream_limits lim;
	uint64_t ring;
	/* what this schedule does, in 1/256 a step */
	unsigned p_open, p_leave, p_timeout, p_link_kill, p_kill, p_close, p_shut, p_bypass, p_ghost;
	char why[256];
	jmp_buf out;
};

extern struct world W;
extern uint8_t pattern[2 * PATTERN];
extern uint64_t seen_moves[2][4][4];

#define SIDE(st) ((int)(cv_container_of(st, struct side, s) - W.side))

/* Accepted while FROZEN, and neither fenced nor on the twin by now. */
static inline uint64_t unsent(const struct cv_stream *s)
{
	if (s->tx_state == CV_FROZEN)
		return cv_engine_waiting(s);
	return s->stage.len + (s->tx_state == CV_DRAINING && !s->e.was_ring ? s->tx.tail - s->e.resend : 0);
}

static inline uint64_t rnd(void)
{
	W.rng ^= W.rng << 13;
	W.rng ^= W.rng >> 7;
	W.rng ^= W.rng << 17;
	return W.rng * 0x2545f4914f6cdd1dull >> 16;
}

static inline uint64_t rnd_below(uint64_t n)
{
	return n ? rnd() % n : 0;
}

static inline bool chance(unsigned of_256)
{
	return (rnd() & 255) < of_256;
}

__attribute__((noreturn, format(printf, 1, 2))) void fail(const char *fmt, ...);

#define TRACE(...) \
	do { \
		if (W.verbose) \
			printf(__VA_ARGS__); \
	} while (0)

static inline const uint8_t *bytes_of(int writer, uint64_t off)
{
	return pattern + ((off + (writer ? 31337u : 0)) % PATTERN);
}

#endif
