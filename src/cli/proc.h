/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What /proc says of other processes. Everything may vanish at any moment, and much of it is for root and the process's own user only.
 */
#ifndef CV_CLI_PROC_H
#define CV_CLI_PROC_H

#include "../base/base.h"
#include <sys/types.h>

/* Does the process run (and is no zombie), and since start_time (field 22 of its stat; 0 = whatever)? */
bool cli_proc_alive(uint32_t pid, uint64_t start_time);
/* The inode of our own pid namespace; 0 unknown. */
uint32_t cli_proc_pid_ns(void);
/* The pid, as seen from here, of the one that is `pid` in the pid namespace `ns` and started then; 0 = not to be found. */
uint32_t cli_proc_find(uint32_t ns, uint32_t pid, uint64_t start_time);
/* May a file that belongs to `owner` stem from the process: is owner root, or one of its real, effective, saved uids? */
bool cli_proc_is_of(uint32_t pid, uid_t owner);

struct cli_socket {
	uint64_t inode;
	uint8_t state; /* TCP_ESTABLISHED ... of the kernel */
	uint16_t family, local_port, peer_port;
	uint8_t local[16], peer[16]; /* network order */
};

/* The TCP sockets of one network namespace, by inode. */
struct cli_sockets {
	struct cli_socket *list;
	size_t count;
};
int cli_sockets_load(struct cli_sockets *s, uint32_t pid); /* 0 or -errno */
const struct cli_socket *cli_sockets_find(const struct cli_sockets *s, uint64_t inode);
void cli_sockets_free(struct cli_sockets *s);
/* One line of /proc/net/tcp or tcp6. */
bool cli_socket_parse(struct cli_socket *s, const char *line, bool six);
/* The inode of the socket behind a process's descriptor; 0 = not a socket or gone; *denied is set when we may not look. */
uint64_t cli_proc_socket(uint32_t pid, int fd, bool *denied);
/* The inode of its network namespace; 0 unknown. */
uint64_t cli_proc_net_ns(uint32_t pid);
/* As ss writes it: "ESTAB", "CLOSE-WAIT"; "-" for 0. */
const char *cli_tcp_state(unsigned state);

#endif
