/* SPDX-License-Identifier: Apache-2.0 */
#include "cli.h"
#include "format.h"
#include "segment.h"
#include <inttypes.h>
#include <string.h>

const char cli_stat_help[] =
	"usage: culvert stat [OPTION]...\n\n"
	"Shows what culvert has counted, for each process since it started, and in sum. Bytes include those of streams still open.\n\n"
	"  -j, --json       one JSON object (culvert-stat(1) documents its names)\n"
	"  -p, --pid PID    only this process\n"
	"  -d, --dir DIR    where the stats files are (default: stats-dir of the configuration, else /dev/shm)\n"
	"  -k, --keep-dead  also processes that ended and whose files were kept (stats-keep = yes)\n"
	"  -h, --help       this text\n\n"
	"Counters are of connections, calls and bytes; they never decrease.\n"
	"Exit status: 0; 1 = a file could not be read, or no such process; 2 = usage.\n";

static const struct option options[] = {
	{ "json", no_argument, NULL, 'j' },
	{ "pid", required_argument, NULL, 'p' },
	{ "dir", required_argument, NULL, 'd' },
	{ "keep-dead", no_argument, NULL, 'k' },
	{ "help", no_argument, NULL, 'h' },
	{ 0 },
};

static const struct {
	const char *name, *help;
} counters[] = {
#define X(id, name, help) { name, help },
	CV_COUNTERS(X)
#undef X
};

/* What is shown for one process and, added up, for all. */
struct figures {
	uint64_t counters[CV_CTR_COUNT], totals[CV_CTR_COUNT], reasons[CV_REASON_COUNT];
	uint64_t open, accelerated;
};

static void add(struct figures *f, const struct cli_segment *s)
{
	for (unsigned i = 0; i < CV_CTR_COUNT; i++) {
		f->counters[i] += s->counters[i];
		f->totals[i] += cli_segment_total(s, i);
	}
	for (unsigned i = 0; i < CV_REASON_COUNT; i++)
		f->reasons[i] += s->reasons[i];
	f->open += s->row_count;
	for (size_t i = 0; i < s->row_count; i++)
		f->accelerated += s->rows[i].state == CV_ROW_LINK;
}

static void json_figures(struct cli_json *j, const struct figures *f)
{
	cli_json_open(j, "streams", '{');
	cli_json_u64(j, "open", f->open);
	cli_json_u64(j, "accelerated", f->accelerated);
	cli_json_close(j, '}');
	cli_json_open(j, "counters", '{');
	for (unsigned i = 0; i < CV_CTR_COUNT; i++)
		cli_json_u64(j, counters[i].name, f->counters[i]);
	cli_json_close(j, '}');
	cli_json_open(j, "totals", '{');
	for (unsigned i = 0; i < CV_CTR_COUNT; i++)
		cli_json_u64(j, counters[i].name, f->totals[i]);
	cli_json_close(j, '}');
	cli_json_open(j, "reasons", '{');
	for (unsigned i = CV_REASON_NONE + 1; i < CV_REASON_COUNT; i++)
		cli_json_u64(j, cv_reason_name(i), f->reasons[i]);
	cli_json_close(j, '}');
}

static void print_json(const struct cli_segments *all, const struct figures *sum, const char *dir)
{
	struct cli_json j = { .out = stdout };

	cli_json_open(&j, NULL, '{');
	cli_json_u64(&j, "version", 1);
	cli_json_str(&j, "dir", dir);
	cli_json_open(&j, "processes", '[');
	for (size_t i = 0; i < all->count; i++) {
		const struct cli_segment *s = &all->list[i];
		struct figures f = { 0 };

		add(&f, s);
		cli_json_open(&j, NULL, '{');
		cli_json_u64(&j, "pid", s->pid);
		cli_json_str(&j, "prog", s->prog);
		cli_json_u64(&j, "uid", s->uid);
		cli_json_bool(&j, "alive", s->alive);
		json_figures(&j, &f);
		cli_json_close(&j, '}');
	}
	cli_json_close(&j, ']');
	cli_json_open(&j, "sum", '{');
	cli_json_u64(&j, "processes", all->count);
	json_figures(&j, sum);
	cli_json_close(&j, '}');
	cli_json_close(&j, '}');
}

static bool is_bytes(unsigned c)
{
	return c == CV_CTR_TX_LINK || c == CV_CTR_RX_LINK || c == CV_CTR_TX_TCP || c == CV_CTR_RX_TCP;
}

static void print_figures(const struct figures *f)
{
	char buf[16], human[32];

	for (unsigned i = 0; i < CV_CTR_COUNT; i++) {
		uint64_t v = f->totals[i];

		/* The help says "by closed streams", which is how it is counted; what is shown has the open ones in it. */
		int len = (int)strlen(counters[i].help) - (is_bytes(i) ? (int)strlen(" by closed streams") : 0);

		human[0] = '\0';
		if (is_bytes(i) && v >= 1024)
			snprintf(human, sizeof(human), " (%s)", cli_bytes(buf, v));
		printf("  %-18s %16" PRIu64 "  %.*s%s\n", counters[i].name, v, len, counters[i].help, human);
	}
	for (unsigned i = 0, first = 1; i < CV_REASON_COUNT; i++) {
		if (f->reasons[i] == 0 || i == CV_REASON_NONE)
			continue;
		if (first)
			printf("  why streams were not, or no longer, accelerated:\n");
		first = 0;
		printf("  %-18s %16" PRIu64 "  %s\n", cv_reason_name(i), f->reasons[i], cv_reason_text(i));
	}
}

static void print_text(const struct cli_segments *all, const struct figures *sum)
{
	for (size_t i = 0; i < all->count; i++) {
		const struct cli_segment *s = &all->list[i];
		struct figures f = { 0 };

		add(&f, s);
		printf("%s%s/%u%s: %" PRIu64 " streams open%s, %" PRIu64 " of them accelerated\n", i ? "\n" : "", s->prog, s->pid,
		       s->alive ? "" : " (ended)", f.open, s->alive ? "" : " at its end", f.accelerated);
		print_figures(&f);
	}
	if (all->count > 1) {
		printf("\nsum of %zu processes: %" PRIu64 " streams open, %" PRIu64 " of them accelerated\n", all->count, sum->open,
		       sum->accelerated);
		print_figures(sum);
	}
}

int cli_stat(int argc, char **argv)
{
	struct figures sum = { 0 };
	struct cli_segments all;
	const char *dir = NULL;
	bool json = false, dead = false;
	uint32_t pid = 0;
	int c, ret;

	while ((c = cli_getopt(argc, argv, ":jp:d:kh", options, "stat")) != -1) {
		switch (c) {
		case 'j':
			json = true;
			break;
		case 'p':
			if (!cli_parse_pid(optarg, &pid)) {
				cli_error("'%s' is not a process id", optarg);
				return CLI_USAGE;
			}
			break;
		case 'd':
			dir = optarg;
			break;
		case 'k':
			dead = true;
			break;
		case 'h':
			fputs(cli_stat_help, stdout);
			return CLI_OK;
		default:
			return CLI_USAGE;
		}
	}
	if (optind < argc) {
		cli_error("stat takes no '%s'; a process is given with -p PID", argv[optind]);
		return CLI_USAGE;
	}
	dir = cli_stats_dir(dir);
	if (cli_segments_load(&all, dir, pid, dead) < 0)
		return CLI_FAILED;
	for (size_t i = 0; i < all.count; i++)
		add(&sum, &all.list[i]);
	if (json)
		print_json(&all, &sum, dir);
	else
		print_text(&all, &sum);
	ret = all.trouble ? CLI_FAILED : CLI_OK;
	if (all.count == 0 && (!json || pid))
		ret = cli_segments_none(&all, dir, pid);
	cli_segments_free(&all);
	return ret;
}
