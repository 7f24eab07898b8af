/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory of one loaded policy: mmap'ed blocks that grow and are given back together. Never malloc: the policy is loaded inside somebody
 * else's process, perhaps from inside its allocator's first call. One thread at a time.
 */
#ifndef CV_POLICY_ARENA_H
#define CV_POLICY_ARENA_H

#include "../base/base.h"

#define CV_ARENA_MAX (16u << 20) /* a configuration that needs more is a mistake, or an attack */

struct cv_arena_block;

struct cv_arena {
	struct cv_arena_block *block; /* the newest first */
	size_t mapped;
};

/* Zeroed, aligned for any object. NULL when CV_ARENA_MAX is reached or the kernel refuses. */
void *cv_arena_alloc(struct cv_arena *a, size_t size);
/* A terminated copy of len bytes, or NULL. */
char *cv_arena_copy(struct cv_arena *a, const char *s, size_t len);
void cv_arena_free(struct cv_arena *a);

#endif
