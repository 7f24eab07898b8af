/* SPDX-License-Identifier: Apache-2.0 */
/*
 * syscall(): libuv, nginx and others make by number the calls that libc wraps by name. Those that concern descriptors go to the wrapper of that name; the
 * bitmap below tells entry.c which they are. Everything else never gets here.
 */
#include "../base/sys.h"
#include "wrap.h"
#include <linux/sched.h>

/*
 * X(number, the call). a .. f are the arguments as words; r_ is what it returns. Where the kernel's form has an argument more (the size of a signal
 * set) the wrapper's has none.
 */
#define ROUTES(X) \
	X(read, read(FD(a), P(b), c)) \
	X(write, write(FD(a), P(b), c)) \
	X(readv, readv(FD(a), P(b), (int)c)) \
	X(writev, writev(FD(a), P(b), (int)c)) \
	X(preadv2, preadv64v2(FD(a), P(b), (int)c, d, (int)f)) \
	X(pwritev2, pwritev64v2(FD(a), P(b), (int)c, d, (int)f)) \
	X(sendto, sendto(FD(a), P(b), c, (int)d, P(e), (socklen_t)f)) \
	X(recvfrom, recvfrom(FD(a), P(b), c, (int)d, P(e), P(f))) \
	X(sendmsg, sendmsg(FD(a), P(b), (int)c)) \
	X(recvmsg, recvmsg(FD(a), P(b), (int)c)) \
	X(sendmmsg, sendmmsg(FD(a), P(b), (unsigned)c, (int)d)) \
	X(recvmmsg, recvmmsg(FD(a), P(b), (unsigned)c, (int)d, P(e))) \
	X(sendfile, sendfile64(FD(a), FD(b), P(c), d)) \
	X(splice, splice(FD(a), P(b), FD(c), P(d), e, (unsigned)f)) \
	X(socket, socket((int)a, (int)b, (int)c)) \
	X(socketpair, socketpair((int)a, (int)b, (int)c, P(d))) \
	X(connect, connect(FD(a), P(b), (socklen_t)c)) \
	X(listen, listen(FD(a), (int)b)) \
	X(accept, accept(FD(a), P(b), P(c))) \
	X(accept4, accept4(FD(a), P(b), P(c), (int)d)) \
	X(shutdown, shutdown(FD(a), (int)b)) \
	X(setsockopt, setsockopt(FD(a), (int)b, (int)c, P(d), (socklen_t)e)) \
	X(close, close(FD(a))) \
	X(close_range, close_range((unsigned)a, (unsigned)b, (int)c)) \
	X(dup, dup(FD(a))) \
	X(dup3, dup3(FD(a), FD(b), (int)c)) \
	X(fcntl, fcntl64(FD(a), (int)b, P(c))) \
	X(ioctl, ioctl(FD(a), (unsigned long)b, P(c))) \
	X(pipe2, pipe2(P(a), (int)b)) \
	X(epoll_create1, epoll_create1((int)a)) \
	X(epoll_ctl, epoll_ctl(FD(a), (int)b, FD(c), P(d))) \
	X(epoll_pwait, epoll_pwait(FD(a), P(b), (int)c, (int)d, P(e))) \
	X(epoll_pwait2, epoll_pwait2(FD(a), P(b), (int)c, P(d), P(e))) \
	X(ppoll, sys_ppoll(P(a), (nfds_t)b, P(c), P(d))) \
	X(pselect6, sys_pselect((int)a, P(b), P(c), P(d), P(e), P(f))) \
	X(execve, (cv_proc_before_exec(), cv_real.execve(P(a), P(b), P(c)))) \
	X(execveat, (cv_proc_before_exec(), cv_real.execveat((int)a, P(b), P(c), P(d), (int)e))) \
	X(exit_group, (_exit((int)a), 0)) \
	X(clone, sys_clone(SYS_clone, a, b, c, d, e)) \
	X(clone3, sys_clone3(P(a), b)) \
	X(io_uring_setup, sys_uring(a, b))

/* AArch64 has none of these. */
#if defined(__x86_64__)
#define ROUTES_OLD(X) \
	X(poll, poll(P(a), (nfds_t)b, (int)c)) \
	X(select, select((int)a, P(b), P(c), P(d), P(e))) \
	X(dup2, dup2(FD(a), FD(b))) \
	X(pipe, pipe(P(a))) \
	X(epoll_create, epoll_create((int)a)) \
	X(epoll_wait, epoll_wait(FD(a), P(b), (int)c, (int)d)) \
	X(fork, sys_clone(SYS_fork, 0, 0, 0, 0, 0))
#else
#define ROUTES_OLD(X)
#endif

#define P(x) ((void *)(x))
#define FD(x) ((int)(x))

/* Read by entry.c. */
#define MARK(name, call) | (SYS_##name / 64 == WORD ? 1ull << (SYS_##name % 64) : 0)
__attribute__((visibility("hidden"))) extern const uint64_t cv_syscall_map[8];
const uint64_t cv_syscall_map[8] = {
#define WORD 0
	0 ROUTES(MARK) ROUTES_OLD(MARK),
#undef WORD
#define WORD 1
	0 ROUTES(MARK) ROUTES_OLD(MARK),
#undef WORD
#define WORD 2
	0 ROUTES(MARK) ROUTES_OLD(MARK),
#undef WORD
#define WORD 3
	0 ROUTES(MARK) ROUTES_OLD(MARK),
#undef WORD
#define WORD 4
	0 ROUTES(MARK) ROUTES_OLD(MARK),
#undef WORD
#define WORD 5
	0 ROUTES(MARK) ROUTES_OLD(MARK),
#undef WORD
#define WORD 6
	0 ROUTES(MARK) ROUTES_OLD(MARK),
#undef WORD
#define WORD 7
	0 ROUTES(MARK) ROUTES_OLD(MARK),
#undef WORD
};

static long plain(long n, long a, long b, long c, long d, long e)
{
	long r = cv_sys5(n, a, b, c, d, e);

	return CV_RET(r);
}

/* A fork by number: the child comes back here on its own copy of the stack. Those that share memory do not come here (entry.c, sys_clone3). */
static long sys_clone(long n, long a, long b, long c, long d, long e)
{
	bool on = cv_tracks() && !cv_borrowed();
	long r;

	if (on)
		cv_proc_fork_prepare();
	r = cv_sys5(n, a, b, c, d, e);
	if (on)
		r == 0 ? cv_proc_fork_child() : cv_proc_fork_parent();
	return CV_RET(r);
}

/* The flags lie in memory. One that shares ours and brings a stack cannot return here: libc's syscall() could not have served it either. */
static long sys_clone3(struct clone_args *args, long size)
{
	if (!args || (args->flags & CLONE_VM))
		return plain(SYS_clone3, (long)args, size, 0, 0, 0);
	return sys_clone(SYS_clone3, (long)args, size, 0, 0, 0);
}

static long sys_uring(long entries, long params)
{
	cv_bar();
	cv_sock_uring();
	return plain(SYS_io_uring_setup, entries, params, 0, 0, 0);
}

/* The kernel writes back what is left of the time; the wrappers, as libc, leave it alone. Allowed: it may be rounded, and here it is left as it was. */
static long sys_ppoll(struct pollfd *fds, nfds_t n, const struct timespec *timeout, const sigset_t *mask)
{
	return ppoll(fds, n, timeout, mask);
}

static long sys_pselect(int n, fd_set *r, fd_set *w, fd_set *x, const struct timespec *timeout, const void *mask)
{
	const sigset_t *const *set = mask;

	return pselect(n, r, w, x, timeout, set ? *set : NULL);
}

__attribute__((visibility("hidden"))) long cv_syscall_routed(long n, long a, long b, long c, long d, long e, long f);
long cv_syscall_routed(long n, long a, long b, long c, long d, long e, long f)
{
#define CASE(name, call) \
	case SYS_##name: \
		return call;
	switch (n) {
		ROUTES(CASE)
		ROUTES_OLD(CASE)
	}
	return ((long (*)(long, ...))cv_syscall_next)(n, a, b, c, d, e, f);
}
