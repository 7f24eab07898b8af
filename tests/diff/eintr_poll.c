/* SPDX-License-Identifier: Apache-2.0 */
/* diff: accelerate=yes */
/* poll, ppoll, select and epoll_wait end with EINTR whatever SA_RESTART says. */
#include "t.h"

static void on_signal(int sig)
{
	(void)sig;
}

int main(void)
{
	struct epoll_event ev;
	struct pollfd pfd;
	struct t_pester p;
	fd_set rd;
	int a, b, ep;

	t_init();
	t_warm_pair(&a, &b);
	ep = epoll_create1(EPOLL_CLOEXEC);
	t_ep_ctl("add", ep, EPOLL_CTL_ADD, b, EPOLLIN, 1);
	t_set_handler(SIGUSR1, on_signal, SA_RESTART);
	t_pester_start(&p, SIGUSR1);
	pfd = (struct pollfd){ .fd = b, .events = POLLIN };
	L("poll", poll(&pfd, 1, -1));
	L("poll 5 s", poll(&pfd, 1, 5000));
	L("ppoll", ppoll(&pfd, 1, NULL, NULL));
	FD_ZERO(&rd);
	FD_SET(b, &rd);
	L("select", select(b + 1, &rd, NULL, NULL, NULL));
	L("epoll_wait", epoll_wait(ep, &ev, 1, -1));
	L("epoll_wait 5 s", epoll_wait(ep, &ev, 1, 5000));
	L("epoll_pwait", epoll_pwait(ep, &ev, 1, -1, NULL));
	t_pester_stop(&p);
	return t_done();
}
