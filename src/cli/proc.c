/* SPDX-License-Identifier: Apache-2.0 */
#include "proc.h"
#include "cli.h"
#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

static FILE *open_proc(uint32_t pid, const char *name)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%u/%s", pid, name);
	return fopen(path, "re");
}

bool cli_proc_alive(uint32_t pid, uint64_t start_time)
{
	char buf[1024], *p;
	uint64_t start;
	size_t n;
	char state;
	FILE *f = open_proc(pid, "stat");

	if (!f)
		return false;
	n = fread(buf, 1, sizeof(buf) - 1, f);
	fclose(f);
	buf[n] = '\0';
	p = strrchr(buf, ')'); /* the name may hold anything, parentheses too */
	if (!p || sscanf(p + 1, " %c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d %*d %" SCNu64, &state, &start) != 2)
		return false;
	return state != 'Z' && state != 'X' && (start_time == 0 || start == start_time);
}

static uint64_t ns_inode(const char *pid, const char *kind)
{
	char path[64];
	struct stat st;

	snprintf(path, sizeof(path), "/proc/%.20s/ns/%s", pid, kind);
	return stat(path, &st) < 0 ? 0 : st.st_ino;
}

uint32_t cli_proc_pid_ns(void)
{
	return (uint32_t)ns_inode("self", "pid");
}

uint64_t cli_proc_net_ns(uint32_t pid)
{
	char s[16];

	snprintf(s, sizeof(s), "%u", pid);
	return ns_inode(s, "net");
}

/* The last number of the NSpid line: the pid in the innermost namespace. */
static uint32_t innermost_pid(uint32_t pid)
{
	char line[512];
	unsigned v = 0;
	FILE *f = open_proc(pid, "status");

	if (!f)
		return 0;
	while (fgets(line, sizeof(line), f)) {
		if (strncmp(line, "NSpid:", 6) == 0) {
			char *last = strrchr(line, '\t');

			v = last ? (unsigned)strtoul(last, NULL, 10) : 0;
			break;
		}
	}
	fclose(f);
	return v;
}

uint32_t cli_proc_find(uint32_t ns, uint32_t pid, uint64_t start_time)
{
	DIR *d = opendir("/proc");
	struct dirent *e;
	uint32_t found = 0, candidate;

	while (d && !found && (e = readdir(d))) {
		if (!cli_parse_pid(e->d_name, &candidate) || ns_inode(e->d_name, "pid") != ns)
			continue;
		if (innermost_pid(candidate) == pid && cli_proc_alive(candidate, start_time))
			found = candidate;
	}
	if (d)
		closedir(d);
	return found;
}

bool cli_proc_is_of(uint32_t pid, uid_t owner)
{
	char line[512];
	unsigned u[3];
	bool ret = owner == 0;
	FILE *f = ret ? NULL : open_proc(pid, "status");

	while (f && !ret && fgets(line, sizeof(line), f))
		if (sscanf(line, "Uid: %u %u %u", &u[0], &u[1], &u[2]) == 3)
			ret = u[0] == owner || u[1] == owner || u[2] == owner;
	if (f)
		fclose(f);
	return ret;
}

/* The kernel prints addresses as 32-bit words in the machine's own order, so that storing them as words restores the bytes. */
static bool parse_addr(const char *hex, size_t len, uint8_t *out)
{
	for (size_t i = 0; i < len / 8; i++) {
		char word[9] = { 0 };
		uint32_t v;
		char *end;

		memcpy(word, hex + i * 8, 8);
		v = (uint32_t)strtoul(word, &end, 16);
		if (*end)
			return false;
		memcpy(out + i * 4, &v, 4);
	}
	return true;
}

bool cli_socket_parse(struct cli_socket *s, const char *line, bool six)
{
	char local[33], peer[33];
	unsigned local_port, peer_port, state;
	size_t len = six ? 32 : 8;

	memset(s, 0, sizeof(*s));
	if (sscanf(line, " %*u: %32[0-9A-Fa-f]:%4x %32[0-9A-Fa-f]:%4x %2x %*x:%*x %*x:%*x %*x %*u %*u %" SCNu64, local, &local_port, peer,
		   &peer_port, &state, &s->inode) != 6)
		return false;
	if (strlen(local) != len || strlen(peer) != len || !parse_addr(local, len, s->local) || !parse_addr(peer, len, s->peer))
		return false;
	s->family = six ? AF_INET6 : AF_INET;
	s->local_port = (uint16_t)local_port;
	s->peer_port = (uint16_t)peer_port;
	s->state = (uint8_t)state;
	return true;
}

static int by_inode(const void *a, const void *b)
{
	uint64_t x = ((const struct cli_socket *)a)->inode, y = ((const struct cli_socket *)b)->inode;

	return x < y ? -1 : x > y;
}

int cli_sockets_load(struct cli_sockets *s, uint32_t pid)
{
	size_t room = 0;
	int err = 0;

	*s = (struct cli_sockets){ 0 };
	for (int six = 0; six < 2; six++) {
		FILE *f = open_proc(pid, six ? "net/tcp6" : "net/tcp");
		char line[512];

		if (!f && !six)
			err = -errno;
		while (f && fgets(line, sizeof(line), f)) {
			if (s->count == room) {
				room = room ? room * 2 : 256;
				s->list = cli_grow(s->list, room, sizeof(*s->list));
			}
			/* Inode 0: no descriptor holds it (TIME-WAIT). The heading does not parse. */
			if (cli_socket_parse(&s->list[s->count], line, six) && s->list[s->count].inode)
				s->count++;
		}
		if (f)
			fclose(f);
	}
	if (s->count)
		qsort(s->list, s->count, sizeof(*s->list), by_inode);
	return err;
}

const struct cli_socket *cli_sockets_find(const struct cli_sockets *s, uint64_t inode)
{
	const struct cli_socket key = { .inode = inode };

	return s->count && inode ? bsearch(&key, s->list, s->count, sizeof(*s->list), by_inode) : NULL;
}

void cli_sockets_free(struct cli_sockets *s)
{
	free(s->list);
	*s = (struct cli_sockets){ 0 };
}

uint64_t cli_proc_socket(uint32_t pid, int fd, bool *denied)
{
	char path[64], link[64];
	uint64_t inode = 0;
	ssize_t n;

	if (fd < 0)
		return 0;
	snprintf(path, sizeof(path), "/proc/%u/fd/%d", pid, fd);
	n = readlink(path, link, sizeof(link) - 1);
	if (n < 0) {
		if (errno == EACCES || errno == EPERM)
			*denied = true;
		return 0;
	}
	link[n] = '\0';
	return sscanf(link, "socket:[%" SCNu64 "]", &inode) == 1 ? inode : 0;
}

const char *cli_tcp_state(unsigned state)
{
	static const char *const names[] = { "-",	   "ESTAB",    "SYN-SENT", "SYN-RECV", "FIN-WAIT-1", "FIN-WAIT-2", "TIME-WAIT",
					     "UNCONN",	   "CLOSE-WAIT", "LAST-ACK", "LISTEN",   "CLOSING",    "NEW-SYN-RECV" };

	return state < CV_ARRAY_LEN(names) ? names[state] : "?";
}
