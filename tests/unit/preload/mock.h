/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The wrappers with a mock where sockets, epoll sets and the agent are. A mocked socket in play is "linked": sends are noted, receives come from a
 * string, and every other call upon it is counted; `real` makes it answer CV_IO_REAL, as a socket on TCP does.
 *
 * The program's own read(), close(), ... are the wrappers: nothing is preloaded.
 */
#ifndef MOCK_H
#define MOCK_H

#include "preload/epoll.h"
#include "preload/sig.h"
#include "preload/wrap.h"
#include <arpa/inet.h>
#include <setjmp.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include <cmocka.h>

struct mock {
	struct cv_sock *last; /* whom the last call was about */
	int news, vanished, closed, dups, fall_backs, shut, ep_closed, ep_vanished, ep_dups, uring, exits, forks, leaves;
	int fd, role, how, why;
	bool nonblock, stay_out, real;
	char in[256], out[65536];
	size_t in_len, out_len, out_max; /* out_max: one send takes no more than this */
	int flags, error;
	int *exit_seen; /* counts over fork */
};
extern struct mock mock;

/* A fresh mock, an empty table; the process is on, as after the first TCP socket. */
int mock_setup(void **state);
/* A mocked socket in play at fd. */
struct cv_sock *mock_sock(int fd);
/* One end of a unix stream pair; the other goes to *peer. */
int mock_pair(int *peer);
void mock_feed(const char *text);
/* Descriptor becomes one of culvert's own. */
void mock_internal(int fd, bool on);

#endif
