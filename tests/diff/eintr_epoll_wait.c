/* SPDX-License-Identifier: Apache-2.0 */
/* diff: accelerate=yes */
/* A blocked signal let in by epoll_pwait ends it with EINTR; an already pending one too; ready bytes after that. */
#include "t.h"

static volatile sig_atomic_t seen;

static void on_signal(int sig)
{
	(void)sig;
	seen++;
}

int main(void)
{
	struct epoll_event ev;
	struct pollfd pfd;
	struct timespec ts = { 5, 0 };
	sigset_t block, none;
	fd_set rd;
	int a, b, ep;

	t_init();
	t_warm_pair(&a, &b);
	ep = epoll_create1(0);
	t_ep_ctl("add", ep, EPOLL_CTL_ADD, b, EPOLLIN, 1);
	t_set_handler(SIGUSR1, on_signal, 0);
	sigemptyset(&none);
	sigemptyset(&block);
	sigaddset(&block, SIGUSR1);
	sigprocmask(SIG_BLOCK, &block, NULL);
	kill(getpid(), SIGUSR1);
	L("epoll_wait, blocked", epoll_wait(ep, &ev, 1, 10));
	printf("seen %d\n", (int)seen);
	L("epoll_pwait, pending", epoll_pwait(ep, &ev, 1, 5000, &none));
	printf("seen %d\n", (int)seen);
	kill(getpid(), SIGUSR1);
	pfd = (struct pollfd){ .fd = b, .events = POLLIN };
	L("ppoll, pending", ppoll(&pfd, 1, &ts, &none));
	printf("seen %d\n", (int)seen);
	kill(getpid(), SIGUSR1);
	FD_ZERO(&rd);
	FD_SET(b, &rd);
	L("pselect, pending", pselect(b + 1, &rd, NULL, NULL, &ts, &none));
	printf("seen %d\n", (int)seen);
	L("send", send(a, "x", 1, 0));
	L("epoll_pwait", epoll_pwait(ep, &ev, 1, 5000, &none));
	t_expect(b, "x");
	return t_done();
}
