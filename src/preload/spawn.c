/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Programs that are started by libc itself: posix_spawn with its file actions, and the execl family, which takes its arguments one by one.
 *
 * A file action that puts a socket in play in the child's place is remembered here, since libc does not say what it was told: by the address of
 * the actions, in a small table. When that is full, every socket in play is handed over at each spawn: slower, never wrong.
 */
#include "../base/lock.h"
#include "wrap.h"

#define ACTIONS 64

static struct {
	const posix_spawn_file_actions_t *fa;
	int fd;
} actions[ACTIONS];
static unsigned actions_used;
static bool actions_lost;
static struct cv_lock actions_lock;

static void actions_forget(const posix_spawn_file_actions_t *fa)
{
	if (!cv_tracks() || cv_borrowed())
		return;
	cv_lock(&actions_lock);
	for (unsigned i = 0; i < actions_used;)
		if (actions[i].fa == fa)
			actions[i] = actions[--actions_used];
		else
			i++;
	cv_unlock(&actions_lock);
}

int posix_spawn_file_actions_init(posix_spawn_file_actions_t *fa)
{
	actions_forget(fa);
	return cv_real.posix_spawn_file_actions_init(fa);
}

int posix_spawn_file_actions_destroy(posix_spawn_file_actions_t *fa)
{
	actions_forget(fa);
	return cv_real.posix_spawn_file_actions_destroy(fa);
}

int posix_spawn_file_actions_adddup2(posix_spawn_file_actions_t *fa, int fd, int to)
{
	if (cv_fd_sock(fd) && !cv_borrowed()) {
		cv_lock(&actions_lock);
		if (actions_used < ACTIONS) {
			actions[actions_used].fa = fa;
			actions[actions_used++].fd = fd;
		} else {
			actions_lost = true;
		}
		cv_unlock(&actions_lock);
	}
	return cv_real.posix_spawn_file_actions_adddup2(fa, fd, to);
}

static CV_COLD void before_spawn(const posix_spawn_file_actions_t *fa)
{
	int fds[ACTIONS], limit = cv_fd_limit();
	unsigned n = 0;
	bool all;

	cv_proc_before_exec();
	cv_lock(&actions_lock);
	all = actions_lost;
	for (unsigned i = 0; fa && i < actions_used; i++)
		if (actions[i].fa == fa)
			fds[n++] = actions[i].fd;
	cv_unlock(&actions_lock);
	while (n)
		cv_proc_hand_over(fds[--n]);
	for (int fd = 0; all && fd < limit; fd++)
		cv_proc_hand_over(fd);
}

int posix_spawn(pid_t *pid, const char *path, const posix_spawn_file_actions_t *fa, const posix_spawnattr_t *attr, char *const argv[],
		char *const envp[])
{
	if (cv_tracks())
		before_spawn(fa);
	return cv_real.posix_spawn(pid, path, fa, attr, argv, envp);
}

int posix_spawnp(pid_t *pid, const char *file, const posix_spawn_file_actions_t *fa, const posix_spawnattr_t *attr, char *const argv[],
		 char *const envp[])
{
	if (cv_tracks())
		before_spawn(fa);
	return cv_real.posix_spawnp(pid, file, fa, attr, argv, envp);
}

/* ---- execl ---------------------------------------------------------------------------------------------------------------------- */

/* How many arguments up to and with the NULL. */
static size_t count_args(const char *first, va_list *ap)
{
	size_t n = 1;

	for (const char *arg = first; arg; arg = va_arg(*ap, const char *))
		n++;
	return n;
}

static void copy_args(char **argv, const char *first, va_list *ap)
{
	for (const char *arg = first; (*argv++ = (char *)arg); arg = va_arg(*ap, const char *))
		;
}

/* On the stack, as libc does it: a vfork child must not allocate. */
#define CV_EXECL(name, call, env) \
	int name(const char *path, const char *arg, ...) \
	{ \
		va_list ap, env_ap; \
		size_t n; \
		char **argv, **envp; \
\
		va_start(ap, arg); \
		va_copy(env_ap, ap); \
		n = count_args(arg, &env_ap); \
		envp = env(env_ap); \
		argv = __builtin_alloca(n * sizeof(*argv)); \
		copy_args(argv, arg, &ap); \
		va_end(env_ap); \
		va_end(ap); \
		return call; \
	}
#define ENV_OURS(ap) environ
#define ENV_LAST(ap) va_arg(ap, char **)

CV_EXECL(execl, execve(path, argv, envp), ENV_OURS)
CV_EXECL(execle, execve(path, argv, envp), ENV_LAST)
CV_EXECL(execlp, execvpe(path, argv, envp), ENV_OURS)
