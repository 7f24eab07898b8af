/* SPDX-License-Identifier: Apache-2.0 */
#include "segment.h"
#include "cli.h"
#include "proc.h"
#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* No process has more; keeps a hostile header from making us allocate without bound. */
#define ROWS_MAX (1u << 20)

static int complain(int err, char *why, size_t size, const char *text)
{
	snprintf(why, size, "%s", text);
	return err;
}

/* Reads exactly len bytes, or says that there are not so many. */
static int read_at(int fd, void *buf, size_t len, off_t at)
{
	for (size_t done = 0; done < len;) {
		ssize_t n = pread(fd, (char *)buf + done, len - done, at + (off_t)done);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (n == 0)
			return -ENODATA;
		done += (size_t)n;
	}
	return 0;
}

static int check_header(const struct cv_stats_segment *h, off_t file_size, char *why, size_t size)
{
	if (h->magic != CV_STATS_MAGIC)
		return complain(-EBADMSG, why, size, h->magic ? "not a stats file of culvert" : "not written yet, or its process died early");
	if (h->version != CV_STATS_VERSION) {
		snprintf(why, size, "written by another version of culvert (format %u; this program reads %u)", h->version, CV_STATS_VERSION);
		return -EPROTO;
	}
	if (h->header_size != offsetof(struct cv_stats_segment, row) || h->row_size != sizeof(struct cv_row))
		return complain(-EPROTO, why, size, "written by another build of culvert (its rows are laid out differently)");
	if (h->rows > ROWS_MAX || atomic_load(&h->rows_used) > h->rows)
		return complain(-EBADMSG, why, size, "damaged: its header contradicts itself");
	if (file_size < (off_t)(h->header_size + (uint64_t)h->rows * h->row_size))
		return complain(-EBADMSG, why, size, "damaged: shorter than its header says");
	return 0;
}

static void copy_name(char out[64], const char in[64])
{
	size_t i;

	for (i = 0; i < 63 && in[i]; i++)
		out[i] = in[i] > ' ' && in[i] < 0x7f ? in[i] : '?';
	out[i] = '\0';
	if (i == 0)
		strcpy(out, "?");
}

static bool copy_row(struct cli_row *to, const struct cv_row *from)
{
	to->state = atomic_load_explicit(&from->state, memory_order_relaxed);
	if (to->state == CV_ROW_FREE || to->state > CV_ROW_RETURNING)
		return false;
	to->tx_link = atomic_load_explicit(&from->tx_link, memory_order_relaxed);
	to->rx_link = atomic_load_explicit(&from->rx_link, memory_order_relaxed);
	to->tx_tcp = atomic_load_explicit(&from->tx_tcp, memory_order_relaxed);
	to->rx_tcp = atomic_load_explicit(&from->rx_tcp, memory_order_relaxed);
	to->opened_ns = atomic_load_explicit(&from->opened_ns, memory_order_relaxed);
	to->upgrades = atomic_load_explicit(&from->upgrades, memory_order_relaxed);
	to->fallbacks = atomic_load_explicit(&from->fallbacks, memory_order_relaxed);
	to->fd = atomic_load_explicit(&from->fd, memory_order_relaxed);
	to->role = atomic_load_explicit(&from->role, memory_order_relaxed);
	to->role = to->role <= 2 ? to->role : 0;
	to->transport = atomic_load_explicit(&from->transport, memory_order_relaxed);
	to->transport = to->transport <= CV_ROW_T_RDMA ? to->transport : CV_ROW_T_TCP;
	to->reason = atomic_load_explicit(&from->reason, memory_order_relaxed);
	to->family = from->family;
	to->local_port = ntohs(from->local_port);
	to->peer_port = ntohs(from->peer_port);
	memcpy(to->local, from->local_addr, sizeof(to->local));
	memcpy(to->peer, from->peer_addr, sizeof(to->peer));
	return true;
}

static int read_rows(int fd, uint32_t used, struct cli_segment *s)
{
	struct cv_row *raw = cli_alloc(used, sizeof(*raw));
	int err = read_at(fd, raw, used * sizeof(*raw), offsetof(struct cv_stats_segment, row));

	s->rows = cli_alloc(used, sizeof(*s->rows));
	for (uint32_t i = 0; !err && i < used; i++)
		if (copy_row(&s->rows[s->row_count], &raw[i]))
			s->row_count++;
	free(raw);
	return err;
}

static int read_open(int fd, struct cli_segment *s, char *why, size_t size)
{
	union {
		struct cv_stats_segment h;
		char bytes[offsetof(struct cv_stats_segment, row)];
	} u;
	struct stat st;
	int err;

	if (fstat(fd, &st) < 0)
		return complain(-errno, why, size, strerror(errno));
	if (!S_ISREG(st.st_mode))
		return complain(-EBADMSG, why, size, "not a regular file");
	err = read_at(fd, &u, sizeof(u.bytes), 0);
	if (err)
		return complain(err, why, size, err == -ENODATA ? "damaged: shorter than a header" : strerror(-err));
	err = check_header(&u.h, st.st_size, why, size);
	if (err)
		return err;
	s->pid = u.h.pid;
	s->uid = st.st_uid;
	s->pid_ns = u.h.pid_ns;
	s->start_time = u.h.start_time;
	s->kept = u.h.flags & CV_STATS_KEPT;
	copy_name(s->prog, u.h.prog);
	for (unsigned i = 0; i < CV_CTR_COUNT; i++)
		s->counters[i] = atomic_load_explicit(&u.h.counters[i], memory_order_relaxed);
	for (unsigned i = 0; i < CV_REASON_COUNT; i++)
		s->reasons[i] = atomic_load_explicit(&u.h.reasons[i], memory_order_relaxed);
	err = read_rows(fd, atomic_load(&u.h.rows_used), s);
	return err ? complain(err, why, size, "damaged: it was cut short while it was read") : 0;
}

int cli_segment_read(int dir_fd, const char *name, struct cli_segment *s, char *why, size_t size)
{
	/* Whoever may write there can plant a fifo or a link. */
	int fd = openat(dir_fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC), err;
	struct stat st;
	struct passwd *owner;
	uint32_t pid;

	memset(s, 0, sizeof(*s));
	if (fd < 0) {
		err = -errno;
		if (err == -EACCES && fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0) {
			owner = st.st_uid ? getpwuid(st.st_uid) : NULL;
			snprintf(why, size, "permission denied; run as root%s%s", owner ? " or as " : "", owner ? owner->pw_name : "");
			return err;
		}
		return complain(err, why, size, err == -ELOOP ? "a symbolic link; ignored" : strerror(-err));
	}
	err = read_open(fd, s, why, size);
	close(fd);
	if (!err && cli_segment_name(name, &pid) && pid != s->pid)
		err = complain(-EBADMSG, why, size, "damaged: its pid is not that of its name");
	if (err)
		cli_segment_free(s);
	return err;
}

void cli_segment_free(struct cli_segment *s)
{
	free(s->rows);
	s->rows = NULL;
	s->row_count = 0;
}

bool cli_segment_name(const char *name, uint32_t *pid)
{
	char digits[16];
	uint32_t ns;
	size_t len;

	if (strncmp(name, "culvert.", 8) != 0)
		return false;
	len = strcspn(name + 8, ".");
	if (len == 0 || len >= sizeof(digits))
		return false;
	memcpy(digits, name + 8, len);
	digits[len] = '\0';
	if (!cli_parse_pid(digits, pid))
		return false;
	if (name[8 + len] == '\0')
		return true;
	ns = (uint32_t)strtoul(name + 9 + len, NULL, 10);
	snprintf(digits, sizeof(digits), "%u", ns);
	return ns && strcmp(digits, name + 9 + len) == 0;
}

uint64_t cli_segment_total(const struct cli_segment *s, enum cv_counter c)
{
	uint64_t sum = s->counters[c];

	for (size_t i = 0; i < s->row_count; i++) {
		const struct cli_row *r = &s->rows[i];

		sum += c == CV_CTR_TX_LINK ? r->tx_link :
		       c == CV_CTR_RX_LINK ? r->rx_link :
		       c == CV_CTR_TX_TCP  ? r->tx_tcp :
		       c == CV_CTR_RX_TCP  ? r->rx_tcp :
					     0;
	}
	return sum;
}
