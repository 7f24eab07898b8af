/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The log of a preloaded process: lines "culvert[PID]: LEVEL: text" to the file that policy `log-file` names, else to stderr.
 * Own formatting (no malloc, no stdio, no locale; %s %d %u %x %c %p %%, with l, ll, z, a width, 0, -, and .N or .* for %s), one write() a
 * line, errno untouched, async-signal-safe. Nothing below the level is formatted. cv_warn_once() says a thing once per process and call site.
 */
#ifndef CV_LOG_H
#define CV_LOG_H

#include "../base/base.h"

enum cv_log_level { CV_LOG_NONE, CV_LOG_ERROR, CV_LOG_WARN, CV_LOG_INFO, CV_LOG_DEBUG };

extern enum cv_log_level cv_log_level; /* default CV_LOG_WARN */

/* fd to write to (kept as it is, not owned); -1: stderr. */
void cv_log_to(int fd);
void cv_log_write(enum cv_log_level level, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Formats into buf as cv_log_write does; returns the length that was written, always terminated. */
size_t cv_format(char *buf, size_t size, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

#define cv_log(level, ...) \
	do { \
		if (unlikely((level) <= cv_log_level)) \
			cv_log_write(level, __VA_ARGS__); \
	} while (0)
#define cv_warn_once(...) \
	do { \
		static atomic_flag said_ = ATOMIC_FLAG_INIT; \
		if (!atomic_flag_test_and_set(&said_)) \
			cv_log(CV_LOG_WARN, __VA_ARGS__); \
	} while (0)

#endif
