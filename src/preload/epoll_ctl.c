/* SPDX-License-Identifier: Apache-2.0 */
/*
 * epoll_ctl. For a socket that is served here: no system call and no memory; a deleted item stays with its socket, because the next
 * call tends to add it again. Errors come in the kernel's order (fs/eventpoll.c, do_epoll_ctl).
 */
#include "epoll_int.h"
#include "wrap.h"

#define EXCLUSIVE_OK (EPOLLIN | EPOLLOUT | EPOLLERR | EPOLLHUP | EPOLLWAKEUP | EPOLLET | EPOLLEXCLUSIVE)

static long kernel_ctl(int epfd, int op, int fd, struct epoll_event *ev)
{
	return cv_sys4(SYS_epoll_ctl, epfd, op, fd, ev);
}

/* Added or changed: only what is ready now goes on the list, behind those that were rung before; the rest has its turn when it is rung. */
static inline void renew(struct cv_epitem *it)
{
	struct cv_epoll *e = it->e;

	if (!cv_ep_ready_now(it))
		return;
	cv_ep_drain_hot(e, cv_ticks());
	cv_ep_push(it);
	if (unlikely(atomic_load_explicit(&e->sleepers, memory_order_relaxed) || atomic_load_explicit(&e->polled, memory_order_relaxed) ||
		     e->late))
		cv_ep_wake(e);
}

/* LINKED. e->lock held. */
static int ctl_user(struct cv_epitem *it, int op, const struct epoll_event *ev)
{
	switch (op) {
	case EPOLL_CTL_ADD:
		if ((ev->events & EPOLLEXCLUSIVE) && (ev->events & ~(uint32_t)EXCLUSIVE_OK))
			return -EINVAL;
		if (it->on)
			return -EEXIST;
		it->events = ev->events;
		it->data = ev->data.u64;
		it->shown = 0;
		it->seen = 0;
		cv_ep_activate(it);
		renew(it);
		return 0;
	case EPOLL_CTL_MOD:
		if (ev->events & EPOLLEXCLUSIVE)
			return -EINVAL;
		if (!it->on)
			return -ENOENT;
		if (it->events & EPOLLEXCLUSIVE)
			return -EINVAL;
		it->events = ev->events;
		it->data = ev->data.u64;
		it->shown = 0;
		it->seen = 0;
		it->disabled = false;
		if (unlikely(!it->routed && it->eb))
			cv_ep_activate(it);
		renew(it);
		return 0;
	case EPOLL_CTL_DEL:
		if (!it->on)
			return -ENOENT;
		atomic_store_explicit(&it->on, false, memory_order_relaxed);
		cv_ep_unready(it);
		return 0;
	default:
		return -EINVAL;
	}
}

static int ctl_add(struct cv_epoll *e, struct cv_sock *s, int fd, const struct epoll_event *ev)
{
	struct cv_epitem *it;
	int err = cv_ep_add(e, s, fd, ev, &it);

	if (err)
		return err;
	if (unlikely((cv_fd_get(fd) & ~(uintptr_t)3) != (uintptr_t)s))
		cv_ep_drop(it); /* closed meanwhile: whoever did so may have looked before there was anything to drop */
	else if (unlikely(!cv_sock_valid(s, fd)))
		cv_ep_give_up(it); /* excluded meanwhile: the kernel's alone from now on */
	else
		cv_ep_sync(it);
	return 0;
}

/*
 * Of one that we have a record of: MOD, or ADD where the kernel lost it (a fired ONESHOT that came back from a link, a record that
 * outlived its registration).
 */
static int ctl_again(struct cv_epitem *it, int op, const struct epoll_event *ev)
{
	uint32_t was = it->events;
	long err;

	it->events = ev->events;
	err = cv_ep_raw(it, op);
	if (err) {
		it->events = was;
		return (int)err;
	}
	it->data = ev->data.u64;
	it->shown = 0;
	it->seen = 0;
	it->disabled = it->dropped = false;
	it->kreg = true;
	if (it->s && atomic_load_explicit(&it->s->mode, memory_order_relaxed) == CV_CAREFUL)
		cv_ep_push(it); /* what was read ahead while switching counts as news */
	return 0;
}

/* On TCP: the kernel decides, we take notes. e->lock held. it: what we know, or NULL. */
static int ctl_kernel(struct cv_epoll *e, struct cv_sock *s, struct cv_epitem *it, int epfd, int op, int fd, struct epoll_event *ev)
{
	/* A fired ONESHOT that came back from a link is known to us only. */
	bool ours = it && !it->kreg;
	long err;

	if (op != EPOLL_CTL_DEL && unlikely((uintptr_t)ev < 4096))
		return -EFAULT;
	if (ours && op == EPOLL_CTL_ADD)
		return -EEXIST;
	if (!it && op == EPOLL_CTL_ADD)
		return ctl_add(e, s, fd, ev);
	if (ours && op == EPOLL_CTL_MOD && (ev->events & EPOLLEXCLUSIVE))
		return -EINVAL;
	if (it && (op == EPOLL_CTL_MOD || op == EPOLL_CTL_ADD))
		return ctl_again(it, ours ? EPOLL_CTL_ADD : op, ev);
	if (ours && op == EPOLL_CTL_DEL)
		err = 0;
	else if (!it && op != EPOLL_CTL_ADD && unlikely(cv_ep_renamed(e, s, fd)))
		err = -ENOENT;
	else
		err = kernel_ctl(epfd, op, fd, ev);
	if (!err && it && op == EPOLL_CTL_DEL)
		cv_ep_drop(it);
	return (int)err;
}

static int ctl_sock(struct cv_epoll *e, struct cv_sock *s, int epfd, int op, int fd, struct epoll_event *ev)
{
	struct cv_epitem *it;
	int err;

	cv_lock(&e->lock);
	if (unlikely(cv_fd_epoll(epfd) != e)) {
		err = (int)kernel_ctl(epfd, op, fd, ev);
		goto unlock;
	}
	it = cv_ep_find(e, s, fd);
	if (unlikely(!it && (it = cv_ep_pending_find(e, fd))))
		it = cv_ep_adopt(it, s);
	if (it && it->where == CV_ITEM_KERNEL && unlikely(cv_ep_linked(s)))
		cv_ep_sync(it), it = cv_ep_find(e, s, fd);
	if (likely(it && it->where == CV_ITEM_USER)) {
		if (unlikely(op != EPOLL_CTL_DEL && (uintptr_t)ev < 4096))
			err = -EFAULT;
		else
			err = ctl_user(it, op, ev);
	} else {
		err = ctl_kernel(e, s, it, epfd, op, fd, ev);
	}
unlock:
	cv_unlock(&e->lock);
	return err;
}

/* Not connected yet: the registration has no socket to be recorded with. */
static CV_COLD int ctl_pending(struct cv_epoll *e, int epfd, int op, int fd, struct epoll_event *ev)
{
	struct cv_epitem *it, *fresh;
	long err;

	cv_lock(&e->lock);
	it = cv_ep_pending_find(e, fd);
	if (op != EPOLL_CTL_DEL && unlikely((uintptr_t)ev < 4096)) {
		err = -EFAULT;
	} else if (op == EPOLL_CTL_ADD) {
		err = cv_ep_add(e, NULL, fd, ev, &fresh);
		if (!err && it) /* what we had was of another file */
			cv_ep_pending_drop(it);
	} else if (it && op == EPOLL_CTL_MOD) {
		err = ctl_again(it, op, ev);
	} else {
		err = kernel_ctl(epfd, op, fd, ev);
		if (!err && it && op == EPOLL_CTL_DEL)
			cv_ep_pending_drop(it);
	}
	cv_unlock(&e->lock);
	return (int)err;
}

int cv_ep_ctl(struct cv_epoll *e, int epfd, int op, int fd, struct epoll_event *ev)
{
	struct cv_sock *s = cv_fd_sock(fd);

	if (unlikely(e->foreign))
		cv_ep_unforeign(e);
	if (s) {
		bool foreign = atomic_load_explicit(&s->foreign, memory_order_relaxed);

		if (unlikely(e->off || foreign)) {
			int err = cv_sock_fall_back(s, CV_LEAVE_STAY, foreign ? CV_REASON_FORK : CV_REASON_EPOLL, true);

			return err ? err : (int)kernel_ctl(epfd, op, fd, ev);
		}
		return ctl_sock(e, s, epfd, op, fd, ev);
	}
	return ctl_pending(e, epfd, op, fd, ev);
}

/* A socket that is or may become ours. */
static inline bool concerns(int fd)
{
	uintptr_t entry = cv_fd_get(fd);

	if (!entry)
		return false;
	switch (entry & 3) {
	case CV_FD_SOCK:
		return true;
	case CV_FD_OTHER:
		return (entry & CV_FD_OTHER_TCP) && !(entry & CV_FD_OTHER_LISTEN);
	default:
		return false;
	}
}

int epoll_ctl(int epfd, int op, int fd, struct epoll_event *ev)
{
	struct cv_epoll *e = cv_fd_epoll(epfd);
	int err;

	if (likely(concerns(fd))) {
		if (unlikely(op != EPOLL_CTL_DEL && (uintptr_t)ev >= 4096 && cv_ep_tagged(ev->data.u64)) && e)
			cv_ep_turn_off(e);
		if (likely(e))
			return CV_RET(cv_ep_ctl(e, epfd, op, fd, ev));
		/* Perhaps a set that we did not see being made: the kernel will say. */
		err = cv_real.epoll_ctl(epfd, op, fd, ev);
		if (!err && op == EPOLL_CTL_ADD && !cv_fd_get(epfd)) {
			cv_epoll_new(epfd);
			e = cv_fd_epoll(epfd);
			if (e) {
				e->late = true;
				cv_real.epoll_ctl(epfd, EPOLL_CTL_DEL, fd, NULL);
				return CV_RET(cv_ep_ctl(e, epfd, op, fd, ev));
			}
		}
		return err;
	}
	if (unlikely(e && op != EPOLL_CTL_DEL && (uintptr_t)ev >= 4096 && cv_ep_tagged(ev->data.u64)))
		cv_ep_turn_off(e);
	err = cv_real.epoll_ctl(epfd, op, fd, ev);
	if (!err && op == EPOLL_CTL_ADD && unlikely(cv_fd_epoll(fd) != NULL))
		cv_epoll_nest(e, fd);
	return err;
}
