/* SPDX-License-Identifier: Apache-2.0 */
#include "../base/sys.h"
#include "../observe/log.h"
#include "parse.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

/* strerror() may translate, and so allocate and open files. */
static const struct {
	int err;
	const char *text;
} causes[] = {
	{ ENOENT, "No such file or directory" },
	{ ENOTDIR, "Not a directory" },
	{ EACCES, "Permission denied" },
	{ EPERM, "Operation not permitted" },
	{ EISDIR, "Is a directory" },
	{ ELOOP, "Too many levels of symbolic links" },
	{ ENAMETOOLONG, "File name too long" },
	{ EIO, "Input/output error" },
	{ EMFILE, "Too many open files" },
	{ ENFILE, "Too many open files in system" },
	{ ENOMEM, "Cannot allocate memory" },
	{ ENXIO, "No such device or address" },
	{ ESPIPE, "Not a regular file" },
	{ EFBIG, "Larger than 1 MiB" },
};

static void report_cause(struct cv_loader *l, const char *path, int err)
{
	const char *cause = NULL;
	char text[128];

	for (size_t i = 0; i < CV_ARRAY_LEN(causes); i++)
		if (causes[i].err == err)
			cause = causes[i].text;
	if (cause)
		cv_format(text, sizeof(text), "cannot be read: %s", cause);
	else
		cv_format(text, sizeof(text), "cannot be read: error %d", err);
	l->reported = 0;
	cv_parse_report(l, path, 0, text);
}

static ssize_t read_all(int fd, char *buf, size_t size)
{
	size_t n = 0;
	long r;

	while (n < size) {
		r = cv_sys3(SYS_read, fd, buf + n, size - n);
		if (r == -EINTR)
			continue;
		if (r < 0)
			return r;
		if (!r)
			break;
		n += (size_t)r;
	}
	return (ssize_t)n;
}

/* 0 or -errno. A pipe or a socket would let whoever holds its other end stop every program that starts. */
static int check_kind(int fd)
{
	struct stat st;
	long r = cv_sys2(SYS_fstat, fd, &st);

	if (r < 0)
		return (int)r;
	if (S_ISDIR(st.st_mode))
		return -EISDIR;
	return S_ISREG(st.st_mode) || S_ISCHR(st.st_mode) ? 0 : -ESPIPE;
}

void cv_parse_file(struct cv_loader *l, const char *path, bool must)
{
	size_t size = CV_CONFIG_MAX + 1;
	const char *kept;
	ssize_t n = -ENOMEM;
	char *buf;
	int fd, err;

	fd = (int)cv_sys4(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, 0);
	if (fd < 0) {
		if (must || (fd != -ENOENT && fd != -ENOTDIR))
			report_cause(l, path, -fd);
		return;
	}
	err = check_kind(fd);
	if (err) {
		report_cause(l, path, -err);
		goto close_fd;
	}
	buf = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (buf != MAP_FAILED)
		n = read_all(fd, buf, size);
	kept = n < 0 ? NULL : cv_arena_copy(&l->policy->arena, path, strlen(path));
	if (n > (ssize_t)CV_CONFIG_MAX)
		report_cause(l, path, EFBIG);
	else if (n < 0 || !kept)
		report_cause(l, path, n < 0 ? (int)-n : ENOMEM);
	else
		cv_parse_text(l, kept, buf, (size_t)n);
	if (buf != MAP_FAILED)
		munmap(buf, size);
close_fd:
	cv_sys1(SYS_close, fd);
}
