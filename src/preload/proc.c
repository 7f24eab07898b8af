/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Processes: fork and its kin, exec, exit.
 *
 * fork (and what calls it inside libc: forkpty) is caught by pthread_atfork handlers, registered at CV_LEVEL_ON. Our daemon() and the raw system calls
 * run the same protocol. vfork() is libc's own, reached by a jump (entry.c): its child has our memory and other descriptors, so that the wrappers in it only
 * pass through (cv_borrowed). _Fork() must be async-signal-safe, so no lock can be taken around it: its child forgets all sockets and is plain from then on;
 * a stream that was on a link at that moment is the parent's alone.
 */
#include "../base/sys.h"
#include "../observe/stats.h"
#include "epoll.h"
#include "sig.h"
#include "wrap.h"
#include <paths.h>
#include <pthread.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

/* ---- vfork ---------------------------------------------------------------------------------------------------------------------- */

#define VFORKS 64

/*
 * The threads that are inside vfork(), known by their thread pointer, which the child shares. A thread that finds itself here and has the pid noted is the
 * parent, back again, and takes itself out. Beyond VFORKS at once (never seen), everybody is asked for its pid for good.
 */
static struct {
	_Atomic uintptr_t thread;
	_Atomic int pid;
} vforks[VFORKS];
_Atomic int cv_vforks;
static _Atomic int vfork_lost; /* the pid of the parent, when a place was missing */

static uintptr_t self(void)
{
	return (uintptr_t)__builtin_thread_pointer();
}

/* Called by the entry of vfork(); returns where to jump. */
__attribute__((visibility("hidden"))) void *cv_vfork_begin(void);
void *cv_vfork_begin(void)
{
	int pid;

	if (!cv_tracks() || cv_borrowed())
		return cv_real_vfork();
	pid = (int)cv_sys0(SYS_getpid);
	atomic_fetch_add_explicit(&cv_vforks, 1, memory_order_seq_cst);
	for (int i = 0; i < VFORKS; i++) {
		uintptr_t none = 0;

		if (!atomic_compare_exchange_strong(&vforks[i].thread, &none, self()))
			continue;
		atomic_store_explicit(&vforks[i].pid, pid, memory_order_release);
		return cv_real_vfork();
	}
	atomic_store(&vfork_lost, pid);
	return cv_real_vfork();
}

CV_COLD bool cv_borrowed_slow(void)
{
	int pid = (int)cv_sys0(SYS_getpid), lost = atomic_load(&vfork_lost);

	for (int i = 0; i < VFORKS; i++) {
		if (atomic_load_explicit(&vforks[i].thread, memory_order_acquire) != self())
			continue;
		if (atomic_load_explicit(&vforks[i].pid, memory_order_acquire) != pid)
			return true;
		atomic_store_explicit(&vforks[i].thread, 0, memory_order_release);
		atomic_fetch_sub_explicit(&cv_vforks, 1, memory_order_seq_cst);
	}
	return lost && lost != pid;
}

/* ---- fork ----------------------------------------------------------------------------------------------------------------------- */

void cv_proc_fork_prepare(void)
{
	cv_agent_fork_prepare();
	cv_sock_fork_prepare();
	cv_epoll_fork_prepare();
}

void cv_proc_fork_parent(void)
{
	cv_epoll_fork_parent();
	cv_sock_fork_parent();
	cv_agent_fork_parent();
}

void cv_proc_fork_child(void)
{
	for (int i = 0; i < VFORKS; i++)
		atomic_store_explicit(&vforks[i].thread, 0, memory_order_relaxed);
	atomic_store_explicit(&cv_vforks, 0, memory_order_relaxed);
	atomic_store_explicit(&vfork_lost, 0, memory_order_relaxed);
	cv_signals_forked();
	cv_sock_fork_child();
	cv_agent_fork_child();
	cv_stats_forked();
	cv_epoll_forked();
	cv_signals_fork_done();
}

void cv_proc_start(void)
{
	pthread_atfork(cv_proc_fork_prepare, cv_proc_fork_parent, cv_proc_fork_child);
}

pid_t _Fork(void)
{
	pid_t pid = cv_real._Fork();

	if (pid == 0 && cv_tracks()) {
		cv_bar();
		atomic_store(&cv_tracking, false);
		cv_fd_forget();
	}
	return pid;
}

/* glibc's calls fork(), dup2() and _exit() inside, past us. */
int daemon(int nochdir, int noclose)
{
	struct stat st;
	pid_t pid = cv_tracks() ? fork() : -2;
	int fd;

	if (pid == -2)
		return cv_real.daemon(nochdir, noclose);
	if (pid < 0)
		return -1;
	if (pid)
		_exit(0);
	if (setsid() < 0)
		return -1;
	if (!nochdir)
		cv_sys1(SYS_chdir, "/");
	if (noclose)
		return 0;
	fd = open(_PATH_DEVNULL, O_RDWR);
	if (fd < 0)
		return -1;
	if (fstat(fd, &st) < 0 || !S_ISCHR(st.st_mode) || st.st_rdev != makedev(1, 3)) {
		close(fd);
		errno = ENODEV;
		return -1;
	}
	for (int i = 0; i < 3; i++)
		dup2(fd, i);
	if (fd > 2)
		close(fd);
	return 0;
}

/* ---- exec ----------------------------------------------------------------------------------------------------------------------- */

void cv_proc_hand_over(int fd)
{
	struct cv_sock *s = cv_fd_sock(fd);
	int err = errno;

	/* For good, and what is on TCP still too: we may live on beside the other program, and our agent would switch what that reads. */
	if (s)
		cv_sock_fall_back(s, CV_LEAVE_HANDOVER, CV_REASON_EXEC, true);
	errno = err;
}

/* The program that comes holds it too, but most likely by mistake: it may be switched again. */
static void leave_behind(int fd)
{
	struct cv_sock *s = cv_fd_sock(fd);
	int err = errno;

	/* PLAIN: the twin is all there is */
	if (s && atomic_load_explicit(&s->mode, memory_order_acquire) != CV_PLAIN)
		cv_sock_fall_back(s, CV_LEAVE_HANDOVER, CV_REASON_EXEC, false);
	errno = err;
}

void cv_proc_before_exec(void)
{
	int limit = cv_fd_limit();

	if (likely(!cv_tracks()))
		return;
	for (int fd = 0; fd < limit; fd++)
		if (cv_fd_sock(fd) && !(cv_sys2(SYS_fcntl, fd, F_GETFD) & FD_CLOEXEC))
			fd <= 2 ? cv_proc_hand_over(fd) : leave_behind(fd);
}

/* ---- exit ----------------------------------------------------------------------------------------------------------------------- */

static void proc_exit(void)
{
	static _Atomic int done; /* the pid that has done it: a forked child has its own to do */
	int pid, was;

	if (!cv_tracks() || cv_borrowed())
		return;
	pid = (int)cv_sys0(SYS_getpid);
	was = atomic_exchange(&done, pid);
	if (was != pid)
		cv_sock_exit();
}

__attribute__((destructor)) static void proc_end(void)
{
	proc_exit();
}

void _exit(int status)
{
	proc_exit();
	cv_real._exit(status);
	__builtin_unreachable();
}

void _Exit(int status)
{
	_exit(status);
}
