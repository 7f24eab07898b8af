/* SPDX-License-Identifier: Apache-2.0 */
/* Every test runs in a child: the module's state is the process's. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <sched.h>
#include <unistd.h>
#include <cmocka.h>

#include "observe/stats.h"

static char dir[64];

#define CHECK(cond) \
	do { \
		if (!(cond)) { \
			fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #cond); \
			_exit(1); \
		} \
	} while (0)

static void in_child(void (*body)(void))
{
	int status;
	pid_t pid = fork();

	if (pid == 0) {
		body();
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
		skip();
	assert_int_equal(status, 0);
}

static const char *path_of(pid_t pid)
{
	static char path[128];

	snprintf(path, sizeof(path), "%s/culvert.%d", dir, (int)pid);
	return path;
}

static int setup(void **state)
{
	(void)state;
	snprintf(dir, sizeof(dir), "/tmp/cv-stats-XXXXXX");
	return mkdtemp(dir) ? 0 : -1;
}

static int teardown(void **state)
{
	char cmd[100];

	(void)state;
	snprintf(cmd, sizeof(cmd), "rm -rf %s", dir);
	return system(cmd);
}

static uint64_t counter(enum cv_counter c)
{
	return atomic_load(&cv_stats->counters[c]);
}

static struct cv_stats_segment *read_file(pid_t pid)
{
	static union {
		struct cv_stats_segment seg;
		char bytes[sizeof(struct cv_stats_segment) + CV_STATS_ROWS * sizeof(struct cv_row)];
	} copy;
	int fd = open(path_of(pid), O_RDONLY);

	CHECK(fd >= 0);
	CHECK(pread(fd, &copy, sizeof(copy), 0) >= (ssize_t)sizeof(struct cv_stats_segment));
	close(fd);
	return &copy.seg;
}

static void use_before_open(void)
{
	struct cv_row *row = cv_row_get();

	cv_count(CV_CTR_OPENED, 2);
	cv_row_reason(row, CV_REASON_PEER_ABSENT);
	cv_row_add(&row->tx_tcp, 100);
	CHECK(cv_stats_open(dir, false) == 0);
	CHECK(counter(CV_CTR_OPENED) == 2);
	CHECK(atomic_load(&cv_stats->reasons[CV_REASON_PEER_ABSENT]) == 1);
	cv_row_put(row);
	CHECK(counter(CV_CTR_TX_TCP) == 100);
	CHECK(counter(CV_CTR_CLOSED) == 1);
	CHECK(read_file(getpid())->counters[CV_CTR_TX_TCP] == 100);
	cv_stats_close();
	CHECK(access(path_of(getpid()), F_OK) != 0);
}

static void round_trip(void)
{
	struct cv_row *row;
	struct cv_stats_segment *seg;
	struct stat st;
	int fds = dup(0);

	close(fds);
	umask(077);
	CHECK(cv_stats_open(dir, false) == 0);
	CHECK(cv_stats_open(dir, false) == 0);
	CHECK(dup(0) == fds); /* nothing stays open */
	close(fds);
	CHECK(stat(path_of(getpid()), &st) == 0);
	CHECK((st.st_mode & 07777) == 0644);
	CHECK(st.st_size == (off_t)(offsetof(struct cv_stats_segment, row) + CV_STATS_ROWS * sizeof(struct cv_row)));
	CHECK(st.st_blocks * 512 <= 64 * 1024); /* sparse */
	row = cv_row_get();
	row->family = 2;
	atomic_store(&row->fd, 9);
	cv_row_add(&row->tx_link, 1ull << 40);
	atomic_store(&row->state, CV_ROW_LINK);
	seg = read_file(getpid());
	CHECK(seg->magic == CV_STATS_MAGIC && seg->version == CV_STATS_VERSION);
	CHECK(seg->pid == (uint32_t)getpid() && seg->uid == geteuid() && seg->start_time > 0 && seg->pid_ns > 0);
	CHECK(strcmp(seg->prog, program_invocation_short_name) == 0);
	CHECK(seg->rows == CV_STATS_ROWS && seg->rows_used == 1);
	CHECK(seg->row[0].fd == 9 && seg->row[0].tx_link == 1ull << 40 && seg->row[0].state == CV_ROW_LINK);
	cv_row_put(row);
	seg = read_file(getpid());
	CHECK(seg->row[0].state == CV_ROW_FREE && seg->counters[CV_CTR_TX_LINK] == 1ull << 40);
	CHECK(cv_row_get() == row && atomic_load(&row->fd) == 0 && row->family == 0);
}

static void rows_run_out(void)
{
	static struct cv_row *rows[CV_STATS_ROWS + 2];

	CHECK(cv_stats_open(dir, false) == 0);
	for (unsigned i = 0; i < CV_STATS_ROWS + 2; i++)
		rows[i] = cv_row_get();
	CHECK(rows[0] == cv_stats->row && rows[CV_STATS_ROWS - 1] == cv_stats->row + CV_STATS_ROWS - 1);
	CHECK(rows[CV_STATS_ROWS] == rows[CV_STATS_ROWS + 1]); /* the scratch row */
	cv_row_add(&rows[CV_STATS_ROWS]->rx_link, 5);
	cv_row_put(rows[CV_STATS_ROWS]);
	cv_row_put(rows[CV_STATS_ROWS + 1]);
	CHECK(counter(CV_CTR_RX_LINK) == 5 && counter(CV_CTR_CLOSED) == 2);
	cv_row_put(rows[7000]);
	cv_row_put(rows[300]);
	CHECK(cv_row_get() == rows[300]);
	CHECK(cv_row_get() == rows[7000]);
	CHECK(cv_row_get() == rows[CV_STATS_ROWS]);
}

static void fallback_rows_run_out(void)
{
	struct cv_row *rows[100];

	for (int i = 0; i < 100; i++)
		rows[i] = cv_row_get();
	CHECK(rows[98] == rows[99] && rows[0] != rows[1]);
	for (int i = 0; i < 100; i++)
		cv_row_put(rows[i]);
	CHECK(counter(CV_CTR_CLOSED) == 100);
	CHECK(cv_row_get() == rows[0]);
}

static void errors(void)
{
	struct rlimit limit = { 100, 100 }, some = { 65536, RLIM_INFINITY };

	CHECK(cv_stats_open("/nonexistent/dir", false) == -ENOENT);
	CHECK(cv_stats_open("/proc", false) < 0);
	cv_count(CV_CTR_OPENED, 1);
	/* SIGXFSZ would end us here. */
	CHECK(setrlimit(RLIMIT_FSIZE, &some) == 0);
	CHECK(cv_stats_open(dir, false) == 0);
	CHECK(cv_stats->rows < CV_STATS_ROWS && cv_stats->rows > 400);
	for (unsigned i = 0; i < CV_STATS_ROWS; i++)
		memset(cv_row_get()->local_addr, 1, 16);
	cv_stats_close();
	cv_stats_forked();
	CHECK(setrlimit(RLIMIT_FSIZE, &limit) == 0);
	CHECK(cv_stats_open(dir, false) == -EFBIG);
}

static void stale_files(void)
{
	struct stat st;
	int fd = open(path_of(getpid()), O_CREAT | O_WRONLY, 0600);

	CHECK(fd >= 0 && write(fd, "old", 3) == 3);
	close(fd);
	CHECK(cv_stats_open(dir, false) == 0);
	CHECK(read_file(getpid())->pid == (uint32_t)getpid());
	cv_stats_close();
	/* Not through a link, and not over what is no file of ours. */
	cv_stats_forked();
	CHECK(symlink("/tmp/cv-not-made", path_of(getpid())) == 0);
	CHECK(cv_stats_open(dir, false) == 0);
	CHECK(access("/tmp/cv-not-made", F_OK) != 0);
	CHECK(lstat(path_of(getpid()), &st) == 0 && S_ISLNK(st.st_mode));
	cv_stats_close();
	unlink(path_of(getpid()));
	if (geteuid() != 0)
		return;
	cv_stats_forked();
	fd = open(path_of(getpid()), O_CREAT | O_WRONLY, 0600);
	CHECK(fd >= 0 && fchown(fd, 65534, 65534) == 0);
	CHECK(cv_stats_open(dir, false) == 0);
	CHECK(fstat(fd, &st) == 0 && st.st_nlink == 1); /* somebody else's: left alone */
	cv_stats_close();
	unlink(path_of(getpid()));
}

static void kept(void)
{
	CHECK(cv_stats_open(dir, true) == 0);
	cv_stats_close();
	CHECK(read_file(getpid())->flags & CV_STATS_KEPT);
}

static void removed_only_if_ours(void)
{
	int fd;

	CHECK(cv_stats_open(dir, false) == 0);
	if (vfork() == 0) {
		cv_stats_close();
		_exit(0);
	}
	CHECK(access(path_of(getpid()), F_OK) == 0);
	unlink(path_of(getpid()));
	fd = open(path_of(getpid()), O_CREAT | O_EXCL | O_WRONLY, 0600);
	CHECK(fd >= 0);
	cv_stats_close();
	CHECK(access(path_of(getpid()), F_OK) == 0);
}

static void forked(void)
{
	struct cv_row *row, *freed, *fresh;
	int status;
	pid_t parent = getpid(), pid;

	CHECK(cv_stats_open(dir, false) == 0);
	freed = cv_row_get();
	row = cv_row_get();
	row->local_port = 80;
	cv_row_add(&row->tx_link, 1000);
	atomic_store(&row->state, CV_ROW_LINK);
	cv_count(CV_CTR_OPENED, 2);
	cv_row_put(freed);
	pid = fork();
	if (pid == 0) {
		cv_stats_forked();
		CHECK(counter(CV_CTR_OPENED) == 0 && counter(CV_CTR_CLOSED) == 0);
		CHECK(row->local_port == 80 && atomic_load(&row->state) == CV_ROW_LINK && atomic_load(&row->tx_link) == 0);
		cv_row_add(&row->tx_link, 7);
		cv_count(CV_CTR_TRIED, 3);
		cv_stats_close();
		CHECK(access(path_of(parent), F_OK) == 0);
		CHECK(cv_stats_open(dir, false) == 0);
		CHECK(read_file(getpid())->pid == (uint32_t)getpid());
		CHECK(read_file(getpid())->counters[CV_CTR_TRIED] == 3);
		CHECK(read_file(getpid())->row[1].tx_link == 7 && read_file(getpid())->row[1].local_port == 80);
		fresh = cv_row_get();
		CHECK(fresh == freed);
		cv_row_add(&row->tx_link, 1);
		cv_row_put(row);
		CHECK(read_file(getpid())->counters[CV_CTR_TX_LINK] == 8);
		cv_stats_close();
		CHECK(access(path_of(getpid()), F_OK) != 0);
		_exit(0);
	}
	CHECK(waitpid(pid, &status, 0) == pid && status == 0);
	CHECK(atomic_load(&row->tx_link) == 1000 && atomic_load(&row->state) == CV_ROW_LINK);
	CHECK(read_file(parent)->counters[CV_CTR_TRIED] == 0 && read_file(parent)->counters[CV_CTR_CLOSED] == 1);
}

static void full_file_system(void)
{
	char fill[4096] = { 1 };
	struct cv_row *row = NULL;
	int fd;

	/* Where we may not mount there is nothing to test with. */
	if (unshare(CLONE_NEWNS) < 0 || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
	    mount("none", dir, "tmpfs", 0, "size=64k") < 0)
		_exit(77);
	CHECK(cv_stats_open(dir, false) == 0);
	for (unsigned i = 0; i < 2000; i++) {
		row = cv_row_get();
		memset(row->local_addr, 1, 16);
	}
	CHECK(row == cv_row_get()); /* scratch, and no SIGBUS */
	cv_stats_close();
	umount(dir);
	CHECK(mount("none", dir, "tmpfs", 0, "size=64k") == 0);
	cv_stats_forked();
	snprintf(fill, 100, "%s/fill", dir);
	fd = open(fill, O_CREAT | O_WRONLY, 0600);
	while (write(fd, fill, sizeof(fill)) > 0)
		;
	CHECK(cv_stats_open(dir, false) == -ENOSPC);
	CHECK(access(path_of(getpid()), F_OK) != 0);
}

static void *hammer(void *arg)
{
	unsigned long n = (unsigned long)arg;

	for (unsigned i = 0; i < 20000; i++) {
		struct cv_row *a = cv_row_get(), *b = cv_row_get();

		CHECK(a != b);
		/* A row that two threads hold would lose an addition. */
		for (unsigned k = 0; k < 3; k++)
			cv_row_add(&a->tx_link, n);
		cv_row_add(&b->rx_link, n);
		cv_row_put(a);
		cv_row_put(b);
	}
	return NULL;
}

static void threads(void)
{
	pthread_t t[4];

	CHECK(cv_stats_open(dir, false) == 0);
	for (unsigned long i = 0; i < 4; i++)
		CHECK(pthread_create(&t[i], NULL, hammer, (void *)(i + 1)) == 0);
	for (int i = 0; i < 4; i++)
		pthread_join(t[i], NULL);
	CHECK(counter(CV_CTR_TX_LINK) == 20000ull * 3 * 10 && counter(CV_CTR_RX_LINK) == 20000ull * 10);
	CHECK(counter(CV_CTR_CLOSED) == 160000 && atomic_load(&cv_stats->rows_used) <= 8);
}

#define IN_CHILD(body) \
	static void test_##body(void **state) \
	{ \
		(void)state; \
		in_child(body); \
	}

IN_CHILD(use_before_open)
IN_CHILD(round_trip)
IN_CHILD(rows_run_out)
IN_CHILD(fallback_rows_run_out)
IN_CHILD(errors)
IN_CHILD(stale_files)
IN_CHILD(kept)
IN_CHILD(removed_only_if_ours)
IN_CHILD(forked)
IN_CHILD(full_file_system)
IN_CHILD(threads)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_use_before_open),
		cmocka_unit_test(test_round_trip),
		cmocka_unit_test(test_rows_run_out),
		cmocka_unit_test(test_fallback_rows_run_out),
		cmocka_unit_test(test_errors),
		cmocka_unit_test(test_stale_files),
		cmocka_unit_test(test_kept),
		cmocka_unit_test(test_removed_only_if_ours),
		cmocka_unit_test(test_forked),
		cmocka_unit_test(test_full_file_system),
		cmocka_unit_test(test_threads),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
