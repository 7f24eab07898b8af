/* SPDX-License-Identifier: Apache-2.0 */
#include "cli.h"
#include "../observe/stats.h"
#include "../policy/policy.h"
#include "../policy/words.h"
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

void cli_error(const char *fmt, ...)
{
	va_list ap;

	fflush(stdout);
	va_start(ap, fmt);
	fputs("culvert: ", stderr);
	vfprintf(stderr, fmt, ap);
	fputc('\n', stderr);
	va_end(ap);
}

void cli_unknown(const char *what, const char *word, const char *const *names, size_t n)
{
	struct cv_nearest near = CV_NEAREST(word);

	for (size_t i = 0; i < n; i++)
		cv_nearest_try(&near, names[i]);
	if (near.best)
		cli_error("unknown %s '%s'; did you mean '%s'?", what, word, near.best);
	else
		cli_error("unknown %s '%s'", what, word);
}

static void unknown_option(const char *word, const struct option *options)
{
	char given[64], best[64];
	struct cv_nearest near;
	size_t len = strcspn(word, "=");

	snprintf(given, sizeof(given), "%.*s", (int)len, word);
	near = CV_NEAREST(given + (strncmp(given, "--", 2) ? 0 : 2));
	for (; options->name; options++)
		cv_nearest_try(&near, options->name);
	snprintf(best, sizeof(best), "--%s", near.best ? near.best : "");
	cli_unknown("option", given, (const char *const[]){ best }, near.best ? 1 : 0);
}

int cli_getopt(int argc, char **argv, const char *optstring, const struct option *options, const char *command)
{
	int was = optind ? optind : 1, c;

	opterr = 0;
	c = getopt_long(argc, argv, optstring, options, NULL);
	if (c == ':') {
		cli_error("option '%s' needs a value", argv[optind - 1]);
	} else if (c == '?') {
		const char *word = optind > was ? argv[optind - 1] : argv[optind];

		if (word && strncmp(word, "--", 2) == 0 && optopt && strchr(word, '='))
			cli_error("option '%.*s' takes no value", (int)strcspn(word, "="), word);
		else if (word && strncmp(word, "--", 2) == 0)
			unknown_option(word, options);
		else
			cli_error("unknown option '-%c'", optopt);
	} else {
		return c;
	}
	fprintf(stderr, "culvert %s --help lists the options.\n", command);
	return '?';
}

bool cli_parse_pid(const char *s, uint32_t *pid)
{
	char *end;
	unsigned long v;

	if (*s < '0' || *s > '9')
		return false;
	v = strtoul(s, &end, 10);
	if (*end || v == 0 || v > INT32_MAX)
		return false;
	*pid = (uint32_t)v;
	return true;
}

void *cli_grow(void *p, size_t n, size_t size)
{
	void *q = reallocarray(p, n ? n : 1, size);

	if (!q) {
		cli_error("out of memory");
		exit(CLI_FAILED);
	}
	return q;
}

void *cli_alloc(size_t n, size_t size)
{
	return memset(cli_grow(NULL, n, size), 0, (n ? n : 1) * size);
}

static void note_problem(void *arg, const char *file, int line, const char *text)
{
	(void)file;
	(void)line;
	(void)text;
	*(bool *)arg = true;
}

const char *cli_stats_dir(const char *given)
{
	const struct cv_global *global;
	bool problem = false;

	if (given)
		return given;
	global = cv_policy_global(cv_policy_load("culvert", NULL, note_problem, &problem));
	if (problem)
		cli_error("the configuration has problems; culvert check shows them");
	return global->stats_dir && global->stats_dir[0] ? global->stats_dir : CV_STATS_DIR;
}
