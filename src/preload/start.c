/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The last step of the start-up ladder: at the first socket that could be accelerated, policy is read and tracking begins, or never will.
 */
#include "../base/sys.h"
#include "../observe/log.h"
#include "wrap.h"
#include <string.h>

enum start { START_IDLE, START_BUSY, START_DONE };

const struct cv_policy *cv_policy_now;
char cv_program[4096];
_Atomic bool cv_tracking;
static _Atomic int start_state;
static _Atomic int loader, loader_pid; /* the thread that reads the policy, and its process */
static _Atomic bool barred;

/* The parser's complaints, kept until policy has said where the log goes. */
struct notes {
	size_t len, lost;
	char text[4096];
};

static void start_note(void *arg, const char *file, int line, const char *text)
{
	struct notes *n = arg;
	char *at = n->text + n->len;
	size_t room = sizeof(n->text) - n->len, len;

	len = file ? cv_format(at, room, "%s:%d: %s", file, line, text) : cv_format(at, room, "%s", text);
	if (len + 1 >= room) {
		n->lost++;
		return;
	}
	n->len += len + 1;
}

static void start_log(const struct cv_global *g)
{
	long fd;

	cv_log_level = (enum cv_log_level)g->log_level;
	if (!g->log_file || !*g->log_file)
		return;
	fd = cv_fd_new(SYS_openat, AT_FDCWD, (long)g->log_file, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOCTTY, 0644);
	if (fd >= 0)
		cv_log_to((int)fd);
	else
		cv_log(CV_LOG_WARN, "log-file %s cannot be opened (errno %d): logging to stderr", g->log_file, (int)-fd);
}

static CV_COLD bool start_load(void)
{
	static struct notes notes; /* only the one loader is ever here */

	cv_policy_now = cv_policy_load(cv_policy_self(cv_program, sizeof(cv_program)), NULL, start_note, &notes);
	start_log(cv_policy_global(cv_policy_now));
	for (size_t at = 0; at < notes.len; at += strlen(notes.text + at) + 1)
		cv_log(CV_LOG_WARN, "%s", notes.text + at);
	if (notes.lost)
		cv_log(CV_LOG_WARN, "and %zu more problems in the policy: see culvert check", notes.lost);
	if (!cv_policy_any(cv_policy_now))
		return false;
	cv_proc_start();
	atomic_store_explicit(&cv_tracking, true, memory_order_release);
	return true;
}

/*
 * Another thread is reading the policy: a socket that is made meanwhile must not be missed. Whoever comes back here out of the loader, or is a child that was
 * forked from its midst, passes through; and so does everybody should it take long.
 */
static CV_COLD bool start_wait(void)
{
	const struct timespec ts = {.tv_nsec = 100000};
	int by;

	for (int i = 0; i < 10000 && atomic_load_explicit(&start_state, memory_order_acquire) == START_BUSY; i++) {
		by = atomic_load_explicit(&loader, memory_order_acquire);
		if (cv_borrowed() || by == (int)cv_sys0(SYS_gettid) || (by && loader_pid != (int)cv_sys0(SYS_getpid)))
			break;
		cv_sys2(SYS_nanosleep, &ts, NULL);
	}
	return cv_on();
}

static CV_COLD bool start_once(void)
{
	int idle = START_IDLE, err = errno;
	bool on;

	/* A vfork child must not do it for its parent. */
	if (cv_borrowed())
		return false;
	if (!atomic_compare_exchange_strong(&start_state, &idle, START_BUSY))
		return start_wait();
	atomic_store_explicit(&loader_pid, (int)cv_sys0(SYS_getpid), memory_order_relaxed);
	atomic_store_explicit(&loader, (int)cv_sys0(SYS_gettid), memory_order_release);
	on = start_load();
	if (on)
		atomic_store_explicit(&cv_level, CV_LEVEL_ON, memory_order_release);
	atomic_store_explicit(&start_state, START_DONE, memory_order_release);
	errno = err;
	return on;
}

bool cv_up(void)
{
	if (unlikely(atomic_load_explicit(&barred, memory_order_relaxed)))
		return false;
	if (likely(cv_on()))
		return true;
	if (atomic_load_explicit(&start_state, memory_order_acquire) == START_DONE)
		return cv_on();
	return start_once();
}

bool cv_off(void)
{
	if (atomic_load_explicit(&barred, memory_order_relaxed))
		return true;
	return !cv_on() && atomic_load_explicit(&start_state, memory_order_acquire) == START_DONE;
}

void cv_bar(void)
{
	atomic_store_explicit(&barred, true, memory_order_relaxed);
}
