/* SPDX-License-Identifier: Apache-2.0 */
#include "launch.h"
#include "cli.h"
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#define SCRIPT_DEPTH 5 /* as many as the kernel follows */

static int check_file(const char *path)
{
	struct stat st;

	if (stat(path, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode) || access(path, X_OK) < 0)
		return -EACCES;
	return 0;
}

int cli_launch_find(const char *cmd, const char *path_env, char out[PATH_MAX])
{
	int ret = -ENOENT, err;

	if (!*cmd || strlen(cmd) >= PATH_MAX)
		return -ENOENT;
	if (strchr(cmd, '/')) {
		strcpy(out, cmd);
		err = check_file(cmd);
		return err == 0 || err == -EACCES ? err : -ENOENT;
	}
	for (const char *p = path_env ? path_env : "/bin:/usr/bin";; p++) {
		int len = (int)strcspn(p, ":");
		int n = snprintf(out, PATH_MAX, "%.*s%s%s", len, p, len ? "/" : "./", cmd);

		err = n < PATH_MAX ? check_file(out) : -ENOENT;
		if (err == 0)
			return 0;
		if (err == -EACCES)
			ret = err;
		p += len;
		if (!*p)
			return ret;
	}
}

/* The word of `env`'s arguments that is the program. The kernel passes everything after #! as one argument, blanks and all; -S splits it. */
static bool env_target(const char *args, char out[PATH_MAX])
{
	while (args) {
		size_t len;

		args += strspn(args, " \t");
		len = strcspn(args, " \t");
		if (len == 0 || len >= PATH_MAX)
			return false;
		if (strncmp(args, "-S", 2) == 0 && len > 2) {
			args += 2;
		} else if (args[0] == '-' || memchr(args, '=', len)) {
			args += len;
		} else {
			memcpy(out, args, len);
			out[len] = '\0';
			return true;
		}
	}
	return false;
}

/* The interpreter of a script into out; false when it is none. A text without #! is run by the shell, as execvp does. */
static bool script_interpreter(int fd, const char *path_env, char out[PATH_MAX])
{
	char line[256], target[PATH_MAX];
	ssize_t n = pread(fd, line, sizeof(line) - 1, 0);
	const char *base;
	char *start, *args;

	if (n < 0)
		return false;
	line[n] = '\0';
	if (strncmp(line, "#!", 2) != 0) {
		strcpy(out, "/bin/sh");
		return memchr(line, '\0', (size_t)n) == NULL;
	}
	line[strcspn(line, "\n")] = '\0';
	start = line + 2 + strspn(line + 2, " \t");
	args = start + strcspn(start, " \t");
	if (args == start)
		return false;
	if (*args)
		*args++ = '\0';
	else
		args = NULL;
	strcpy(out, start);
	base = strrchr(start, '/');
	if (args && strcmp(base ? base + 1 : start, "env") == 0 && env_target(args, target))
		cli_launch_find(target, path_env, out);
	return true;
}

static bool refuse(char *why, size_t size, const char *path, const char *text)
{
	snprintf(why, size, "%s %s", path, text);
	return false;
}

static bool privileges_allow(const char *path, int fd, char *why, size_t size)
{
	struct stat st;

	if (fstat(fd, &st) == 0 && (st.st_mode & S_ISUID))
		return refuse(why, size, path, "is set-user-ID: the loader does not preload from a path into such programs");
	if (fstat(fd, &st) == 0 && (st.st_mode & (S_ISGID | S_IXGRP)) == (S_ISGID | S_IXGRP))
		return refuse(why, size, path, "is set-group-ID: the loader does not preload from a path into such programs");
	if (fgetxattr(fd, "security.capability", NULL, 0) > 0)
		return refuse(why, size, path, "has file capabilities: the loader does not preload from a path into such programs");
	return true;
}

static bool elf_allows(const char *path, const struct cli_elf *e, char *why, size_t size)
{
	const char *machine = cli_elf_machine(e->machine);
	const char *base = strrchr(e->interp, '/');

	if (e->foreign) {
		snprintf(why, size, "%s is built for %s%s, and libculvert.so is not", path, machine ? machine : "another machine",
			 e->bits == 32 && !machine ? " (32 bits)" : e->bits == 32 && strcmp(machine, "x86-64") == 0 ? " with 32-bit pointers" : "");
		return false;
	}
	if (e->go && e->is_static)
		return refuse(why, size, path, "is a Go program, statically linked: nothing can be preloaded into it");
	if (e->go)
		return refuse(why, size, path, "is a Go program: it makes its system calls without libc, where culvert cannot see them");
	if (e->is_static)
		return refuse(why, size, path, "is statically linked: nothing can be preloaded into it");
#ifdef __GLIBC__
	if (base && strncmp(base, "/ld-musl", 8) == 0)
		return refuse(why, size, path, "is linked with musl, and libculvert.so with glibc");
#endif
	return true;
}

static enum cli_reach judge(const char *path, const char *path_env, struct cli_elf *elf, char *why, size_t size, int depth)
{
	char interpreter[PATH_MAX];
	enum cli_reach ret = CLI_REACH_NO;
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK), err;

	memset(elf, 0, sizeof(*elf));
	if (fd < 0) {
		/* A program may be executable and not readable: then nothing is known against it, and the kernel forbids the preload or does not. */
		return errno == EACCES && access(path, X_OK) == 0 ? CLI_REACH_YES : CLI_REACH_BROKEN;
	}
	err = cli_elf_read(fd, elf);
	if (err == 0) {
		ret = privileges_allow(path, fd, why, size) && elf_allows(path, elf, why, size) ? CLI_REACH_YES : CLI_REACH_NO;
	} else if (err == -ENOEXEC && depth < SCRIPT_DEPTH && script_interpreter(fd, path_env, interpreter)) {
		err = check_file(interpreter);
		snprintf(why, size, "%s needs the interpreter %.200s: %s", path, interpreter, strerror(-err));
		ret = err ? CLI_REACH_BROKEN : judge(interpreter, path_env, elf, why, size, depth + 1);
	} else {
		refuse(why, size, path, err == -ENOEXEC ? "is neither an ELF program nor a script" : "is a damaged ELF file");
		ret = CLI_REACH_BROKEN;
	}
	close(fd);
	return ret;
}

enum cli_reach cli_launch_judge(const char *path, const char *path_env, struct cli_elf *elf, char *why, size_t size)
{
	snprintf(why, size, "%s: %s", path, strerror(EACCES));
	return judge(path, path_env, elf, why, size, 0);
}

/* Appends the entries of an LD_PRELOAD value that are (or are not) sanitizers' runtimes; true when there was one. */
static bool append(char *out, const char *list, bool sanitizers)
{
	bool any = false;

	while (list && *list) {
		size_t len = strcspn(list, ": ");

		if (len && cli_elf_is_sanitizer(list, len) == sanitizers) {
			any = true;
			if (*out)
				strcat(out, ":");
			strncat(out, list, len);
		}
		list += len + (list[len] != '\0');
	}
	return any;
}

/* Is lib among the entries already? */
static bool has_entry(const char *list, const char *lib)
{
	while (list && *list) {
		size_t len = strcspn(list, ": ");

		if (len == strlen(lib) && memcmp(list, lib, len) == 0)
			return true;
		list += len + (list[len] != '\0');
	}
	return false;
}

char *cli_launch_preload(const char *lib, const char *old, const char *sanitizer)
{
	size_t size = strlen(lib) + (old ? strlen(old) : 0) + strlen(sanitizer) + 8;
	char *out = cli_alloc(size, 1);

	/* A sanitizer refuses to start unless its runtime is first; a program that needs it is given it there. */
	if (!append(out, old, true) && *sanitizer)
		strcat(out, sanitizer);
	if (!has_entry(old, lib)) {
		if (*out)
			strcat(out, ":");
		strcat(out, lib);
	}
	append(out, old, false);
	return out;
}
