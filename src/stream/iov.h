/* SPDX-License-Identifier: Apache-2.0 */
/* Walking an iovec from byte `skip` on: a cursor that hands out the contiguous pieces. The caller's iovec is only read. */
#ifndef CV_IOV_H
#define CV_IOV_H

#include "../base/base.h"
#include <string.h>
#include <sys/uio.h>

struct cv_iov {
	const struct iovec *v;
	int left;
	size_t off;
};

static inline struct cv_iov cv_iov_at(const struct iovec *v, int n, uint64_t skip)
{
	while (n > 0 && skip >= v->iov_len) {
		skip -= v->iov_len;
		v++;
		n--;
	}
	return (struct cv_iov){.v = v, .left = n, .off = (size_t)skip};
}

/* The present piece: its address and its length, at most `max`; 0 at the end. */
static inline size_t cv_iov_piece(struct cv_iov *c, uint64_t max, uint8_t **p)
{
	while (c->left > 0 && c->off == c->v->iov_len) {
		c->v++;
		c->left--;
		c->off = 0;
	}
	if (c->left <= 0)
		return 0;
	*p = (uint8_t *)c->v->iov_base + c->off;
	return (size_t)cv_min_u64(max, c->v->iov_len - c->off);
}

/* Copy between the iovec and flat memory; the number of bytes copied. */
static inline uint64_t cv_iov_from(struct cv_iov *c, void *flat, uint64_t len)
{
	uint64_t done = 0;
	uint8_t *p;

	for (size_t n; done < len && (n = cv_iov_piece(c, len - done, &p)); done += n, c->off += n)
		memcpy((uint8_t *)flat + done, p, n);
	return done;
}

static inline uint64_t cv_iov_to(struct cv_iov *c, const void *flat, uint64_t len)
{
	uint64_t done = 0;
	uint8_t *p;

	for (size_t n; done < len && (n = cv_iov_piece(c, len - done, &p)); done += n, c->off += n)
		memcpy(p, (const uint8_t *)flat + done, n);
	return done;
}

#endif
