/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The culvert program: one file a command. A plain libc program in which nothing is interposed; it may allocate and use stdio.
 *
 * A command gets its own argv (argv[0] is its name) and returns the exit status: 0; 1 = done, but something was wrong; 2 = usage.
 */
#ifndef CV_CLI_H
#define CV_CLI_H

#include "../base/base.h"
#include <getopt.h>
#include <stdio.h>

enum { CLI_OK, CLI_FAILED, CLI_USAGE };

int cli_ss(int argc, char **argv);
int cli_stat(int argc, char **argv);
int cli_run(int argc, char **argv);
int cli_check(int argc, char **argv);
int cli_reasons(int argc, char **argv);

extern const char cli_ss_help[], cli_stat_help[], cli_run_help[], cli_check_help[], cli_reasons_help[];

/* "culvert: text\n" on stderr. */
void cli_error(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* getopt_long, but says itself what is wrong, with the nearest right name, and then returns '?'. Start optstring with "+:" or ":". */
int cli_getopt(int argc, char **argv, const char *optstring, const struct option *options, const char *command);
/* Says that `word` is no `what`, with the nearest of the n names if one is near. */
void cli_unknown(const char *what, const char *word, const char *const *names, size_t n);
/* A positive decimal number that is nothing else. */
bool cli_parse_pid(const char *s, uint32_t *pid);

/* Memory or the end of the program. */
void *cli_alloc(size_t n, size_t size);
void *cli_grow(void *p, size_t n, size_t size);

/* The directory of the stats files: `given`, or what the policy says. In static memory or given's. */
const char *cli_stats_dir(const char *given);

#endif
