/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sigaction and its kin. Once watched, the kernel holds sig_enter() for every handler of the program, and `user` holds the program's own, which is what it gets to
 * see when it asks. SIG_DFL and SIG_IGN, masks and flags are the kernel's alone.
 */
#include "sig.h"
#include "../base/lock.h"
#include "wrap.h"
#include <limits.h>
#include <string.h>
#include <ucontext.h>

typedef void (*sig_fn)(int sig, siginfo_t *info, void *ctx);

__thread uint32_t cv_signals_here;

static struct {
	_Atomic uintptr_t fn;
	_Atomic int flags; /* SA_SIGINFO and SA_RESTART as the program gave them */
} user[_NSIG];
static struct cv_lock sig_lock; /* with all signals blocked: sigaction() may be called in a handler */
static _Atomic uintptr_t sig_owner; /* the thread that holds it */
static _Atomic bool watched;
static _Atomic uint32_t passing; /* calls that go past us, as nothing is watched yet, and have not returned */

/* Signals of this thread that were put off; with cv_signals_here and cv_locks_held all the static TLS there is: 16 bytes. */
static __thread uint32_t put_off_low, put_off_high; /* halves of the mask: eight-byte alignment would cost as much again */

/* The last lock was let go: the kernel delivers what we put off. */
static CV_COLD void sig_deliver(void)
{
	uint64_t mask = (uint64_t)put_off_high << 32 | put_off_low;

	put_off_low = put_off_high = 0;
	cv_locks_held = 0;
	atomic_signal_fence(memory_order_seq_cst);
	cv_sys4(SYS_rt_sigprocmask, SIG_UNBLOCK, &mask, 0, sizeof(mask));
}

/*
 * This thread is inside culvert, with a lock that the program's handler may want. Queue the signal again, blocked in the context that we return to, until
 * the lock is let go.
 */
static CV_COLD void sig_put_off(int sig, siginfo_t *info, ucontext_t *uc)
{
	uint64_t bit = 1ull << (sig - 1), mask;

	memcpy(&mask, &uc->uc_sigmask, sizeof(mask));
	mask |= bit;
	memcpy(&uc->uc_sigmask, &mask, sizeof(mask));
	put_off_low |= (uint32_t)bit;
	put_off_high |= (uint32_t)(bit >> 32);
	cv_locks_held |= CV_LOCKS_DEFERRED;
	/* It is blocked while its handler runs, but not with SA_NODEFER: then it would be here again at once, and again, until the stack ends. */
	cv_sys4(SYS_rt_sigprocmask, SIG_BLOCK, &bit, 0, sizeof(bit));
	cv_sys4(SYS_rt_tgsigqueueinfo, cv_sys0(SYS_getpid), cv_sys0(SYS_gettid), sig, info);
}

static void sig_enter(int sig, siginfo_t *info, void *ctx)
{
	if (unlikely(cv_locks_held)) {
		sig_put_off(sig, info, ctx);
		return;
	}

	sig_fn fn = (sig_fn)atomic_load_explicit(&user[sig].fn, memory_order_acquire);
	uint32_t seen = cv_signals_here, low = (seen + 1) & 0xffff, high = seen >> 16;

	if (!(atomic_load_explicit(&user[sig].flags, memory_order_relaxed) & SA_RESTART))
		high++;
	*(volatile uint32_t *)&cv_signals_here = high << 16 | low;
	/* A handler that takes one argument does not mind three. */
	fn(sig, info, ctx);
}

/* Faults: they interrupt no call, and those who handle them (JVM, sanitizers) look closely at how they are called. */
static bool sig_counts(int sig)
{
	switch (sig) {
	case SIGSEGV:
	case SIGBUS:
	case SIGILL:
	case SIGFPE:
	case SIGTRAP:
	case SIGABRT:
	case SIGSYS:
	case SIGKILL:
	case SIGSTOP:
		return false;
	}
	return sig > 0 && sig < _NSIG;
}

static bool sig_is_ours(const struct sigaction *sa)
{
	return (sa->sa_flags & SA_SIGINFO) && sa->sa_sigaction == sig_enter;
}

/* What the kernel has, as the program knows it. */
static void sig_show(int sig, struct sigaction *sa)
{
	int flags;

	if (!sig_is_ours(sa))
		return;
	flags = atomic_load_explicit(&user[sig].flags, memory_order_relaxed);
	sa->sa_handler = (sighandler_t)atomic_load_explicit(&user[sig].fn, memory_order_relaxed);
	if (!(flags & SA_SIGINFO))
		sa->sa_flags &= ~SA_SIGINFO;
}

static sighandler_t sig_shown(int sig, sighandler_t fn)
{
	return (uintptr_t)fn == (uintptr_t)sig_enter ? (sighandler_t)atomic_load_explicit(&user[sig].fn, memory_order_relaxed) : fn;
}

/* What the program wants, as the kernel gets it. sig_lock held. */
static void sig_cover(int sig, struct sigaction *sa)
{
	if (sa->sa_handler == SIG_DFL || sa->sa_handler == SIG_IGN || sig_is_ours(sa))
		return;
	atomic_store_explicit(&user[sig].flags, sa->sa_flags & (SA_SIGINFO | SA_RESTART), memory_order_relaxed);
	/* release: flags before the function. Partner: sig_enter() */
	atomic_store_explicit(&user[sig].fn, (uintptr_t)sa->sa_handler, memory_order_release);
	sa->sa_sigaction = sig_enter;
	sa->sa_flags |= SA_SIGINFO;
}

static uint64_t sig_enter_lock(void)
{
	uint64_t all = ~0ull, was = 0;

	cv_sys4(SYS_rt_sigprocmask, SIG_BLOCK, &all, &was, sizeof(all));
	cv_lock(&sig_lock);
	atomic_store_explicit(&sig_owner, (uintptr_t)__builtin_thread_pointer(), memory_order_relaxed);
	return was;
}

static void sig_leave_lock(uint64_t was)
{
	atomic_store_explicit(&sig_owner, 0, memory_order_relaxed);
	cv_unlock(&sig_lock);
	cv_sys4(SYS_rt_sigprocmask, SIG_SETMASK, &was, 0, sizeof(was));
}

/*
 * Past us: not watched, not counted, or called by the next library out of a call that we are making under the lock (libtsan's signal() calls sigaction(),
 * which is ours); what that installs the outer call covers. Only this thread stores its own pointer, so relaxed will do.
 */
static bool sig_passes(int sig)
{
	return likely(!atomic_load_explicit(&watched, memory_order_acquire)) || !sig_counts(sig) ||
	       atomic_load_explicit(&sig_owner, memory_order_relaxed) == (uintptr_t)__builtin_thread_pointer();
}

/* The same, for calls that change a handler. True: sig_passed() follows. */
static bool sig_pass(int sig)
{
	atomic_fetch_add_explicit(&passing, 1, memory_order_seq_cst);
	if (sig_passes(sig))
		return true;
	atomic_fetch_sub_explicit(&passing, 1, memory_order_relaxed);
	return false;
}

static void sig_passed(void)
{
	atomic_fetch_sub_explicit(&passing, 1, memory_order_seq_cst);
}

void cv_signals_watch(void)
{
	int err = errno;
	uint64_t was;

	if (atomic_load_explicit(&watched, memory_order_acquire))
		return;
	was = sig_enter_lock();
	if (!atomic_load_explicit(&watched, memory_order_relaxed)) {
		atomic_store_explicit(&watched, true, memory_order_seq_cst);
		/*
		 * From now on they wait for the lock. One that is still under way would be missed, or lost between our look and our call; one that was left by
		 * longjmp never returns. Partner: sig_pass().
		 */
		for (int i = 0; i < 1000 && atomic_load_explicit(&passing, memory_order_seq_cst); i++)
			cv_sys0(SYS_sched_yield);
		for (int sig = 1; sig < _NSIG; sig++) {
			struct sigaction sa;

			if (!sig_counts(sig) || cv_real.sigaction(sig, NULL, &sa) < 0 || sa.sa_handler == SIG_DFL || sa.sa_handler == SIG_IGN)
				continue;
			sig_cover(sig, &sa);
			cv_real.sigaction(sig, &sa, NULL);
		}
		cv_locks_deferred = sig_deliver;
	}
	sig_leave_lock(was);
	errno = err;
}

/* What the parent's thread held for the fork nobody holds here: its count would put off signals for good. */
void cv_signals_fork_done(void)
{
	if (cv_locks_held & CV_LOCKS_DEFERRED)
		sig_deliver();
	cv_locks_held = 0;
}

void cv_signals_forked(void)
{
	atomic_store_explicit(&sig_lock.word, 0, memory_order_relaxed);
	atomic_store_explicit(&sig_owner, 0, memory_order_relaxed);
	atomic_store_explicit(&passing, 0, memory_order_relaxed);
}

static CV_COLD int sig_action(int sig, const struct sigaction *act, struct sigaction *old)
{
	struct sigaction sa, before;
	uint64_t was;
	int r;

	if (!act) {
		r = cv_real.sigaction(sig, NULL, old);
		if (r == 0 && old)
			sig_show(sig, old);
		return r;
	}
	/* A vfork child has signals of its own, but our memory. Its handlers end with its exec. */
	if (cv_borrowed()) {
		r = cv_real.sigaction(sig, act, old);
		if (r == 0 && old)
			sig_show(sig, old);
		return r;
	}
	sa = *act;
	was = sig_enter_lock();
	r = cv_real.sigaction(sig, NULL, &before);
	if (r == 0) {
		sig_show(sig, &before);
		sig_cover(sig, &sa);
		r = cv_real.sigaction(sig, &sa, NULL);
	}
	sig_leave_lock(was);
	if (r == 0 && old)
		*old = before;
	return r;
}

int sigaction(int sig, const struct sigaction *act, struct sigaction *old)
{
	int r;

	if (!sig_pass(sig))
		return sig_action(sig, act, old);
	r = cv_real.sigaction(sig, act, old);
	sig_passed();
	return r;
}

/* libc decides on flags and mask (siginterrupt() has a say there); we cover what it installed before any signal can arrive. */
static CV_COLD sighandler_t sig_signal(int sig, sighandler_t fn)
{
	struct sigaction before, sa;
	sighandler_t r = SIG_ERR;
	uint64_t was = sig_enter_lock();

	if (cv_real.sigaction(sig, NULL, &before) == 0) {
		sig_show(sig, &before);
		r = cv_real.signal(sig, fn);
		if (r != SIG_ERR && cv_real.sigaction(sig, NULL, &sa) == 0) {
			sig_cover(sig, &sa);
			cv_real.sigaction(sig, &sa, NULL);
			r = before.sa_handler;
		}
	}
	sig_leave_lock(was);
	return r;
}

sighandler_t signal(int sig, sighandler_t fn)
{
	sighandler_t r;

	if (!sig_pass(sig)) {
		if (!cv_borrowed())
			return sig_signal(sig, fn);
		return sig_shown(sig, cv_real.signal(sig, fn));
	}
	r = sig_shown(sig, cv_real.signal(sig, fn));
	sig_passed();
	return r;
}

int siginterrupt(int sig, int on)
{
	int r = cv_real.siginterrupt(sig, on);

	if (r == 0 && sig_counts(sig) && !cv_borrowed()) {
		if (on)
			atomic_fetch_and_explicit(&user[sig].flags, ~SA_RESTART, memory_order_relaxed);
		else
			atomic_fetch_or_explicit(&user[sig].flags, SA_RESTART, memory_order_relaxed);
	}
	return r;
}

sighandler_t sigset(int sig, sighandler_t fn)
{
	struct sigaction sa = {.sa_handler = fn}, old;
	sigset_t one, was;

	if (sig_passes(sig) || fn == SIG_ERR || fn == SIG_HOLD)
		return sig_shown(sig, cv_real.sigset(sig, fn));
	sigemptyset(&sa.sa_mask);
	sigemptyset(&one);
	sigaddset(&one, sig);
	if (sig_action(sig, &sa, &old) < 0 || sigprocmask(SIG_UNBLOCK, &one, &was) < 0)
		return SIG_ERR;
	return sigismember(&was, sig) ? SIG_HOLD : old.sa_handler;
}
