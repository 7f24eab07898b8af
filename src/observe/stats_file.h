/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The file behind the stats segment: made, mapped, removed. stats.c is its only user and holds the lock; cv_stats_file_remove() is async-signal-safe.
 */
#ifndef CV_STATS_FILE_H
#define CV_STATS_FILE_H

#include "stats.h"

#define CV_STATS_PAGE 4096u

struct cv_stats_file {
	char path[160]; /* empty: there is none */
	uint64_t dev, ino;
	int pid;
	bool keep;
};

/* Creates the file for this process and maps it, header filled. rows: as many as wanted; seg->rows may be less. 0 or -errno. */
int cv_stats_file_create(struct cv_stats_file *f, const char *dir, bool keep, uint32_t rows, struct cv_stats_segment **seg);
/* Removes it if it is still the one that this very process made (not a vfork child's parent's) and is not to be kept. */
void cv_stats_file_remove(struct cv_stats_file *f);

#endif
