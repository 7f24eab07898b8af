/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What culvert run must know before it starts a program: where it is, whether a preload reaches it, what LD_PRELOAD has to be.
 */
#ifndef CV_CLI_LAUNCH_H
#define CV_CLI_LAUNCH_H

#include "elf.h"
#include <limits.h>

/* Finds the file that execvp would take. 0, -ENOENT, or -EACCES when something is there but cannot be executed. */
int cli_launch_find(const char *cmd, const char *path_env, char out[PATH_MAX]);

enum cli_reach { CLI_REACH_YES, CLI_REACH_NO, CLI_REACH_BROKEN };

/*
 * Can a preload work in the program at path? NO: why says what is in the way, a sentence. BROKEN: it cannot be executed at all. For a
 * script its interpreter is looked at (`env` too), and elf is the interpreter's.
 */
enum cli_reach cli_launch_judge(const char *path, const char *path_env, struct cli_elf *elf, char *why, size_t size);

/* The value for LD_PRELOAD: the library first, but sanitizers' runtimes before it; `old` may be NULL. To be freed. */
char *cli_launch_preload(const char *lib, const char *old, const char *sanitizer);

#endif
