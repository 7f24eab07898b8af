/* SPDX-License-Identifier: Apache-2.0 */
#include "cli.h"
#include <string.h>

#ifndef PACKAGE_VERSION
#define PACKAGE_VERSION "unknown"
#endif

static const struct command {
	const char *name;
	int (*run)(int argc, char **argv);
	const char *help, *summary;
} commands[] = {
	{ "run", cli_run, cli_run_help, "start a program with culvert under it" },
	{ "ss", cli_ss, cli_ss_help, "list the streams of this host's culvert processes" },
	{ "stat", cli_stat, cli_stat_help, "counters, a process each and in sum" },
	{ "check", cli_check, cli_check_help, "check the configuration, or ask which rule decides" },
	{ "reasons", cli_reasons, cli_reasons_help, "why a stream may not be accelerated: the list" },
};

static void print_help(FILE *out)
{
	fprintf(out,
	       "usage: culvert COMMAND [OPTION]...\n\n"
	       "Moves the TCP streams of unmodified programs to shared memory or RDMA.\n\n");
	for (size_t i = 0; i < CV_ARRAY_LEN(commands); i++)
		fprintf(out, "  %-8s  %s\n", commands[i].name, commands[i].summary);
	fprintf(out,
	       "\n  -h, --help     this text; culvert COMMAND --help tells more\n"
	       "  -V, --version  print the version\n\n"
	       "Start here:\n"
	       "  culvert run -- redis-server     and the same for its clients\n"
	       "  culvert ss                      what is accelerated, and why not\n");
}

static const struct command *find(const char *name)
{
	for (size_t i = 0; i < CV_ARRAY_LEN(commands); i++)
		if (strcmp(name, commands[i].name) == 0)
			return &commands[i];
	return NULL;
}

static int unknown(const char *word)
{
	const char *names[CV_ARRAY_LEN(commands) + 2] = { "--help", "--version" };

	for (size_t i = 0; i < CV_ARRAY_LEN(commands); i++)
		names[i + 2] = commands[i].name;
	cli_unknown(word[0] == '-' ? "option" : "command", word, names, CV_ARRAY_LEN(names));
	fprintf(stderr, "culvert --help lists the commands.\n");
	return CLI_USAGE;
}

static bool is_help(const char *s)
{
	return strcmp(s, "--help") == 0 || strcmp(s, "-h") == 0;
}

static int dispatch(int argc, char **argv)
{
	const struct command *c;

	if (argc < 2) {
		print_help(stderr);
		return CLI_USAGE;
	}
	if (is_help(argv[1]) || (strcmp(argv[1], "help") == 0 && argc == 2)) {
		print_help(stdout);
		return CLI_OK;
	}
	if (strcmp(argv[1], "--version") == 0 || strcmp(argv[1], "-V") == 0) {
		printf("culvert %s\n", PACKAGE_VERSION);
		return CLI_OK;
	}
	if (strcmp(argv[1], "help") == 0) {
		c = find(argv[2]);
		if (!c)
			return unknown(argv[2]);
		fputs(c->help, stdout);
		return CLI_OK;
	}
	c = find(argv[1]);
	if (!c)
		return unknown(argv[1]);
	if (argc == 3 && is_help(argv[2])) {
		fputs(c->help, stdout);
		return CLI_OK;
	}
	return c->run(argc - 1, argv + 1);
}

int main(int argc, char **argv)
{
	int ret = dispatch(argc, argv);

	/* A full disk behind stdout must not look like success. */
	if (fflush(stdout) != 0 || ferror(stdout)) {
		cli_error("cannot write the output: %m");
		return ret ? ret : CLI_FAILED;
	}
	return ret;
}
