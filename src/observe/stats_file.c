/* SPDX-License-Identifier: Apache-2.0 */
#include "stats_file.h"
#include "../base/sys.h"
#include "log.h"
#include <errno.h>
#include <fcntl.h>
#include <linux/time_types.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <time.h>

static long sys_stat(const char *path, struct stat *st, int flags)
{
	return cv_sys4(SYS_newfstatat, AT_FDCWD, path, st, flags);
}

/* Field 22 of /proc/self/stat; 0 where there is no /proc. The name in field 2 may hold blanks and parentheses: count from the last one. */
static uint64_t own_start_time(void)
{
	char buf[1024];
	long fd = cv_sys4(SYS_openat, AT_FDCWD, "/proc/self/stat", O_RDONLY | O_CLOEXEC, 0), n;
	uint64_t v = 0;
	char *p;

	if (fd < 0)
		return 0;
	n = cv_sys3(SYS_read, fd, buf, sizeof(buf) - 1);
	cv_sys1(SYS_close, fd);
	if (n <= 0)
		return 0;
	buf[n] = '\0';
	p = strrchr(buf, ')');
	for (int field = 2; p && field < 22; field++) {
		p = strchr(p, ' ');
		p = p ? p + 1 : NULL;
	}
	for (; p && *p >= '0' && *p <= '9'; p++)
		v = v * 10 + (uint64_t)(*p - '0');
	return v;
}

/* As it was started (AT_EXECFN), not where symbolic links lead: Debian's redis-server is one to redis-check-rdb. */
static void own_name(char *out, size_t size)
{
	const char *path = (const char *)getauxval(AT_EXECFN), *base = path ? strrchr(path, '/') : NULL;

	cv_format(out, size, "%s", base ? base + 1 : path && *path ? path : "?");
}

static uint32_t own_pid_ns(void)
{
	struct stat st;

	return sys_stat("/proc/self/ns/pid", &st, 0) < 0 ? 0 : (uint32_t)st.st_ino;
}

/* Growing a file beyond RLIMIT_FSIZE raises SIGXFSZ, which ends the program: ask first. */
static uint32_t rows_allowed(uint32_t want)
{
	struct rlimit limit;
	const size_t head = offsetof(struct cv_stats_segment, row);

	if (cv_sys4(SYS_prlimit64, 0, RLIMIT_FSIZE, 0, &limit) < 0 || limit.rlim_cur == RLIM_INFINITY)
		return want;
	if (limit.rlim_cur < CV_STATS_PAGE)
		return 0;
	return (uint32_t)cv_min_u64(want, (limit.rlim_cur - head) / sizeof(struct cv_row));
}

/*
 * Our pid is in the name, so that whoever left a file of that name is dead, or was this process before an exec. In a directory that several pid
 * namespaces share it may also be alive in another one: then the caller takes a name with the namespace in it.
 */
static bool is_stale(const char *path, uint32_t pid_ns)
{
	struct cv_stats_segment head;
	struct stat st;
	long fd, n;

	if (sys_stat(path, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return true; /* gone by now */
	if (!S_ISREG(st.st_mode) || st.st_uid != (uid_t)cv_sys0(SYS_geteuid))
		return false;
	fd = cv_sys4(SYS_openat, AT_FDCWD, path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0);
	if (fd < 0)
		return true;
	n = cv_sys3(SYS_read, fd, &head, sizeof(head));
	cv_sys1(SYS_close, fd);
	return n < (long)sizeof(head) || head.magic != CV_STATS_MAGIC || head.pid_ns == 0 || pid_ns == 0 || head.pid_ns == pid_ns;
}

static long create_at(const char *path)
{
	return cv_sys4(SYS_openat, AT_FDCWD, path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
}

/* The descriptor or -errno; path is set to the name that was taken. */
static long create_file(char *path, size_t size, const char *dir, int pid, uint32_t pid_ns)
{
	long fd;

	if (strlen(dir) + 32 > size)
		return -ENAMETOOLONG;
	cv_format(path, size, "%s/culvert.%d", dir, pid);
	fd = create_at(path);
	if (fd != -EEXIST)
		return fd;
	if (!is_stale(path, pid_ns)) {
		if (pid_ns == 0)
			return -EEXIST;
		cv_format(path, size, "%s/culvert.%d.%u", dir, pid, pid_ns);
		fd = create_at(path);
		if (fd != -EEXIST || !is_stale(path, pid_ns))
			return fd;
	}
	cv_sys3(SYS_unlinkat, AT_FDCWD, path, 0);
	return create_at(path);
}

/* A full file system is a signal at the first touch of a page, but an error when a system call touches it first: let the clock do it. */
static int back_header(struct cv_stats_segment *seg)
{
	return (int)cv_sys2(SYS_clock_gettime, CLOCK_MONOTONIC, seg->prog);
}

static int map_file(long fd, uint32_t rows, struct cv_stats_segment **seg)
{
	size_t size = offsetof(struct cv_stats_segment, row) + rows * sizeof(struct cv_row);
	long at, err = cv_sys2(SYS_ftruncate, fd, size);

	if (err < 0)
		return (int)err;
	at = cv_sys6(SYS_mmap, 0, (long)size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (at < 0 && at > -4096)
		return (int)at;
	*seg = (struct cv_stats_segment *)at;
	if (back_header(*seg) == 0)
		return 0;
	cv_sys2(SYS_munmap, at, size);
	return -ENOSPC;
}

int cv_stats_file_create(struct cv_stats_file *f, const char *dir, bool keep, uint32_t rows, struct cv_stats_segment **seg)
{
	uint32_t pid_ns = own_pid_ns(), allowed = rows_allowed(rows);
	char path[sizeof(f->path)];
	struct stat st;
	int pid = (int)cv_sys0(SYS_getpid), err;
	long fd;

	if (allowed == 0)
		return -EFBIG;
	fd = create_file(path, sizeof(path), dir ? dir : CV_STATS_DIR, pid, pid_ns);
	if (fd < 0)
		return (int)fd;
	/* The umask may hide it from operators who are not root; the same is in /proc/net/tcp for all to read. */
	cv_sys2(SYS_fchmod, fd, 0644);
	err = (int)cv_sys4(SYS_newfstatat, fd, "", &st, AT_EMPTY_PATH);
	if (err == 0)
		err = map_file(fd, allowed, seg);
	cv_sys1(SYS_close, fd);
	if (err) {
		cv_sys3(SYS_unlinkat, AT_FDCWD, path, 0);
		return err;
	}

	struct cv_stats_segment *s = *seg;

	memset(s->prog, 0, sizeof(s->prog));
	own_name(s->prog, sizeof(s->prog));
	s->version = CV_STATS_VERSION;
	s->header_size = offsetof(struct cv_stats_segment, row);
	s->row_size = sizeof(struct cv_row);
	s->rows = allowed;
	s->pid = (uint32_t)pid;
	s->uid = (uint32_t)cv_sys0(SYS_geteuid);
	s->start_time = own_start_time();
	s->pid_ns = pid_ns;
	s->flags = keep ? CV_STATS_KEPT : 0;
	/* Last: a reader that finds the magic finds the rest. */
	__atomic_store_n(&s->magic, CV_STATS_MAGIC, __ATOMIC_RELEASE);

	memcpy(f->path, path, sizeof(path));
	f->dev = st.st_dev;
	f->ino = st.st_ino;
	f->pid = pid;
	f->keep = keep;
	return 0;
}

void cv_stats_file_remove(struct cv_stats_file *f)
{
	struct stat st;

	if (!f->path[0] || f->keep || f->pid != (int)cv_sys0(SYS_getpid))
		return;
	/* After a chroot or a change of directory the name may stand for something else. */
	if (sys_stat(f->path, &st, AT_SYMLINK_NOFOLLOW) == 0 && st.st_dev == f->dev && st.st_ino == f->ino)
		cv_sys3(SYS_unlinkat, AT_FDCWD, f->path, 0);
	f->path[0] = '\0';
}
