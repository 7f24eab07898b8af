/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The operator's policy: which connections of this program may upgrade, to what, with which settings.
 *
 * Loaded once per process, before the first eligible socket is tracked (or by the CLI); immutable afterwards, so readers need no lock.
 * Parsing allocates from its own mmap'ed arena, never from malloc. Sources, later ones win section by section key by key: built-in
 * defaults, /etc/culvert.conf, the user's $XDG_CONFIG_HOME/culvert.conf (or ~/.config/culvert.conf), the file named by CULVERT_CONFIG,
 * then CULVERT_<KEY> variables. [app] sections are not merged: those of later files are tried first. Environment is read with
 * secure_getenv.
 */
#ifndef CV_POLICY_H
#define CV_POLICY_H

#include "../base/base.h"
#include <sys/socket.h>

enum cv_role { CV_ROLE_NONE, CV_ROLE_CLIENT, CV_ROLE_SERVER };
enum cv_transport { CV_TRANSPORT_TCP, CV_TRANSPORT_SHM, CV_TRANSPORT_RDMA };

#define CV_SPIN_ADAPTIVE UINT32_MAX

/* Settings of one section with everything it inherits resolved. Times in nanoseconds, sizes in bytes. */
struct cv_settings {
	uint8_t transports[4];	 /* enum cv_transport in order of preference, */
	uint8_t transport_count; /* cut before the first tcp; 0 = leave the connection alone */
	uint64_t after_requests; /* sends before the first upgrade try; 0 = at once */
	uint64_t after_bytes;	 /* or bytes, whichever comes first; UINT64_MAX = by requests only */
	uint32_t spin;		 /* longest spin before sleeping, or CV_SPIN_ADAPTIVE */
	uint32_t spin_max;	 /* bound of the adaptive spin */
	uint32_t ring, ring_max; /* powers of two (rounded up) */
	uint32_t spill_max;
	uint64_t upgrade_wait; /* the first call on a stream waits this long for its upgrade; 0 = never. For tests */
	uint64_t handshake_timeout, handover_timeout;
};

/* Process-wide ones, from [defaults] and the environment. */
struct cv_global {
	int log_level; /* enum cv_log_level */
	const char *log_file;
	const char *stats_dir;
	bool stats_keep;
};

/* Where the deciding line stands. */
struct cv_rule_ref {
	const char *section; /* e.g. "app redis-server"; "defaults" */
	const char *file;    /* NULL = built in */
	int line;
};

/* What the parser tells: one call per problem. text is a whole sentence with the nearest right name. */
typedef void (*cv_policy_error_fn)(void *arg, const char *file, int line, const char *text);

struct cv_policy;

/* This process's program, as cv_policy_load() wants it: the name under which it was started, in buf (PATH_MAX bytes are enough). */
const char *cv_policy_self(char *buf, size_t size);

/* Load all sources for the program `prog` (an absolute path, or a bare name). Bad lines are reported and skipped; never fails: at
 * worst the built-in defaults. only_file: read just this one besides the defaults (for `culvert check FILE`), or NULL. */
const struct cv_policy *cv_policy_load(const char *prog, const char *only_file, cv_policy_error_fn on_error, void *arg);

/* Gives the policy's memory back, with all that was returned from it. For tests and tools; a preloaded process keeps its policy. */
void cv_policy_free(const struct cv_policy *p);

const struct cv_global *cv_policy_global(const struct cv_policy *p);

/* False when no connection of this program can ever be admitted: the preload layer then tracks nothing. */
bool cv_policy_any(const struct cv_policy *p);
/* The smallest after_requests / after_bytes among this program's sections: nothing needs deciding before that. */
void cv_policy_first(const struct cv_policy *p, uint64_t *requests, uint64_t *bytes);
/* The longest upgrade_wait among them, ns. */
uint64_t cv_policy_longest_wait(const struct cv_policy *p);
/* The settings for one connection, and optionally why. server side: addresses as getsockname/getpeername give them. For
 * matching, ADDR:PORT is the server's end: the local address of an accepted socket, the peer's of a connected one. Never NULL. */
const struct cv_settings *cv_policy_decide(const struct cv_policy *p, enum cv_role role, const struct sockaddr *local,
					   const struct sockaddr *peer, struct cv_rule_ref *why);

#endif
