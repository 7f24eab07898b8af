/* SPDX-License-Identifier: Apache-2.0 */
#include "../base/sys.h"
#include "policy.h"

#include <fcntl.h>
#include <string.h>
#include <sys/auxv.h>

/*
 * The kernel's AT_EXECFN is what was handed to execve: "/usr/bin/redis-server" where /proc/self/exe, with symbolic links resolved, says
 * "/usr/bin/redis-check-rdb" (Debian ships it so), and the script's name where the executable is an interpreter.
 */
const char *cv_policy_self(char *buf, size_t size)
{
	const char *started = (const char *)getauxval(AT_EXECFN), *base;
	char *slash;
	long n;

	if (!started)
		started = "";
	base = strrchr(started, '/');
	base = base ? base + 1 : started;
	if (*started == '/') {
		n = 0;
		base = started;
	} else {
		/* Relative to a directory that may have been left since: that of the executable is the best guess. */
		n = cv_sys4(SYS_readlinkat, AT_FDCWD, "/proc/self/exe", buf, size - 1);
		buf[n > 0 ? n : 0] = '\0';
		slash = strrchr(buf, '/');
		n = slash ? slash + 1 - buf : 0;
	}
	if ((size_t)n + strlen(base) >= size) {
		n = 0;
		base = "";
	}
	memcpy(buf + n, base, strlen(base) + 1);
	return buf;
}
