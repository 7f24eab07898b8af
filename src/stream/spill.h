/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Operations on struct cv_spill (stream.h): a flat byte queue in memory from the stream's ops->alloc, grown by doubling. Whoever holds the half's
 * lock may call. Bounds are the caller's: a queue takes what it is given, or -ENOMEM and is as before.
 */
#ifndef CV_SPILL_H
#define CV_SPILL_H

#include "stream.h"

/* Make room for `n` more bytes at the end; *p is where they go. cv_spill_added() says how many came. 0 or -ENOMEM. */
int cv_spill_reserve(struct cv_spill *q, const struct cv_stream_ops *ops, size_t n, uint8_t **p);
void cv_spill_added(struct cv_spill *q, size_t n);
/* Append `len` bytes of the iovec from its byte `skip` on. 0 or -ENOMEM. */
int cv_spill_put(struct cv_spill *q, const struct cv_stream_ops *ops, const struct iovec *iov, int iovcnt, uint64_t skip, size_t len);
/* Copy out at most `max` bytes into the iovec from its byte `skip` on; consume them unless peek. */
size_t cv_spill_get(struct cv_spill *q, const struct iovec *iov, int iovcnt, uint64_t skip, size_t max, bool peek);
const uint8_t *cv_spill_front(const struct cv_spill *q);
void cv_spill_drop(struct cv_spill *q, size_t n);
/* Empty it and give the memory back. */
void cv_spill_free(struct cv_spill *q, const struct cv_stream_ops *ops);

#endif
