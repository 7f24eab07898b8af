/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The shm link: one sealed memory segment between two processes of one host, their agents' unix socket for control messages, and eventfds to wake each other.
 *
 * Unlike an RDMA link, which is made per pair of wait domains because a CQ belongs to one, one segment serves the two whole processes: wait domains are
 * told apart by bells, so a stream moves to another epoll set by one store. The dialer creates the segment and is side 0; only it hands out slots.
 *
 * Everything in the segment and every message is untrusted: read once, checked, then used.
 */
#ifndef CV_SHM_H
#define CV_SHM_H

#include "../base/lock.h"
#include "agent.h"
#include "link.h"

#define CV_SHM_GRAVE_NS 2000000ull /* between two looks whether the peer, whose channel is closed, has ended altogether */
#define CV_SHM_MAGIC 0x6d68732d74766c63ull
#define CV_SHM_SLOTS 4096u
#define CV_SHM_SENDQ 1024u
#define CV_SHM_WORDS (CV_SHM_SLOTS / 64)
#define CV_SHM_RINGS_MAX (512ull << 20) /* address space for first generations; memory is used as it is touched */
#define CV_SHM_EXTRA_MAX (256ull << 20) /* largest further generation that is taken from a peer */

/*
 * A queue of slots, in the order in which they were rung, so that events come in the kernel's order. An entry carries the lap of its position, so that the
 * receiver need not clear it. When the queue is full a bit board takes over: nothing is lost then but the order.
 */
#define CV_SHM_QUEUE 1024u
#define CV_SHM_SLOT_BITS 12
_Static_assert(CV_SHM_SLOTS <= 1u << CV_SHM_SLOT_BITS, "a slot fits into an entry");

struct cv_shm_bell {
	_Atomic uint32_t tail CV_ALIGNED; /* next position; the ringing process's threads */
	_Atomic uint32_t head CV_ALIGNED; /* taken by the receiver */
	_Atomic uint32_t armed CV_ALIGNED; /* written by the receiver when it goes to sleep, cleared by whoever wakes it */
	_Atomic uint64_t overflow CV_ALIGNED; /* which words have bits */
	_Atomic uint64_t words[CV_SHM_WORDS];
	_Atomic uint32_t entry[CV_SHM_QUEUE] CV_ALIGNED;
};
_Static_assert(sizeof(struct cv_shm_bell) == 4864, "segment layout");

/* What one side of a stream wants to be told; set by that side, futex bits cleared by the waker. */
struct cv_shm_want {
	_Atomic uint32_t want CV_ALIGNED; /* CV_WANT_* */
	_Atomic uint32_t bell;
	_Atomic uint32_t rx_seq, tx_seq; /* futex words */
};
_Static_assert(sizeof(struct cv_shm_want) == 64, "segment layout");

struct cv_shm_slot {
	struct cv_ring_w w[2];	    /* [side that writes] */
	struct cv_ring_r r[2];	    /* [side that writes the ring]: its reader's line */
	struct cv_shm_want want[2]; /* [side] */
};
_Static_assert(sizeof(struct cv_shm_slot) == 384, "segment layout");

/* Tells what the segment is to whoever finds it. The two sides go by HELLO. */
struct cv_shm_head {
	uint64_t magic, size, ring;
	uint32_t version, slots;
	uint8_t pad_[4096 - 32];
};

struct cv_shm_segment {
	struct cv_shm_head head;
	struct cv_shm_bell bell[2][CV_LINK_BELLS]; /* [receiving side] */
	struct cv_shm_slot slot[];		   /* head.slots; then, page-aligned, two rings a slot */
};

enum cv_shm_kind { CV_PKT_HELLO = 1, CV_PKT_HELLO_OK, CV_PKT_BELL, CV_PKT_OFFER, CV_PKT_STREAM, CV_PKT_BYE };

struct cv_shm_pkt {
	uint32_t kind, version;
	uint32_t slot;	/* OFFER, STREAM, BYE; BELL: its index */
	uint32_t slots; /* HELLO */
	uint64_t ring;	/* HELLO */
	struct cv_tuple tuple;
	struct cv_msg msg;
};

struct cv_shm_parked {
	struct cv_tuple tuple;
	struct cv_msg open;
};

struct cv_shm_link {
	struct cv_link link;
	struct cv_watch sock; /* control channel */
	int side;
	struct cv_shm_segment *seg;
	uint64_t seg_size, ring;
	uint8_t *rings;
	uint32_t slots;
	struct cv_lock lock; /* bells and slots below; a leaf */
	struct cv_lock send; /* control channel's order; a leaf */
	struct cv_bell bells[CV_LINK_BELLS];
	struct cv_watch bell0;
	_Atomic uint32_t taken[CV_LINK_BELLS]; /* our copy of the heads: the segment's is not to be trusted */
	_Atomic int peer_fd[CV_LINK_BELLS];
	_Atomic(struct cv_stream *) streams[CV_SHM_SLOTS];
	_Atomic uint32_t attached; /* streams in slots */
	/* side 0: who has said BYE to the slot: 0 free, else bits: 1 in use, 2 we are done, 4 the peer is */
	uint8_t slot_state[CV_SHM_SLOTS];
	uint32_t slot_hint;
	_Atomic uint32_t slots_used; /* side 0 */
	uint64_t parked_map[CV_SHM_WORDS]; /* side 1: offers that wait for their connection to qualify */
	struct cv_shm_parked *parked;
	struct cv_shm_link *free_next;
	struct cv_timer grave; /* the peer's end of the channel is closed */
	struct cv_timer unmap;
	uint32_t grave_looks;
	struct cv_work breach;
	struct cv_work pump; /* the channel was full: the agent sees to it */
	struct cv_work reap; /* down: free it once nobody holds a slot or a bell */
	/* queue of CV_SHM_SENDQ packets for a full socket; under `send` */
	struct cv_shm_queued {
		struct cv_shm_pkt pkt;
		int fd;
	} *queue;
	_Atomic uint32_t queued;
	uint32_t queue_head;
};

extern const struct cv_link_ops cv_shm_ops;

/* ---- shm_link.c: making and ending links (agent's thread unless said otherwise) ---- */
/* Create side 0's segment: 0 and *fd (close it after passing), or -errno. */
int cv_shm_create(struct cv_shm_link **out, uint64_t ring, int *fd);
/* Map what a dialer passed. Checks seals and sizes. */
int cv_shm_map(struct cv_shm_link **out, int fd, uint64_t ring, uint32_t slots);
/* The handshake is done: watch the channel, take part in cv_links. */
void cv_shm_up(struct cv_shm_link *l, int sock, int peer_bell0, const uint8_t identity[32], int32_t peer_pid, uint32_t peer_uid);
void cv_shm_drop(struct cv_shm_link *l); /* never came up */
/* Side 0: attach the stream to a free slot and send the OPEN as an offer (the engine's first msg). -ENOSPC: no slot. tx and rx held. */
int cv_shm_attach(struct cv_link *l, struct cv_stream *s, const struct cv_tuple *t);
/* Side 1: a connection qualified; take an offer that waits for it, if any. */
void cv_shm_offers(const struct cv_tuple *t);
/* A stream's peer broke the protocol: the link ends, soon, on the agent (no lock is taken here). */
void cv_shm_breach(struct cv_link *l);
/* End the link now. */
void cv_shm_fail(struct cv_shm_link *l, enum cv_reason why);
/* Somebody let go of a slot or a bell of a dead link. Any thread. */
void cv_shm_reap(struct cv_shm_link *l);
/* Child after fork: links belong to the parent. */
void cv_shm_forked(void);

/* ---- shm_ctl.c: packets ---- */
/* Send, with fd if >= 0 (not closed). Queues when the channel is full. Any thread. 0, or -EPIPE: the link is down, or goes down soon since a packet is lost. */
int cv_shm_send(struct cv_shm_link *l, const struct cv_shm_pkt *p, int fd);
void cv_shm_readable(struct cv_watch *w, uint32_t events);
/* Low level, also for the handshake: 0 or -errno; -EAGAIN. recv: *fds get up to two descriptors or -1. */
int cv_pkt_send(int sock, const struct cv_shm_pkt *p, const int *fds, int nfds);
int cv_pkt_recv(int sock, struct cv_shm_pkt *p, int fds[2]);
int cv_shm_msg(struct cv_stream *s, const struct cv_msg *m);
int cv_shm_grow(struct cv_stream *s, uint64_t size, uint8_t **base, uint64_t *got);
void cv_shm_detach(struct cv_stream *s);
/* Map the generation that a GROW message announces. rx held. 0 or -errno. */
int cv_shm_take_gen(struct cv_stream *s, const struct cv_msg *m, int fd);
/* A sealed memfd of `size` bytes (internal fd), and the check of one from a peer: 0 or -errno. */
int cv_memfd(const char *name, uint64_t size);
int cv_memfd_check(int fd, uint64_t size);
/* A peer's wake fd: an eventfd (or another fd of the kernel's that is no file, pipe or socket) that does not block. 0 or -EPROTO. */
int cv_wake_fd_check(int fd);
void cv_shm_set_lines(struct cv_shm_link *l, struct cv_stream *s, uint32_t slot);
void cv_shm_slot_bye(struct cv_shm_link *l, uint32_t slot, uint8_t who);

/* ---- rendezvous.c ---- */
/* Client: listen for the owner of the accepted socket. Closed by cv_shm_unlisten. 0 or -errno (-EMFILE: 64 are open). */
struct cv_listener;
int cv_shm_listen(struct cv_listener **out, const struct cv_tuple *t);
void cv_shm_unlisten(struct cv_listener *l);
/* Server: dial. Ends in cv_link_events->dialled(arg), perhaps before it returns. 0, or -errno:
 * -ECONNREFUSED: nobody listens; -EALREADY: a link with that process is being made, ask again. */
int cv_shm_dial(const struct cv_tuple *t, uint64_t ring, void *arg);
void cv_rendezvous_forked(void);

static inline struct cv_shm_link *cv_shm_of(struct cv_link *l)
{
	return cv_container_of(l, struct cv_shm_link, link);
}

#endif
