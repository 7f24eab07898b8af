/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Descriptors come, are doubled, change and go: what keeps the table true. In a vfork child (cv_borrowed) nothing here edits it: the child's descriptors
 * are its own, the table is its parent's.
 */
#include "../base/sys.h"
#include "epoll.h"
#include "wrap.h"
#include <linux/close_range.h>
#include <linux/sockios.h>

/* ---- the table ---------------------------------------------------------------------------------------------------------------- */

CV_COLD void cv_fd_stale(int fd, uintptr_t e)
{
	int err = errno;

	if (cv_borrowed())
		return;
	switch (cv_fd_tag(e)) {
	case CV_FD_SOCK:
	case CV_FD_OUT:
		cv_sock_vanished(cv_fd_sock_of(e), fd);
		break;
	case CV_FD_EPOLL:
		cv_fd_swap(fd, e, 0);
		cv_epoll_close((struct cv_epoll *)(e & ~(uintptr_t)3), -1);
		break;
	case CV_FD_OTHER:
		cv_fd_swap(fd, e, 0);
		break;
	}
	errno = err;
}

void cv_fd_duplicated(int fd, int to)
{
	uintptr_t e = cv_fd_get(fd);
	int err = errno;

	if (cv_borrowed())
		return;
	cv_fd_fresh(to);
	if (likely(!e))
		return;
	switch (cv_fd_tag(e)) {
	case CV_FD_SOCK:
	case CV_FD_OUT:
		cv_sock_dup(cv_fd_sock_of(e), to);
		break;
	case CV_FD_EPOLL:
		cv_epoll_dup((struct cv_epoll *)(e & ~(uintptr_t)3), to);
		break;
	case CV_FD_OTHER:
		if ((e & CV_FD_OTHER_TCP) && !(e & CV_FD_OTHER_SHARED)) {
			static _Atomic uintptr_t groups;
			uintptr_t group = atomic_fetch_add_explicit(&groups, 1, memory_order_relaxed) << CV_FD_OTHER_GROUP;

			cv_fd_swap(fd, e, e | CV_FD_OTHER_SHARED | group);
		}
		cv_fd_set(to, cv_fd_get(fd));
		break;
	}
	errno = err;
}

void cv_fd_other(int fd, uintptr_t e, uintptr_t now)
{
	if (e & CV_FD_OTHER_SHARED)
		cv_fd_retag(e, now);
	else
		cv_fd_swap(fd, e, now);
}

void cv_fd_nonblock(int fd, bool on)
{
	uintptr_t e = cv_fd_get(fd);

	if (!e || cv_borrowed())
		return;
	switch (cv_fd_tag(e)) {
	case CV_FD_SOCK:
	case CV_FD_OUT:
		atomic_store_explicit(&cv_fd_sock_of(e)->nonblock, on, memory_order_release);
		break;
	case CV_FD_OTHER:
		cv_fd_other(fd, e, on ? e | CV_FD_OTHER_NONBLOCK : e & ~CV_FD_OTHER_NONBLOCK);
		break;
	case CV_FD_EPOLL:
		break;
	}
}

/* Ours: the program has never seen it, so that for it there is none. */
static bool hidden(int fd)
{
	if (likely(!cv_tracks()))
		return false;
	if (unlikely(atomic_load_explicit(&cv_fd_making, memory_order_seq_cst)))
		cv_fd_made();
	return cv_fd_internal(fd);
}

static int bad_fd(int err)
{
	errno = err;
	return -1;
}

/* ---- close -------------------------------------------------------------------------------------------------------------------- */

static int close_tracked(int fd, uintptr_t e)
{
	switch (cv_fd_tag(e)) {
	case CV_FD_SOCK:
	case CV_FD_OUT:
		return CV_RET(cv_sock_close(cv_fd_sock_of(e), fd));
	case CV_FD_EPOLL:
		return CV_RET(cv_epoll_close((struct cv_epoll *)(e & ~(uintptr_t)3), fd));
	case CV_FD_OTHER:
		break;
	}
	/* The entry first: when the number is free, somebody else may get it at once. */
	cv_fd_swap(fd, e, 0);
	return cv_real.close(fd);
}

int close(int fd)
{
	uintptr_t e = cv_fd_get(fd);

	if (likely(!e))
		return hidden(fd) ? bad_fd(EBADF) : cv_real.close(fd);
	return cv_borrowed() ? cv_real.close(fd) : close_tracked(fd, e);
}

/* One stretch without anything of ours in it. */
static int close_stretch(unsigned first, unsigned last, int flags)
{
	return first > last ? 0 : cv_real.close_range(first, last, flags);
}

/* The range without our own descriptors, tracked ones one by one. */
static int close_around(unsigned first, unsigned last, int flags)
{
	unsigned end = (unsigned)cv_min_u64((uint64_t)last + 1, CV_FD_CHUNK * CV_FD_CHUNKS), from = first;
	bool keep = flags & CLOSE_RANGE_CLOEXEC, borrowed = cv_borrowed();
	int limit = cv_fd_limit(), r;

	if (unlikely(atomic_load_explicit(&cv_fd_making, memory_order_seq_cst)))
		cv_fd_made();
	for (unsigned fd = first; fd < end; fd++) {
		uintptr_t e = (int)fd < limit && !keep && !borrowed ? cv_fd_get((int)fd) : 0;

		if (likely(!e) && !cv_fd_internal((int)fd))
			continue;
		r = fd > from ? close_stretch(from, fd - 1, flags) : 0;
		if (r < 0)
			return r;
		from = fd + 1;
		if (e)
			close_tracked((int)fd, e);
	}
	return close_stretch(from, last, flags);
}

int close_range(unsigned first, unsigned last, int flags)
{
	int err = errno, r;

	if (!cv_tracks() || first > last || (flags & ~(CLOSE_RANGE_UNSHARE | CLOSE_RANGE_CLOEXEC)))
		return cv_real.close_range(first, last, flags);
	/* Tracked ones are closed by ordinary calls, which must act on the table that the thread has from now on. */
	if ((flags & CLOSE_RANGE_UNSHARE) && cv_sys1(SYS_unshare, CLONE_FILES) < 0)
		return cv_real.close_range(first, last, flags);
	r = close_around(first, last, flags & ~CLOSE_RANGE_UNSHARE);
	if (r == 0)
		errno = err;
	return r;
}

void closefrom(int from)
{
	if (!cv_tracks())
		cv_real.closefrom(from);
	else if (close_range(from < 0 ? 0 : (unsigned)from, ~0u, 0) < 0)
		/* a kernel without close_range: only what can be open */
		for (int fd = from < 0 ? 0 : from, end = getdtablesize(); fd < end; fd++)
			close(fd);
}

/* ---- dup ---------------------------------------------------------------------------------------------------------------------- */

int dup(int fd)
{
	int to;

	if (hidden(fd))
		return bad_fd(EBADF);
	to = cv_real.dup(fd);
	if (to >= 0)
		cv_fd_duplicated(fd, to);
	return to;
}

static int dup_over(int fd, int to, int flags, bool three)
{
	return three ? cv_real.dup3(fd, to, flags) : cv_real.dup2(fd, to);
}

/*
 * A socket in play is replaced: the kernel's part has to be one step, in which the number is never free, and ours a close, which may have bytes to
 * bring to the peer. So the socket gets a further descriptor, which is closed after the step.
 */
static CV_COLD int dup_over_sock(struct cv_sock *s, int fd, int to, int flags, bool three)
{
	int keep = (int)cv_sys3(SYS_fcntl, to, F_DUPFD_CLOEXEC, 512), r, err;

	if (keep < 0)
		keep = (int)cv_sys3(SYS_fcntl, to, F_DUPFD_CLOEXEC, 3);
	if (keep >= 0)
		cv_sock_dup(s, keep);
	r = dup_over(fd, to, flags, three);
	err = errno;
	if (r >= 0)
		cv_sock_vanished(s, to);
	if (keep >= 0)
		cv_sock_close(s, keep);
	errno = err;
	return r;
}

static int dup_to(int fd, int to, int flags, bool three)
{
	uintptr_t e;
	int r;

	if (hidden(fd))
		return bad_fd(EBADF);
	/* The kernel's answer to a number that is about to be somebody's; programs that choose high numbers try another. */
	if (hidden(to))
		return bad_fd(EBUSY);
	e = cv_fd_get(to);
	if (fd == to)
		return dup_over(fd, to, flags, three);
	if (unlikely(cv_borrowed())) {
		/* The child is about to exec with it: a twin must be fit for a stranger. */
		cv_proc_hand_over(fd);
		return dup_over(fd, to, flags, three);
	}
	/* stdio has these without asking. */
	if (to <= STDERR_FILENO)
		cv_fd_to_kernel(fd, CV_LEAVE_HANDOVER, CV_REASON_STDIO);
	if (unlikely(e) && cv_fd_tag(e) == CV_FD_SOCK)
		r = dup_over_sock(cv_fd_sock_of(e), fd, to, flags, three);
	else
		r = dup_over(fd, to, flags, three);
	if (r >= 0)
		cv_fd_duplicated(fd, to);
	return r;
}

int dup2(int fd, int to)
{
	return dup_to(fd, to, 0, false);
}

int dup3(int fd, int to, int flags)
{
	return dup_to(fd, to, flags, true);
}

/* ---- fcntl, ioctl --------------------------------------------------------------------------------------------------------------- */

/* What a successful fcntl() means for the table. */
static CV_COLD void fcntl_done(int fd, int cmd, void *word, int r)
{
	switch (cmd) {
	case F_DUPFD:
	case F_DUPFD_CLOEXEC:
		cv_fd_duplicated(fd, r);
		break;
	case F_SETFL:
		cv_fd_nonblock(fd, ((intptr_t)word & O_NONBLOCK) != 0);
		break;
	}
}

/* SIGIO comes from the kernel, about the twin. */
static void fcntl_before(int fd, int cmd, void *word)
{
	if (cmd == F_SETFL && ((intptr_t)word & O_ASYNC))
		cv_fd_to_kernel(fd, CV_LEAVE_STAY, CV_REASON_CALL);
}

#define CV_FCNTL(name, real) \
	int name(int fd, int cmd, ...) \
	{ \
		va_list ap; \
		void *word; \
		int r; \
\
		va_start(ap, cmd); \
		word = va_arg(ap, void *); \
		va_end(ap); \
		if (likely(!cv_tracks())) \
			return real(fd, cmd, word); \
		if (hidden(fd)) \
			return bad_fd(EBADF); \
		fcntl_before(fd, cmd, word); \
		r = real(fd, cmd, word); \
		if (r >= 0) \
			fcntl_done(fd, cmd, word, r); \
		return r; \
	}

CV_FCNTL(fcntl, cv_real.fcntl)
CV_FCNTL(fcntl64, cv_real.fcntl64)
CV_FCNTL(__fcntl, cv_real.fcntl)

static int ioctl_sock(struct cv_sock *s, int fd, unsigned long req, void *word)
{
	int out, r;

	switch (req) {
	case FIONREAD:
	case SIOCOUTQ:
	case SIOCOUTQNSD:
	case SIOCATMARK:
		r = word ? cv_sock_ioctl(s, fd, req, &out) : CV_IO_REAL;
		if (r == 0)
			*(int *)word = out;
		return r;
	case FIOASYNC:
		if (word && *(int *)word)
			cv_fd_to_kernel(fd, CV_LEAVE_STAY, CV_REASON_CALL);
		break;
	}
	return CV_IO_REAL;
}

int ioctl(int fd, unsigned long req, ...)
{
	struct cv_sock *s = cv_fd_sock(fd);
	va_list ap;
	void *word;
	int r;

	va_start(ap, req);
	word = va_arg(ap, void *);
	va_end(ap);
	if (unlikely(s)) {
		r = ioctl_sock(s, fd, req, word);
		if (r != CV_IO_REAL)
			return CV_RET(r);
	}
	r = cv_real.ioctl(fd, req, word);
	if (req == FIONBIO && r == 0)
		cv_fd_nonblock(fd, *(int *)word != 0);
	return r;
}

/* ---- new ones ------------------------------------------------------------------------------------------------------------------ */

static int both_fresh(int fds[2], int r)
{
	if (r == 0) {
		cv_fd_fresh(fds[0]);
		cv_fd_fresh(fds[1]);
	}
	return r;
}

int pipe(int fds[2])
{
	return both_fresh(fds, cv_real.pipe(fds));
}

int pipe2(int fds[2], int flags)
{
	return both_fresh(fds, cv_real.pipe2(fds, flags));
}
