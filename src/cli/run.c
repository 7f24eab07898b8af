/* SPDX-License-Identifier: Apache-2.0 */
#include "../policy/policy.h"
#include "../policy/schema.h"
#include "cli.h"
#include "launch.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#ifndef CV_LIBDIR
#define CV_LIBDIR "/usr/local/lib"
#endif

#define CANNOT_EXECUTE 126
#define NOT_FOUND 127

const char cli_run_help[] =
	"usage: culvert run [OPTION]... [--] COMMAND [ARGUMENT]...\n\n"
	"Starts COMMAND with libculvert.so preloaded. Its TCP connections to programs that run culvert too are moved to shared memory\n"
	"or RDMA; everything else stays as it is.\n\n"
	"  -P, --profile NAME  take the settings of this [profile NAME] (CULVERT_PROFILE; default: what the configuration says)\n"
	"  -c, --config FILE   read this configuration file too, last (CULVERT_CONFIG)\n"
	"  -l, --log LEVEL     none, error, warn, info or debug (CULVERT_LOG; default: warn)\n"
	"  -f, --force         start COMMAND even if culvert cannot work in it (it may in what COMMAND starts)\n"
	"  -h, --help          this text\n\n"
	"Exit status: that of COMMAND; 2 = usage, or COMMAND is beyond a preload (static, set-user-ID, file capabilities, another\n"
	"architecture, Go) and --force is not given; 126 = COMMAND cannot be executed; 127 = COMMAND is not found.\n";

static const struct option options[] = {
	{ "profile", required_argument, NULL, 'P' },
	{ "config", required_argument, NULL, 'c' },
	{ "log", required_argument, NULL, 'l' },
	{ "force", no_argument, NULL, 'f' },
	{ "help", no_argument, NULL, 'h' },
	{ 0 },
};

struct request {
	const char *profile, *log;
	char config[PATH_MAX];
	bool force;
};

static bool library_at(char out[PATH_MAX], const char *dir, const char *below)
{
	char path[PATH_MAX + 64];

	snprintf(path, sizeof(path), "%s%s/libculvert.so", dir, below);
	return access(path, R_OK) == 0 && realpath(path, out);
}

/* Beside the program first, so that a tree that was moved or only built works as it lies. */
static int find_library(char out[PATH_MAX])
{
	char dir[PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", dir, sizeof(dir) - 1);
	char *slash;

	dir[n > 0 ? n : 0] = '\0';
	slash = strrchr(dir, '/');
	if (slash)
		*slash = '\0';
	if (!(slash && (library_at(out, dir, "/../lib") || library_at(out, dir, "/.libs"))) && !library_at(out, CV_LIBDIR, "")) {
		cli_error("cannot find libculvert.so: not in %s/../lib, not in %s", dir, CV_LIBDIR);
		return -ENOENT;
	}
	/* The loader splits LD_PRELOAD at these and knows no quoting. */
	if (strpbrk(out, " :")) {
		cli_error("%s: the path has a blank or a colon in it, which LD_PRELOAD cannot express", out);
		return -EINVAL;
	}
	return 0;
}

struct problems {
	unsigned in_environment;
};

/* The program will complain of files itself; what was asked for on this command line is ours to refuse. */
static void on_problem(void *arg, const char *file, int line, const char *text)
{
	struct problems *p = arg;

	(void)line;
	if (file && strcmp(file, "environment") == 0) {
		cli_error("%s", text);
		p->in_environment++;
	}
}

static int check_policy(const char *program)
{
	struct problems problems = { 0 };
	const struct cv_policy *policy = cv_policy_load(program, NULL, on_problem, &problems);

	if (problems.in_environment)
		return CLI_USAGE;
	if (!cv_policy_any(policy))
		cli_error("note: the configuration leaves all connections of %s on TCP", program);
	return CLI_OK;
}

static void set_environment(const struct request *r)
{
	if (r->profile)
		setenv("CULVERT_PROFILE", r->profile, 1);
	if (r->log)
		setenv("CULVERT_LOG", r->log, 1);
	if (r->config[0])
		setenv("CULVERT_CONFIG", r->config, 1);
}

static int launch(const struct request *r, char **argv)
{
	char path[PATH_MAX], absolute[PATH_MAX], lib[PATH_MAX], why[PATH_MAX + 256];
	const char *path_env = getenv("PATH");
	struct cli_elf elf;
	enum cli_reach reach;
	int err = cli_launch_find(argv[0], path_env, path), ret;

	if (err) {
		cli_error("%s: %s", argv[0], err == -EACCES ? "cannot be executed" : "command not found");
		return err == -EACCES ? CANNOT_EXECUTE : NOT_FOUND;
	}
	reach = cli_launch_judge(path, path_env, &elf, why, sizeof(why));
	if (reach == CLI_REACH_BROKEN) {
		cli_error("%s", why);
		return CANNOT_EXECUTE;
	}
	if (reach == CLI_REACH_NO) {
		cli_error("%s", why);
		if (!r->force) {
			cli_error("not started; culvert run --force starts it all the same");
			return CLI_USAGE;
		}
		/* And preloads: what it starts in its turn may be within reach. */
	}
	if (find_library(lib) < 0)
		return CLI_USAGE;
	set_environment(r);
	ret = check_policy(realpath(path, absolute) ? absolute : path);
	if (ret)
		return ret;
	setenv("LD_PRELOAD", cli_launch_preload(lib, getenv("LD_PRELOAD"), elf.sanitizer), 1);
	/* execvp of a path: a text without #! goes to the shell, as it would from one. */
	execvp(path, argv);
	cli_error("%s: %m", path);
	return errno == ENOENT ? NOT_FOUND : CANNOT_EXECUTE;
}

static bool set_config(struct request *r, const char *file)
{
	if (realpath(file, r->config) && access(r->config, R_OK) == 0)
		return true;
	cli_error("%s: %m", file);
	return false;
}

static bool set_log(struct request *r, const char *level)
{
	for (size_t i = 0; i < CV_ARRAY_LEN(cv_level_names); i++) {
		if (strcmp(level, cv_level_names[i]) == 0) {
			r->log = level;
			return true;
		}
	}
	cli_unknown("log level", level, cv_level_names, CV_ARRAY_LEN(cv_level_names));
	return false;
}

int cli_run(int argc, char **argv)
{
	struct request r = { 0 };
	int c;

	while ((c = cli_getopt(argc, argv, "+:P:c:l:fh", options, "run")) != -1) {
		switch (c) {
		case 'P':
			r.profile = optarg;
			break;
		case 'c':
			if (!set_config(&r, optarg))
				return CLI_USAGE;
			break;
		case 'l':
			if (!set_log(&r, optarg))
				return CLI_USAGE;
			break;
		case 'f':
			r.force = true;
			break;
		case 'h':
			fputs(cli_run_help, stdout);
			return CLI_OK;
		default:
			return CLI_USAGE;
		}
	}
	if (optind == argc) {
		cli_error("run what? culvert run -- COMMAND [ARGUMENT]...");
		return CLI_USAGE;
	}
	return launch(&r, argv + optind);
}
