/* SPDX-License-Identifier: Apache-2.0 */
/* All stats files of a directory: whose process lives, what may be tidied away, what must be said. */
#include "cli.h"
#include "proc.h"
#include "segment.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static void find_process(struct cli_segment *s, uint32_t own_ns)
{
	if (s->pid_ns == 0 || own_ns == 0 || s->pid_ns == own_ns)
		s->host_pid = cli_proc_alive(s->pid, s->start_time) ? s->pid : 0;
	else
		s->host_pid = cli_proc_find(s->pid_ns, s->pid, s->start_time);
	s->alive = s->host_pid != 0;
}

/*
 * What a process of ours that was killed left behind. Not what it kept on purpose, and not what may belong to a process in a namespace that
 * we cannot see.
 */
static void tidy(int dir_fd, const char *name, const struct cli_segment *s, uint32_t own_ns, const struct stat *seen)
{
	struct stat now;

	if (s->kept || s->uid != geteuid() || (s->pid_ns && own_ns && s->pid_ns != own_ns))
		return;
	/* The pid may have been given out again, and the file made anew, since we read it. */
	if (fstatat(dir_fd, name, &now, AT_SYMLINK_NOFOLLOW) == 0 && now.st_ino == seen->st_ino && now.st_dev == seen->st_dev)
		unlinkat(dir_fd, name, 0);
}

/* Is it to be listed? */
static bool examine(int dir_fd, const char *dir, const char *name, bool dead, struct cli_segments *all, struct cli_segment *s)
{
	static uint32_t own_ns;
	struct stat seen;
	char why[160];
	int err;

	own_ns = own_ns ? own_ns : cli_proc_pid_ns();
	if (fstatat(dir_fd, name, &seen, AT_SYMLINK_NOFOLLOW) < 0)
		return false;
	err = cli_segment_read(dir_fd, name, s, why, sizeof(why));
	if (err == -ENOENT)
		return false; /* its process ended just now */
	if (err) {
		cli_error("%s/%s: %s", dir, name, why);
		all->trouble = true;
		return false;
	}
	find_process(s, own_ns);
	if (!s->alive && !(dead && s->kept)) {
		tidy(dir_fd, name, s, own_ns, &seen);
	} else if (s->alive && !cli_proc_is_of(s->host_pid, s->uid)) {
		cli_error("%s/%s: belongs to uid %u, but process %u is not of that user; ignored", dir, name, s->uid, s->host_pid);
		all->trouble = true;
	} else {
		return true;
	}
	cli_segment_free(s);
	return false;
}

static int by_pid(const void *a, const void *b)
{
	const struct cli_segment *x = a, *y = b;

	if (x->pid != y->pid)
		return x->pid < y->pid ? -1 : 1;
	return x->pid_ns < y->pid_ns ? -1 : x->pid_ns > y->pid_ns;
}

int cli_segments_load(struct cli_segments *all, const char *dir, uint32_t pid, bool dead)
{
	DIR *d = opendir(dir);
	struct dirent *e;
	size_t room = 0;

	*all = (struct cli_segments){ 0 };
	if (!d) {
		cli_error("%s: %m", dir);
		return -errno;
	}
	while ((e = readdir(d))) {
		struct cli_segment s;
		uint32_t of;

		if (!cli_segment_name(e->d_name, &of) || (pid && of != pid) || !examine(dirfd(d), dir, e->d_name, dead, all, &s))
			continue;
		if (all->count == room) {
			room = room ? room * 2 : 16;
			all->list = cli_grow(all->list, room, sizeof(*all->list));
		}
		all->list[all->count++] = s;
	}
	closedir(d);
	if (all->count)
		qsort(all->list, all->count, sizeof(*all->list), by_pid);
	return 0;
}

void cli_segments_free(struct cli_segments *all)
{
	for (size_t i = 0; i < all->count; i++)
		cli_segment_free(&all->list[i]);
	free(all->list);
	*all = (struct cli_segments){ 0 };
}

int cli_segments_none(const struct cli_segments *all, const char *dir, uint32_t pid)
{
	if (all->trouble)
		return CLI_FAILED;
	if (pid && cli_proc_alive(pid, 0))
		cli_error("process %u has no streams under culvert (nothing in %s): it was started without it, or has opened no TCP connection yet",
			  pid, dir);
	else if (pid)
		cli_error("there is no process %u", pid);
	else
		cli_error("no process runs culvert here; start one with: culvert run -- COMMAND");
	return pid ? CLI_FAILED : CLI_OK;
}
