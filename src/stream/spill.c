/* SPDX-License-Identifier: Apache-2.0 */
#include "spill.h"
#include "iov.h"
#include <errno.h>

#ifndef CV_SPILL_MIN
#define CV_SPILL_MIN 4096u
#endif

int cv_spill_reserve(struct cv_spill *q, const struct cv_stream_ops *ops, size_t n, uint8_t **p)
{
	size_t need = q->len + n, cap = q->cap ? q->cap : CV_SPILL_MIN;
	uint8_t *buf;

	if (need < n)
		return -ENOMEM;
	if (q->off + need > q->cap) {
		if (need > q->cap) {
			while (cap < need) {
				if (cap > SIZE_MAX / 2)
					return -ENOMEM;
				cap *= 2;
			}
			buf = ops->alloc(cap);
			if (!buf)
				return -ENOMEM;
			if (q->len)
				memcpy(buf, q->buf + q->off, q->len);
			if (q->buf)
				ops->free(q->buf, q->cap);
			q->buf = buf;
			q->cap = cap;
		} else {
			memmove(q->buf, q->buf + q->off, q->len);
		}
		q->off = 0;
	}
	*p = q->buf + q->off + q->len;
	return 0;
}

void cv_spill_added(struct cv_spill *q, size_t n)
{
	q->len += n;
}

int cv_spill_put(struct cv_spill *q, const struct cv_stream_ops *ops, const struct iovec *iov, int iovcnt, uint64_t skip, size_t len)
{
	struct cv_iov c = cv_iov_at(iov, iovcnt, skip);
	uint8_t *p;
	int err = cv_spill_reserve(q, ops, len, &p);

	if (!err)
		q->len += (size_t)cv_iov_from(&c, p, len);
	return err;
}

size_t cv_spill_get(struct cv_spill *q, const struct iovec *iov, int iovcnt, uint64_t skip, size_t max, bool peek)
{
	struct cv_iov c = cv_iov_at(iov, iovcnt, skip);
	size_t n = 0;

	if (q->len)
		n = (size_t)cv_iov_to(&c, q->buf + q->off, cv_min_u64(max, q->len));
	if (!peek)
		cv_spill_drop(q, n);
	return n;
}

const uint8_t *cv_spill_front(const struct cv_spill *q)
{
	return q->buf + q->off;
}

void cv_spill_drop(struct cv_spill *q, size_t n)
{
	q->off += n;
	q->len -= n;
	if (!q->len)
		q->off = 0;
}

void cv_spill_free(struct cv_spill *q, const struct cv_stream_ops *ops)
{
	if (q->buf)
		ops->free(q->buf, q->cap);
	*q = (struct cv_spill){0};
}
