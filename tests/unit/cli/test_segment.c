/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "cli/segment.h"

#define ROWS 40
#define SIZE (offsetof(struct cv_stats_segment, row) + ROWS * sizeof(struct cv_row))

static union {
	struct cv_stats_segment seg;
	char bytes[SIZE];
} image;

static char dir[64], why[160];
static int dir_fd;
static struct cli_segment got;

static int setup(void **state)
{
	(void)state;
	snprintf(dir, sizeof(dir), "/tmp/cv-segment-XXXXXX");
	if (!mkdtemp(dir))
		return -1;
	dir_fd = open(dir, O_RDONLY | O_DIRECTORY);
	return dir_fd < 0;
}

static int teardown(void **state)
{
	char cmd[100];

	(void)state;
	snprintf(cmd, sizeof(cmd), "rm -rf %s", dir);
	return system(cmd);
}

/* A good file of process 7; the tests spoil it. */
static void good(void)
{
	memset(&image, 0, sizeof(image));
	image.seg.magic = CV_STATS_MAGIC;
	image.seg.version = CV_STATS_VERSION;
	image.seg.header_size = offsetof(struct cv_stats_segment, row);
	image.seg.row_size = sizeof(struct cv_row);
	image.seg.rows = ROWS;
	image.seg.rows_used = 3;
	image.seg.pid = 7;
	strcpy(image.seg.prog, "prog");
	image.seg.counters[CV_CTR_TX_LINK] = 1000;
	image.seg.reasons[CV_REASON_OOB] = 5;
	image.seg.row[0].state = CV_ROW_LINK;
	image.seg.row[0].tx_link = 23;
	image.seg.row[0].family = AF_INET6;
	image.seg.row[0].local_port = htons(80);
	image.seg.row[2].state = CV_ROW_TCP;
	image.seg.row[2].tx_link = 100;
	image.seg.row[2].rx_tcp = 9;
	image.seg.row[2].reason = CV_REASON_SPILL;
}

static void put_at(const char *name, size_t size)
{
	int fd;

	unlinkat(dir_fd, name, 0);
	fd = openat(dir_fd, name, O_CREAT | O_WRONLY | O_TRUNC, 0644);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, image.bytes, size), size);
	close(fd);
}

static int load(size_t size)
{
	put_at("culvert.7", size);
	why[0] = '\0';
	return cli_segment_read(dir_fd, "culvert.7", &got, why, sizeof(why));
}

static void test_good(void **state)
{
	(void)state;
	good();
	assert_int_equal(load(SIZE), 0);
	assert_int_equal(got.pid, 7);
	assert_string_equal(got.prog, "prog");
	assert_int_equal(got.row_count, 2);
	assert_int_equal(got.rows[0].local_port, 80);
	assert_int_equal(got.rows[1].reason, CV_REASON_SPILL);
	assert_int_equal(got.reasons[CV_REASON_OOB], 5);
	assert_int_equal(cli_segment_total(&got, CV_CTR_TX_LINK), 1123);
	assert_int_equal(cli_segment_total(&got, CV_CTR_RX_TCP), 9);
	assert_int_equal(cli_segment_total(&got, CV_CTR_OPENED), 0);
	cli_segment_free(&got);
}

static void test_truncated(void **state)
{
	(void)state;
	good();
	for (size_t size = 0; size < SIZE; size += size < 600 ? 1 : 97) {
		assert_int_equal(load(size), -EBADMSG + (size < offsetof(struct cv_stats_segment, row) ? EBADMSG - ENODATA : 0));
		assert_true(strlen(why) > 5);
	}
}

static void test_headers_that_lie(void **state)
{
	(void)state;
	good();
	image.seg.magic++;
	assert_int_equal(load(SIZE), -EBADMSG);
	good();
	image.seg.version = 2;
	assert_int_equal(load(SIZE), -EPROTO);
	assert_non_null(strstr(why, "another version"));
	good();
	image.seg.row_size = 0;
	assert_int_equal(load(SIZE), -EPROTO);
	good();
	image.seg.header_size = 0xfffffff0;
	assert_int_equal(load(SIZE), -EPROTO);
	good();
	image.seg.rows = UINT32_MAX;
	image.seg.rows_used = UINT32_MAX;
	assert_int_equal(load(SIZE), -EBADMSG);
	good();
	image.seg.rows = 1u << 20;
	assert_int_equal(load(SIZE), -EBADMSG);
	good();
	image.seg.rows_used = ROWS + 1;
	assert_int_equal(load(SIZE), -EBADMSG);
	good();
	image.seg.pid = 8;
	assert_int_equal(load(SIZE), -EBADMSG);
}

static void test_rows_that_lie(void **state)
{
	(void)state;
	good();
	image.seg.rows_used = ROWS;
	for (int i = 0; i < ROWS; i++)
		memset(&image.seg.row[i], 0xff, sizeof(image.seg.row[i]));
	image.seg.row[5].state = CV_ROW_LINK;
	memset(image.seg.prog, 0xff, sizeof(image.seg.prog));
	strcpy(image.seg.prog, "\033[2J evil\"");
	image.seg.prog[63] = 'x';
	assert_int_equal(load(SIZE), 0);
	assert_int_equal(got.row_count, 1);
	assert_true(got.rows[0].role <= 2);
	assert_true(got.rows[0].transport <= CV_ROW_T_RDMA);
	assert_string_equal(got.prog, "?[2J?evil\"");
	cli_segment_free(&got);
	good();
	memset(image.seg.prog, 'p', sizeof(image.seg.prog));
	assert_int_equal(load(SIZE), 0);
	assert_int_equal(strlen(got.prog), 63);
	cli_segment_free(&got);
}

static void test_random_damage(void **state)
{
	unsigned seed = 1;

	(void)state;
	for (int i = 0; i < 2000; i++) {
		good();
		for (int k = 0; k < 4; k++)
			image.bytes[rand_r(&seed) % (k < 3 ? 48 : SIZE)] = (char)rand_r(&seed);
		if (load(SIZE) == 0)
			cli_segment_free(&got);
		else
			assert_true(strlen(why) > 5);
	}
}

static void test_not_a_file(void **state)
{
	(void)state;
	unlinkat(dir_fd, "culvert.7", 0);
	assert_int_equal(symlinkat("/etc/passwd", dir_fd, "culvert.7"), 0);
	assert_int_equal(cli_segment_read(dir_fd, "culvert.7", &got, why, sizeof(why)), -ELOOP);
	unlinkat(dir_fd, "culvert.7", 0);
	assert_int_equal(mkfifoat(dir_fd, "culvert.7", 0644), 0);
	assert_int_equal(cli_segment_read(dir_fd, "culvert.7", &got, why, sizeof(why)), -EBADMSG);
	unlinkat(dir_fd, "culvert.7", 0);
	assert_int_equal(mkdirat(dir_fd, "culvert.7", 0755), 0);
	assert_int_equal(cli_segment_read(dir_fd, "culvert.7", &got, why, sizeof(why)), -EBADMSG);
	unlinkat(dir_fd, "culvert.7", AT_REMOVEDIR);
	assert_int_equal(cli_segment_read(dir_fd, "culvert.7", &got, why, sizeof(why)), -ENOENT);
}

static void test_names(void **state)
{
	uint32_t pid;

	(void)state;
	assert_true(cli_segment_name("culvert.12", &pid));
	assert_int_equal(pid, 12);
	assert_true(cli_segment_name("culvert.12.4026531836", &pid));
	assert_false(cli_segment_name("culvert.", &pid));
	assert_false(cli_segment_name("culvert.0", &pid));
	assert_false(cli_segment_name("culvert.x", &pid));
	assert_false(cli_segment_name("culvert.1x", &pid));
	assert_false(cli_segment_name("culvert.1.", &pid));
	assert_false(cli_segment_name("culvert.1.2x", &pid));
	assert_false(cli_segment_name("culvert.99999999999999999999", &pid));
	assert_false(cli_segment_name("xculvert.1", &pid));
}

/* The library's writer and this reader agree; then what happens when the process is gone. */
static void test_writer_to_reader(void **state)
{
	struct cli_segments all;
	int up[2], down[2];
	char c, name[32];
	pid_t pid;

	(void)state;
	assert_int_equal(pipe(up), 0);
	assert_int_equal(pipe(down), 0);
	pid = fork();
	if (pid == 0) {
		struct cv_row *row;

		close(down[1]);
		if (cv_stats_open(dir, false))
			_exit(1);
		row = cv_row_get();
		atomic_store(&row->fd, 3);
		cv_row_add(&row->rx_link, 77);
		atomic_store(&row->state, CV_ROW_LINK);
		cv_count(CV_CTR_UPGRADED, 1);
		if (write(up[1], "x", 1) != 1 || read(down[0], &c, 1) != 0)
			_exit(1);
		_exit(0);
	}
	assert_int_equal(read(up[0], &c, 1), 1);
	assert_int_equal(cli_segments_load(&all, dir, (uint32_t)pid, false), 0);
	assert_int_equal(all.count, 1);
	assert_true(all.list[0].alive);
	assert_int_equal(all.list[0].pid, pid);
	assert_int_equal(all.list[0].host_pid, pid);
	assert_int_equal(all.list[0].counters[CV_CTR_UPGRADED], 1);
	assert_int_equal(cli_segment_total(&all.list[0], CV_CTR_RX_LINK), 77);
	cli_segments_free(&all);

	/* Dead: not listed, even if asked for the dead, and its file is tidied away. */
	close(down[1]);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	snprintf(name, sizeof(name), "culvert.%d", pid);
	assert_int_equal(faccessat(dir_fd, name, F_OK, 0), 0);
	assert_int_equal(cli_segments_load(&all, dir, 0, true), 0);
	assert_int_equal(all.count, 0);
	assert_int_not_equal(faccessat(dir_fd, name, F_OK, 0), 0);
	cli_segments_free(&all);
}

static void test_dead_but_kept(void **state)
{
	struct cli_segments all;
	pid_t pid = fork();
	char name[32];

	(void)state;
	if (pid == 0)
		_exit(cv_stats_open(dir, true));
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	assert_int_equal(cli_segments_load(&all, dir, 0, false), 0);
	assert_int_equal(all.count, 0);
	assert_int_equal(cli_segments_load(&all, dir, 0, true), 0);
	assert_int_equal(all.count, 1);
	assert_false(all.list[0].alive);
	cli_segments_free(&all);
	snprintf(name, sizeof(name), "culvert.%d", pid);
	unlinkat(dir_fd, name, 0);
}

/* A pid that was given out again is somebody else: the start time tells. */
static void test_recycled_pid(void **state)
{
	struct cli_segments all;
	char name[32];

	(void)state;
	good();
	image.seg.pid = (uint32_t)getpid();
	image.seg.start_time = 1;
	snprintf(name, sizeof(name), "culvert.%d", getpid());
	put_at(name, SIZE);
	assert_int_equal(cli_segments_load(&all, dir, (uint32_t)getpid(), true), 0);
	assert_int_equal(all.count, 0);
	assert_int_not_equal(faccessat(dir_fd, name, F_OK, 0), 0);
	cli_segments_free(&all);
}

/* Somebody plants a file in the name of another user's process. */
static void test_planted(void **state)
{
	struct cli_segments all;
	char name[32];

	(void)state;
	if (geteuid() != 0)
		skip();
	good();
	image.seg.pid = (uint32_t)getpid();
	snprintf(name, sizeof(name), "culvert.%d", getpid());
	put_at(name, SIZE);
	assert_int_equal(fchownat(dir_fd, name, 65534, 65534, 0), 0);
	assert_int_equal(cli_segments_load(&all, dir, (uint32_t)getpid(), true), 0);
	assert_int_equal(all.count, 0);
	assert_true(all.trouble);
	assert_int_equal(faccessat(dir_fd, name, F_OK, 0), 0);
	cli_segments_free(&all);
	unlinkat(dir_fd, name, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_good),
		cmocka_unit_test(test_truncated),
		cmocka_unit_test(test_headers_that_lie),
		cmocka_unit_test(test_rows_that_lie),
		cmocka_unit_test(test_random_damage),
		cmocka_unit_test(test_not_a_file),
		cmocka_unit_test(test_names),
		cmocka_unit_test(test_writer_to_reader),
		cmocka_unit_test(test_dead_but_kept),
		cmocka_unit_test(test_recycled_pid),
		cmocka_unit_test(test_planted),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
