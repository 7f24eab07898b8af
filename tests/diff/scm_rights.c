/* SPDX-License-Identifier: Apache-2.0 */
/* diff: accelerate=yes reasons=fd-passed,fork */
/* A connection passed over a unix socket to another process: bytes unread, then both go on. */
#include "t.h"

static int sv[2];

static void pass(int s, int fd)
{
	union {
		char buf[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} u = { 0 };
	struct iovec iov = { "f", 1 };
	struct msghdr mh = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = u.buf, .msg_controllen = sizeof(u.buf) };
	struct cmsghdr *c = CMSG_FIRSTHDR(&mh);

	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(c), &fd, sizeof(int));
	L("pass", sendmsg(s, &mh, 0));
}

static int take(int s)
{
	union {
		char buf[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} u;
	char x;
	struct iovec iov = { &x, 1 };
	struct msghdr mh = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = u.buf, .msg_controllen = sizeof(u.buf) };
	int fd = -1;

	L("take", recvmsg(s, &mh, 0));
	t_need(CMSG_FIRSTHDR(&mh));
	memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&mh)), sizeof(int));
	return fd;
}

static void peer(int fd)
{
	t_warm_follow(fd);
	L("send", send(fd, "unread when passed", 18, 0));
	t_expect(fd, "from the receiver");
	L("send", send(fd, "and back", 8, 0));
	t_drain("end", fd);
}

int main(void)
{
	pid_t taker;
	int fd;

	t_init();
	t_need(!socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sv));
	taker = t_fork();
	if (!taker) {
		close(sv[0]);
		fd = take(sv[1]);
		t_expect(fd, "unread when passed");
		L("send", send(fd, "from the receiver", 17, 0));
		t_expect(fd, "and back");
		L("close", close(fd));
		t_leave();
	}
	close(sv[1]);
	fd = t_peer(peer);
	t_warm_lead(fd);
	t_arrived(fd, 18);
	pass(sv[0], fd);
	close(fd);
	t_join(taker);
	t_join(0);
	return t_done();
}
