/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libc's functions: looked up by the constructor, or by whoever calls before it. RTLD_NEXT of a symbol that exists neither allocates nor takes a lock that
 * a caller could hold; of one that does not exist it allocates, which is why the rows marked LATER wait for their first call.
 */
#include "real.h"
#include "../base/sys.h"
#include <dlfcn.h>
#include <errno.h>

_Atomic int cv_level;

/* Takes the place of what this libc lacks. */
static long real_missing(void)
{
	errno = ENOSYS;
	return -1;
}

static int missing_epoll_pwait2(int ep, struct epoll_event *ev, int max, const struct timespec *timeout, const sigset_t *mask)
{
	long r = cv_sys6(SYS_epoll_pwait2, ep, (long)ev, max, (long)timeout, (long)mask, _NSIG / 8);

	return (int)CV_RET(r);
}

static int missing_close_range(unsigned first, unsigned last, int flags)
{
	long r = cv_sys3(SYS_close_range, first, last, flags);

	return (int)CV_RET(r);
}

static void missing_closefrom(int from)
{
	cv_sys3(SYS_close_range, from < 0 ? 0 : from, ~0u, 0);
}

static pid_t missing__Fork(void)
{
	long r = cv_sys5(SYS_clone, SIGCHLD, 0, 0, 0, 0);

	return (pid_t)CV_RET(r);
}

/* liburing's functions return -errno. */
static int missing_io_uring_queue_init(void)
{
	return -ENOSYS;
}

static CV_EARLY void *real_substitute(size_t at)
{
	switch (at) {
	case offsetof(struct cv_real_table, epoll_pwait2):
		return missing_epoll_pwait2;
	case offsetof(struct cv_real_table, close_range):
		return missing_close_range;
	case offsetof(struct cv_real_table, closefrom):
		return missing_closefrom;
	case offsetof(struct cv_real_table, _Fork):
		return missing__Fork;
	case offsetof(struct cv_real_table, io_uring_queue_init):
	case offsetof(struct cv_real_table, io_uring_queue_init_params):
		return missing_io_uring_queue_init;
	}
	return real_missing;
}

/* Two threads may look up the same one: they store the same word. */
static CV_EARLY void real_find(const char *name, size_t at)
{
	void *p = dlsym(RTLD_NEXT, name);

	if (unlikely(!p))
		p = real_substitute(at);
	__atomic_store_n((void **)((char *)&cv_real + at), p, __ATOMIC_RELAXED);
}

/* What cv_real.NAME is until it was looked up. */
#define CV_SYM(name, ret, params, args, how, when) \
	static CV_COLD CV_EARLY ret first_##name params \
	{ \
		real_find(#name, offsetof(struct cv_real_table, name)); \
		return cv_real.name args; \
	}
#define CV_VAR(name, ret, ta, a, tb, b) \
	static CV_COLD CV_EARLY ret first_##name(ta a, tb b, ...) \
	{ \
		va_list ap; \
		void *word; \
\
		va_start(ap, b); \
		word = va_arg(ap, void *); \
		va_end(ap); \
		real_find(#name, offsetof(struct cv_real_table, name)); \
		return cv_real.name(a, b, word); \
	}
#define CV_OWN(name)
#define CV_SAME(name, ret, params, args, other)
#include "symbols.def"
#undef CV_SYM
#undef CV_VAR

struct cv_real_table cv_real = {
#define CV_SYM(name, ret, params, args, how, when) .name = first_##name,
#define CV_VAR(name, ret, ta, a, tb, b) .name = first_##name,
#include "symbols.def"
#undef CV_SYM
#undef CV_VAR
};

/* vfork() returns twice, so that nothing may stand between it and its caller: proc.c asks for the address and jumps. */
void *cv_real_vfork(void)
{
	if (unlikely(cv_real.vfork == first_vfork))
		real_find("vfork", offsetof(struct cv_real_table, vfork));
	return (void *)cv_real.vfork;
}

static long first_syscall(long n, long a, long b, long c, long d, long e, long f)
{
	__atomic_store_n(&cv_syscall_next, dlsym(RTLD_NEXT, "syscall"), __ATOMIC_RELAXED);
	return ((long (*)(long, ...))cv_syscall_next)(n, a, b, c, d, e, f);
}

void *cv_syscall_next = (void *)first_syscall;

#define CV_FIND_START(name) real_find(#name, offsetof(struct cv_real_table, name));
#define CV_FIND_LATER(name)
#define CV_SYM(name, ret, params, args, how, when) CV_FIND_##when(name)
#define CV_VAR(name, ret, ta, a, tb, b) CV_FIND_START(name)

/* Nothing but dlsym: a process that never opens a TCP socket must not be seen to do anything (seccomp). */
__attribute__((constructor)) static void real_start(void)
{
#include "symbols.def"
	__atomic_store_n(&cv_syscall_next, dlsym(RTLD_NEXT, "syscall"), __ATOMIC_RELAXED);

	int none = CV_LEVEL_NONE;

	atomic_compare_exchange_strong(&cv_level, &none, CV_LEVEL_PASS);
}
