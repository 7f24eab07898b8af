/* SPDX-License-Identifier: Apache-2.0 */
#include "arena.h"

#include <string.h>
#include <sys/mman.h>

#define BLOCK_SIZE (64u << 10)
#define ALIGNMENT 16u

struct cv_arena_block {
	struct cv_arena_block *next;
	size_t size, used;
	size_t pad_; /* keeps what follows aligned */
};
_Static_assert(sizeof(struct cv_arena_block) % ALIGNMENT == 0, "the first object after the header must be aligned");

static struct cv_arena_block *block_new(struct cv_arena *a, size_t need)
{
	size_t size = need + sizeof(struct cv_arena_block);
	struct cv_arena_block *b;

	size = (size + BLOCK_SIZE - 1) / BLOCK_SIZE * BLOCK_SIZE;
	if (size > CV_ARENA_MAX - a->mapped)
		return NULL;
	b = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (b == MAP_FAILED)
		return NULL;
	b->size = size;
	b->used = sizeof(*b);
	b->next = a->block;
	a->block = b;
	a->mapped += size;
	return b;
}

void *cv_arena_alloc(struct cv_arena *a, size_t size)
{
	struct cv_arena_block *b = a->block;
	void *p;

	if (size > CV_ARENA_MAX / 2)
		return NULL;
	size = (size + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
	if (!b || size > b->size - b->used)
		b = block_new(a, size);
	if (!b)
		return NULL;
	p = (char *)b + b->used;
	b->used += size;
	return p;
}

char *cv_arena_copy(struct cv_arena *a, const char *s, size_t len)
{
	char *p = len < CV_ARENA_MAX ? cv_arena_alloc(a, len + 1) : NULL;

	if (p)
		memcpy(p, s, len);
	return p;
}

void cv_arena_free(struct cv_arena *a)
{
	struct cv_arena_block *b = a->block, *next;

	for (; b; b = next) {
		next = b->next;
		munmap(b, b->size);
	}
	a->block = NULL;
	a->mapped = 0;
}
