/* SPDX-License-Identifier: Apache-2.0 */
/*
 * symbols.def as C: the prototypes of what we export, and struct cv_real_table. A wrapper whose signature differs from the table's or from libc's header does
 * not compile. Every prototype makes its symbol visible, so a wrapper's definition needs no mark.
 */
#ifndef CV_REAL_TABLE_H
#define CV_REAL_TABLE_H

#include "../base/base.h"
#include <aio.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <sys/sendfile.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <sys/uio.h>
#include <unistd.h>

#ifdef __USE_FILE_OFFSET64
#error "_FILE_OFFSET_BITS renames the functions that are defined here"
#endif
#if defined(__USE_FORTIFY_LEVEL) && __USE_FORTIFY_LEVEL > 0 && defined(CV_IN_LIBRARY)
#error "_FORTIFY_SOURCE turns calls of the wrappers into calls of their _chk forms"
#endif

/* A sanitizer's own start-up calls some of what we export, before instrumented code can run. */
#define CV_EARLY __attribute__((no_sanitize_address, no_sanitize_thread, no_sanitize_undefined))

#define CV_SYM(name, ret, params, args, how, when) CV_EXPORT ret name params;
#define CV_VAR(name, ret, ta, a, tb, b) CV_EXPORT ret name(ta a, tb b, ...);
#define CV_OWN(name)
#define CV_SAME(name, ret, params, args, other) CV_EXPORT ret name params;
#include "symbols.def"
#undef CV_SYM
#undef CV_VAR
#undef CV_OWN
#undef CV_SAME
CV_EXPORT int dprintf(int fd, const char *fmt, ...);
CV_EXPORT int __dprintf_chk(int fd, int flag, const char *fmt, ...);
CV_EXPORT int execl(const char *path, const char *arg, ...);
CV_EXPORT int execlp(const char *file, const char *arg, ...);
CV_EXPORT int execle(const char *path, const char *arg, ...);
CV_EXPORT long syscall(long n, ...);
CV_EXPORT int __fcntl(int fd, int cmd, ...);
CV_EXPORT pid_t __vfork(void);

struct cv_real_table {
#define CV_SYM(name, ret, params, args, how, when) ret(*name) params;
#define CV_VAR(name, ret, ta, a, tb, b) ret (*name)(ta a, tb b, ...);
#define CV_OWN(name)
#define CV_SAME(name, ret, params, args, other)
#include "symbols.def"
#undef CV_SYM
#undef CV_VAR
#undef CV_OWN
#undef CV_SAME
};

/*
 * libc's functions (the next library's, to be exact). Usable at any time: an entry that was not looked up yet leads to a function that looks it up. Calls through
 * here are what the program would have got without us: cancellation points, errno and all.
 */
extern struct cv_real_table cv_real __attribute__((visibility("hidden")));

#endif
