/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reading stats files. Their writers are other users' processes, and anybody may put a file there: it is copied once (never mapped: it may be cut
 * short meanwhile), everything in the copy is checked before it is used, and what comes out is safe to print and to index with.
 */
#ifndef CV_CLI_SEGMENT_H
#define CV_CLI_SEGMENT_H

#include "../observe/stats.h"

struct cli_row {
	uint64_t tx_link, rx_link, tx_tcp, rx_tcp, opened_ns;
	uint32_t upgrades, fallbacks;
	int32_t fd;
	uint8_t state, role, transport; /* in range of their enums */
	uint8_t reason;			/* any value: cv_reason_name() bounds it */
	uint16_t family, local_port, peer_port; /* ports in host order */
	uint8_t local[16], peer[16];
};

struct cli_segment {
	uint32_t pid, pid_ns; /* as its own pid namespace has it; the namespace's inode, 0 unknown */
	uint32_t host_pid; /* as we see it, for /proc; 0 = it is dead or out of our sight */
	bool alive, kept;
	uint32_t uid; /* the file's owner */
	uint64_t start_time;
	char prog[64]; /* printable */
	uint64_t counters[CV_CTR_COUNT], reasons[CV_REASON_COUNT];
	struct cli_row *rows; /* those in use */
	size_t row_count;
};

/* Reads one file of the directory. 0, or -errno with a sentence in why. alive and host_pid are not set. */
int cli_segment_read(int dir_fd, const char *name, struct cli_segment *s, char *why, size_t size);
void cli_segment_free(struct cli_segment *s);
/* Does a file of this name hold stats, and of which pid? culvert.PID, or culvert.PID.NAMESPACE. */
bool cli_segment_name(const char *name, uint32_t *pid);
/* Counter c with what the rows in use have added so far. */
uint64_t cli_segment_total(const struct cli_segment *s, enum cv_counter c);

struct cli_segments {
	struct cli_segment *list; /* by pid */
	size_t count;
	bool trouble; /* something could not be read; it has been said */
};

/* All of a directory; says what cannot be read, removes what dead processes of ours left behind. dead: list kept ones of dead processes too.
 * pid: only this one, 0 = all. */
int cli_segments_load(struct cli_segments *all, const char *dir, uint32_t pid, bool dead);
void cli_segments_free(struct cli_segments *all);
/* Says why there is nothing to show; the exit status. */
int cli_segments_none(const struct cli_segments *all, const char *dir, uint32_t pid);

#endif
