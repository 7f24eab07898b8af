/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Why a connection is not (or no longer) accelerated. One list; the names that the CLI prints, the man page and the counters all come
 * from it. X(IDENTIFIER, "name", "what it means and what to do")
 */
#ifndef CV_REASON_H
#define CV_REASON_H

#define CV_REASONS(X) \
	X(NONE, "-", "accelerated, or nothing to report") \
	X(YOUNG, "young", "has not yet done upgrade-after worth of traffic") \
	X(CONNECTING, "connecting", "rendezvous or switch is under way") \
	X(POLICY, "policy", "the deciding section says transport = tcp, or no section admits the connection") \
	X(NOT_TCP, "not-tcp", "the socket is not a plain TCP stream") \
	X(NOT_LOCAL, "not-local", "the peer is on another host and no RDMA link is available") \
	X(PEER_ABSENT, "peer-absent", "nobody answered the rendezvous: the peer does not run culvert") \
	X(PEER_REFUSED, "peer-refused", "the peer answered and declined; its own reason is in its culvert ss") \
	X(NO_LISTENER, "no-listener", "too many rendezvous at once (64 listeners a process)") \
	X(NO_MEMORY, "no-memory", "no memory, descriptors or segment for the link; raise RLIMIT_NOFILE or the memory limit") \
	X(NO_SLOT, "no-slot", "the link carries as many streams as it can") \
	X(HALF_CLOSED, "half-closed", "one direction is already shut down") \
	X(SELF, "self", "the socket is connected to itself") \
	X(SPILL, "spill", "more than spill-max was unread when the switch was tried") \
	X(BYPASS, "bypass", "bytes were written or read behind culvert's back while switching") \
	X(TIMEOUT, "timeout", "the peer did not complete the handshake in time") \
	X(CANCELLED, "cancelled", "the peer cancelled the handshake") \
	X(PEER_LEFT, "peer-left", "the peer returned the stream to TCP; its own reason is in its culvert ss") \
	X(PROTOCOL, "protocol", "the peer broke the protocol; the link was dropped") \
	X(LINK_DOWN, "link-down", "the link failed; the stream went on over TCP") \
	X(PEER_DEAD, "peer-dead", "the peer's process ended") \
	X(OOB, "oob", "the program uses out-of-band data") \
	X(FORK, "fork", "the stream is shared with a forked process") \
	X(EXEC, "exec", "the descriptor passes over exec or to a spawned program") \
	X(FD_PASSED, "fd-passed", "the descriptor was passed over a unix socket") \
	X(STDIO, "stdio", "the descriptor was given to stdio") \
	X(CALL, "call", "the program made a call that only the kernel can serve") \
	X(EPOLL, "epoll", "the descriptor is in an epoll set that culvert cannot serve") \
	X(URING, "io-uring", "the process uses io_uring") \
	X(OPTION, "option", "a socket option (TCP_ULP, TCP_REPAIR, MPTCP, ...) keeps the stream in the kernel") \
	X(CLOSED, "closed", "the connection has ended") \
	X(STRANGER, "stranger", "the rendezvous was answered by another user than the one who opened the peer's socket")

enum cv_reason {
#define X(id, name, text) CV_REASON_##id,
	CV_REASONS(X)
#undef X
		CV_REASON_COUNT
};

/* The name, or "?" when out of range. */
const char *cv_reason_name(unsigned reason);
/* The explanation, one sentence. */
const char *cv_reason_text(unsigned reason);

#endif
