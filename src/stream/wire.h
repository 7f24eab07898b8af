/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What crosses between two culverts: messages on a link's control channel (in order, reliable while the link lives), and records on the
 * twin. Little-endian, fixed width, versioned by CV_WIRE_VERSION in the link's HELLO. All of it is untrusted on arrival.
 */
#ifndef CV_WIRE_H
#define CV_WIRE_H

#include "../base/base.h"

#define CV_WIRE_VERSION 1u
#define CV_NONCE 16

enum cv_msg_type {
	CV_MSG_OPEN = 1,   /* begin an upgrade: epoch, nonce; the link adds the 4-tuple, slot and ring */
	CV_MSG_OPEN_ACK,   /* agreed: nonce */
	CV_MSG_NAK,	   /* declined: a = enum cv_reason */
	CV_MSG_SWITCH,	   /* my tx is frozen; a = N, the twin offset after my last raw byte */
	CV_MSG_SWITCH_ACK, /* I have read your raw bytes up to N */
	CV_MSG_CANCEL,	   /* I have written no byte of a fence and go on raw; a = enum cv_reason, b = bytes that waited and follow N on the twin */
	CV_MSG_GROW,	   /* ring generation a starts at offset b, size c; memory comes with it */
};

/* The part of a control message that the stream engine writes and reads. */
struct cv_msg {
	uint32_t type;
	uint32_t epoch;
	uint64_t a, b, c;
	uint8_t nonce[CV_NONCE];
};

enum cv_rec_type { CV_REC_FENCE = 0x46, CV_REC_RESUME = 0x52, CV_REC_KEEPALIVE = 0x4b };

/*
 * A record on the twin. `proof` comes first and differs every time, so that raw bytes are not mistaken for its beginning.
 * FENCE: proof = hash of the handshake, a = N. RESUME: a = bytes of the peer's ring that arrived here (C), b = bytes in my ring and stage (T), flags: FIN = 1,
 * AWAIT = 2 (I go by the twin alone: answer with a fence if you have written nothing since N); payload = length of unread spill that follows and that
 * the peer must send again first.
 */
struct cv_rec {
	uint8_t proof[32];
	uint32_t epoch;
	uint8_t type, flags;
	uint16_t version;
	uint64_t a, b;
	uint32_t payload, pad_;
};
_Static_assert(sizeof(struct cv_rec) == 64, "record size is wire format");

#endif
