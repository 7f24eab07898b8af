/* SPDX-License-Identifier: Apache-2.0 */
/* recvcalls.c, sendcalls.c, filecalls.c, sockcalls.c, syscall.c: what goes to the engine, what to the kernel, and what the program sees of it. */
#include "mock.h"
#include "base/sys.h"
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/syscall.h>

#define OUT_IS(text) \
	do { \
		assert_int_equal(mock.out_len, strlen(text)); \
		assert_memory_equal(mock.out, text, strlen(text)); \
		mock.out_len = 0; \
	} while (0)

extern ssize_t __read_chk(int, void *, size_t, size_t);

/* ---- reading --------------------------------------------------------------------------------------------------------------------- */

static void test_untracked(void **state)
{
	int peer, fd = mock_pair(&peer);
	char buf[8];

	(void)state;
	errno = 99;
	assert_int_equal(write(fd, "abc", 3), 3);
	assert_int_equal(read(peer, buf, 8), 3);
	assert_int_equal(send(fd, "defg", 4, 0), 4);
	assert_int_equal(recv(peer, buf, 8, 0), 4);
	assert_int_equal(errno, 99);
	assert_int_equal(recv(peer, buf, 8, MSG_DONTWAIT), -1);
	assert_int_equal(errno, EAGAIN);
	assert_null(mock.last);
	assert_int_equal(close(fd), 0);
	assert_int_equal(read(peer, buf, 8), 0);
	close(peer);
	assert_int_equal(mock.closed, 0);
	assert_int_equal(read(-1, buf, 8), -1);
	assert_int_equal(errno, EBADF);
}

static void test_read_family(void **state)
{
	int peer, fd = mock_pair(&peer);
	struct cv_sock *s = mock_sock(fd);
	struct iovec iov[2];
	struct sockaddr_in addr;
	socklen_t len = sizeof(addr);
	char a[4], b[8];

	(void)state;
	iov[0] = (struct iovec){a, 2};
	iov[1] = (struct iovec){b, 8};
	mock_feed("0123456789abcdefghijklmnopqrstuvwxyz");
	assert_int_equal(read(fd, a, 2), 2);
	assert_memory_equal(a, "01", 2);
	assert_ptr_equal(mock.last, s);
	assert_int_equal(__read_chk(fd, a, 2, 4), 2);
	assert_memory_equal(a, "23", 2);
	assert_int_equal(recv(fd, a, 1, MSG_PEEK | MSG_DONTWAIT), 1);
	assert_int_equal(mock.flags, MSG_PEEK | MSG_DONTWAIT);
	assert_int_equal(a[0], '4');
	assert_int_equal(recvfrom(fd, a, 1, 0, (struct sockaddr *)&addr, &len), 1);
	assert_int_equal(len, 0);
	assert_int_equal(readv(fd, iov, 2), 10);
	assert_memory_equal(a, "56", 2);
	assert_memory_equal(b, "789abcde", 8);
	assert_int_equal(preadv2(fd, iov, 2, -1, RWF_NOWAIT), 10);
	assert_int_equal(mock.flags, MSG_DONTWAIT);
	assert_memory_equal(b, "hijklmno", 8);
	assert_int_equal(preadv64v2(fd, iov, 1, -1, 0), 2);
	assert_int_equal(mock.flags, 0);
	assert_int_equal(mock.fall_backs, 0);
	mock.error = ECONNRESET;
	assert_int_equal(read(fd, a, 1), -1);
	assert_int_equal(errno, ECONNRESET);
	cv_sys1(SYS_close, fd);
	cv_sys1(SYS_close, peer);
}

/* What the kernel refuses never gets to the engine. */
static void test_refused(void **state)
{
	int peer, fd = mock_pair(&peer);
	struct iovec iov = {NULL, 0};
	volatile int negative = -1, many = 1025; /* volatile: the compiler knows these calls */
	char a;

	(void)state;
	mock_sock(fd);
	mock_feed("x");
	assert_int_equal(read(fd, &a, 0), 0);
	assert_int_equal(readv(fd, &iov, 1), 0);
	assert_int_equal(readv(fd, &iov, 0), 0);
	assert_int_equal(writev(fd, &iov, 1), 0);
	assert_int_equal(readv(fd, &iov, negative), -1);
	assert_int_equal(errno, EINVAL);
	assert_int_equal(readv(fd, &iov, many), -1);
	assert_int_equal(errno, EINVAL);
	assert_int_equal(writev(fd, &iov, many), -1);
	assert_int_equal(errno, EINVAL);
	assert_int_equal(pread(fd, &a, 1, 0), -1);
	assert_int_equal(errno, ESPIPE);
	assert_int_equal(pwrite(fd, &a, 1, 0), -1);
	assert_int_equal(errno, ESPIPE);
	iov = (struct iovec){&a, 1};
	assert_int_equal(preadv2(fd, &iov, 1, 5, 0), -1);
	assert_int_equal(errno, ESPIPE);
	assert_int_equal(pwritev2(fd, &iov, 1, 5, 0), -1);
	assert_int_equal(errno, ESPIPE);
	assert_int_equal(send(fd, NULL, 1, 0), -1);
	assert_int_equal(errno, EFAULT);
	assert_null(mock.last);
	/* but recv of nothing looks */
	assert_int_equal(recv(fd, &a, 0, 0), 0);
	assert_int_equal(mock.flags, MSG_PEEK);
	mock.error = EAGAIN;
	assert_int_equal(recv(fd, &a, 0, MSG_DONTWAIT), -1);
	cv_sys1(SYS_close, fd);
	cv_sys1(SYS_close, peer);
}

static void test_recv_trunc(void **state)
{
	int peer, fd = mock_pair(&peer);

	(void)state;
	mock_sock(fd);
	mock_feed("0123456789");
	assert_int_equal(recv(fd, NULL, 4, MSG_TRUNC), 4);
	assert_int_equal(mock.flags, 0);
	assert_int_equal(mock.in_len, 6);
	assert_int_equal(recv(fd, NULL, 1 << 20, MSG_TRUNC | MSG_PEEK), 6);
	assert_int_equal(mock.in_len, 6);
	assert_int_equal(recv(fd, NULL, 1 << 20, MSG_TRUNC), 6);
	cv_sys1(SYS_close, fd);
	cv_sys1(SYS_close, peer);
}

static void test_recvmsg(void **state)
{
	int peer, fd = mock_pair(&peer);
	char a[8], name[16], control[64];
	struct iovec iov = {a, 4};
	struct msghdr m = {.msg_name = name, .msg_namelen = 16, .msg_iov = &iov, .msg_iovlen = 1, .msg_control = control, .msg_controllen = 64, .msg_flags = 77};

	(void)state;
	mock_sock(fd);
	mock_feed("0123456789");
	assert_int_equal(recvmsg(fd, &m, MSG_CMSG_CLOEXEC), 4);
	assert_int_equal(m.msg_namelen, 0);
	assert_int_equal(m.msg_controllen, 0);
	assert_int_equal(m.msg_flags, MSG_CMSG_CLOEXEC);
	m.msg_iovlen = 1025;
	assert_int_equal(recvmsg(fd, &m, 0), -1);
	assert_int_equal(errno, EMSGSIZE);
	cv_sys1(SYS_close, fd);
	cv_sys1(SYS_close, peer);
}

static void test_recvmmsg(void **state)
{
	int peer, fd = mock_pair(&peer);
	char a[4][4];
	struct iovec iov[4];
	struct mmsghdr v[4];
	struct timespec ts = {.tv_sec = 5};

	(void)state;
	mock_sock(fd);
	memset(v, 0, sizeof(v));
	for (int i = 0; i < 4; i++) {
		iov[i] = (struct iovec){a[i], 3};
		v[i].msg_hdr.msg_iov = &iov[i];
		v[i].msg_hdr.msg_iovlen = 1;
	}
	mock_feed("0123456789");
	assert_int_equal(recvmmsg(fd, v, 3, MSG_WAITFORONE, &ts), 3);
	assert_int_equal(v[2].msg_len, 3);
	assert_memory_equal(a[2], "678", 3);
	assert_int_equal(mock.flags, MSG_DONTWAIT);
	assert_true(ts.tv_sec == 4);
	ts = (struct timespec){0};
	assert_int_equal(recvmmsg(fd, v, 4, 0, &ts), 1); /* time is up after the first */
	ts.tv_nsec = 1000000000;
	assert_int_equal(recvmmsg(fd, v, 4, 0, &ts), -1);
	assert_int_equal(errno, EINVAL);
	mock.error = EAGAIN;
	assert_int_equal(recvmmsg(fd, v, 4, 0, NULL), -1);
	assert_int_equal(errno, EAGAIN);
	assert_int_equal(recvmmsg(fd, v, 0, 0, NULL), 0);
	cv_sys1(SYS_close, fd);
	cv_sys1(SYS_close, peer);
}

/* On TCP: libc's call, between enter and leave. */
static void test_bracket(void **state)
{
	int peer, fd = mock_pair(&peer);
	struct cv_sock *s = mock_sock(fd);
	char a[4];

	(void)state;
	mock.real = true;
	assert_int_equal(write(fd, "abc", 3), 3);
	assert_int_equal(s->in_kernel, 0);
	assert_int_equal(read(peer, a, 4), 3);
	assert_int_equal(cv_sys3(SYS_write, peer, "de", 2), 2);
	assert_int_equal(read(fd, a, 4), 2);
	assert_int_equal(recv(fd, a, 4, MSG_DONTWAIT), -1);
	assert_int_equal(errno, EAGAIN);
	assert_int_equal(s->in_kernel, 0);
	assert_int_equal(mock.leaves, 4 - 1); /* the mode is LINKED, so that the last one out reports: write, read, recv */
	cv_sys1(SYS_close, fd);
	cv_sys1(SYS_close, peer);
}

/* ---- writing --------------------------------------------------------------------------------------------------------------------- */

static void test_write_family(void **state)
{
	int peer, fd = mock_pair(&peer);
	struct iovec iov[2] = {{"ab", 2}, {"cde", 3}};
	struct msghdr m = {.msg_iov = iov, .msg_iovlen = 2};
	struct sockaddr_in addr = {.sin_family = AF_INET};

	(void)state;
	mock_sock(fd);
	assert_int_equal(write(fd, "x", 1), 1);
	OUT_IS("x");
	assert_int_equal(send(fd, "yz", 2, MSG_MORE | MSG_NOSIGNAL), 2);
	assert_int_equal(mock.flags, MSG_MORE | MSG_NOSIGNAL);
	OUT_IS("yz");
	assert_int_equal(sendto(fd, "to", 2, 0, (struct sockaddr *)&addr, sizeof(addr)), 2);
	OUT_IS("to");
	assert_int_equal(writev(fd, iov, 2), 5);
	OUT_IS("abcde");
	assert_int_equal(pwritev2(fd, iov, 2, -1, 0), 5);
	OUT_IS("abcde");
	assert_int_equal(pwritev64v2(fd, iov, 1, -1, RWF_NOWAIT), 2);
	assert_int_equal(mock.flags, MSG_DONTWAIT);
	OUT_IS("ab");
	assert_int_equal(sendmsg(fd, &m, 0), 5);
	OUT_IS("abcde");
	assert_int_equal(write(fd, "", 0), 0);
	m.msg_iovlen = 0;
	assert_int_equal(sendmsg(fd, &m, 0), 0);
	assert_int_equal(mock.fall_backs, 0);
	mock.error = EPIPE;
	assert_int_equal(send(fd, "", 0, MSG_NOSIGNAL), -1);
	assert_int_equal(errno, EPIPE);
	cv_sys1(SYS_close, fd);
	cv_sys1(SYS_close, peer);
}

static void test_sendmmsg(void **state)
{
	int peer, fd = mock_pair(&peer);
	struct iovec iov = {"abcd", 4};
	struct mmsghdr v[3];

	(void)state;
	mock_sock(fd);
	memset(v, 0, sizeof(v));
	for (int i = 0; i < 3; i++) {
		v[i].msg_hdr.msg_iov = &iov;
		v[i].msg_hdr.msg_iovlen = 1;
	}
	assert_int_equal(sendmmsg(fd, v, 3, 0), 3);
	assert_int_equal(v[2].msg_len, 4);
	OUT_IS("abcdabcdabcd");
	mock.out_max = 3;
	assert_int_equal(sendmmsg(fd, v, 3, 0), 1); /* not taken whole: the last */
	assert_int_equal(v[0].msg_len, 3);
	mock.error = EAGAIN;
	assert_int_equal(sendmmsg(fd, v, 3, 0), -1);
	assert_int_equal(errno, EAGAIN);
	cv_sys1(SYS_close, fd);
	cv_sys1(SYS_close, peer);
}

static void test_printf(void **state)
{
	int peer, fd = mock_pair(&peer);
	char big[5000];

	(void)state;
	memset(big, 'b', sizeof(big));
	big[sizeof(big) - 1] = '\0';
	mock_sock(fd);
	assert_int_equal(dprintf(fd, "%d-%s", 12, "ab"), 5);
	OUT_IS("12-ab");
	assert_int_equal(__dprintf_chk(fd, 1, "%c%lu", 'x', 7ul), 2);
	OUT_IS("x7");
	mock.out_max = 1000;
	assert_int_equal(dprintf(fd, "%s", big), 4999);
	OUT_IS(big);
	mock.error = ECONNRESET;
	assert_int_equal(dprintf(fd, "x"), -1);
	assert_int_equal(errno, ECONNRESET);
	cv_sys1(SYS_close, fd);
	cv_sys1(SYS_close, peer);
}

static void test_sendfile(void **state)
{
	int peer, fd = mock_pair(&peer), in = memfd_create("in", 0), null;
	off_t off = 3;
	char data[40000];

	(void)state;
	for (size_t i = 0; i < sizeof(data); i++)
		data[i] = (char)(i * 7 + i / 251);
	assert_int_equal(cv_sys3(SYS_write, in, data, sizeof(data)), sizeof(data));
	mock_sock(fd);
	assert_int_equal(sendfile(fd, in, &off, 20000), 20000);
	assert_int_equal(off, 20003);
	assert_int_equal(mock.out_len, 20000);
	assert_memory_equal(mock.out, data + 3, 20000);
	assert_int_equal(lseek(in, 0, SEEK_CUR), sizeof(data));
	mock.out_len = 0;
	assert_int_equal(sendfile(fd, in, &off, 1 << 20), sizeof(data) - 20003); /* to the end */
	assert_int_equal(sendfile(fd, in, &off, 100), 0);
	mock.out_len = 0;
	lseek(in, 10, SEEK_SET);
	mock.out_max = 5;
	assert_int_equal(sendfile64(fd, in, NULL, 100), 5); /* a short send ends it */
	assert_memory_equal(mock.out, data + 10, 5);
	assert_int_equal(lseek(in, 0, SEEK_CUR), 15);
	assert_int_equal(sendfile(fd, -1, &off, 5), -1);
	assert_int_equal(errno, EBADF);
	off = -1;
	assert_int_equal(sendfile(fd, in, &off, 5), -1);
	assert_int_equal(errno, EINVAL);
	assert_int_equal(mock.fall_backs, 0);
	/* a pipe has no offset: the kernel's */
	assert_int_equal(cv_sys2(SYS_pipe2, data, 0), 0);
	memcpy(&null, data, sizeof(null));
	assert_int_equal(sendfile(fd, null, NULL, 5), -1);
	assert_int_equal(mock.fall_backs, 1);
	cv_sys1(SYS_close, fd);
	cv_sys1(SYS_close, peer);
	cv_sys1(SYS_close, in);
}

/* ---- what only the kernel can do --------------------------------------------------------------------------------------------------- */

static void fell_back(struct cv_sock *s, enum cv_leave how, enum cv_reason why)
{
	assert_int_equal(mock.fall_backs, 1);
	assert_ptr_equal(mock.last, s);
	assert_int_equal(mock.how, how);
	assert_int_equal(mock.why, why);
	assert_true(mock.stay_out);
	mock.fall_backs = 0;
	cv_fd_set(s->fd, (uintptr_t)s);
}

static void test_fall_back(void **state)
{
	int peer, fd = mock_pair(&peer), p[2], on = 1;
	struct cv_sock *s = mock_sock(fd);
	char a[64], control[CMSG_SPACE(sizeof(int))];
	struct iovec iov = {a, 1};
	struct msghdr m = {.msg_iov = &iov, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof(control)};
	struct cmsghdr *c = CMSG_FIRSTHDR(&m);
	FILE *f;

	(void)state;
	send(fd, a, 1, MSG_OOB);
	fell_back(s, CV_LEAVE_STAY, CV_REASON_OOB);
	recv(fd, a, 1, MSG_OOB | MSG_DONTWAIT);
	fell_back(s, CV_LEAVE_STAY, CV_REASON_OOB);
	preadv2(fd, &iov, 1, -1, 0x40000000);
	fell_back(s, CV_LEAVE_HANDOVER, CV_REASON_CALL);
	pwritev2(fd, &iov, 1, -1, 0x40000000);
	fell_back(s, CV_LEAVE_STAY, CV_REASON_CALL);
	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(c), &fd, sizeof(int));
	assert_int_equal(sendmsg(peer, &m, 0), 1); /* over an ordinary unix socket */
	fell_back(s, CV_LEAVE_HANDOVER, CV_REASON_FD_PASSED);
	sendmsg(fd, &m, 0);
	fell_back(s, CV_LEAVE_STAY, CV_REASON_CALL);
	assert_int_equal(pipe(p), 0);
	splice(fd, NULL, p[1], NULL, 1, SPLICE_F_NONBLOCK);
	fell_back(s, CV_LEAVE_HANDOVER, CV_REASON_CALL);
	splice(p[0], NULL, fd, NULL, 1, SPLICE_F_NONBLOCK);
	fell_back(s, CV_LEAVE_STAY, CV_REASON_CALL);
	setsockopt(fd, IPPROTO_TCP, TCP_ULP, "tls", 4);
	fell_back(s, CV_LEAVE_HANDOVER, CV_REASON_OPTION);
	setsockopt(fd, SOL_SOCKET, SO_ZEROCOPY, &on, sizeof(on));
	fell_back(s, CV_LEAVE_HANDOVER, CV_REASON_OPTION);
	setsockopt(fd, SOL_SOCKET, SO_RCVLOWAT, &on, sizeof(on)); /* 1 is what it is anyway */
	setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
	assert_int_equal(mock.fall_backs, 0);
	fcntl(fd, F_SETFL, O_ASYNC);
	fell_back(s, CV_LEAVE_STAY, CV_REASON_CALL);
	fcntl(fd, F_SETFL, 0);
	f = fdopen(fd, "r+");
	assert_non_null(f);
	assert_int_equal(cv_fd_get(fd), (uintptr_t)s | CV_FD_OUT);
	fell_back(s, CV_LEAVE_HANDOVER, CV_REASON_STDIO);
	cv_fd_set(fd, (uintptr_t)s | CV_FD_OUT);
	assert_int_equal(fclose(f), 0);
	assert_int_equal(mock.vanished, 1);
	assert_int_equal(cv_fd_get(fd), 0);
	cv_sys1(SYS_close, peer);
	cv_sys1(SYS_close, p[0]);
	cv_sys1(SYS_close, p[1]);
}

static void test_timeo(void **state)
{
	int peer, fd = mock_pair(&peer);
	struct cv_sock *s = mock_sock(fd);
	struct timeval tv = {.tv_sec = 1};

	(void)state;
	s->timeo_known = true;
	assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &tv, 1), -1);
	assert_true(s->timeo_known);
	assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &tv, sizeof(tv)), 0);
	assert_false(s->timeo_known);
	cv_sys1(SYS_close, fd);
	cv_sys1(SYS_close, peer);
}

/* ---- sockets come ------------------------------------------------------------------------------------------------------------------ */

static int listener(struct sockaddr_in *addr)
{
	socklen_t len = sizeof(*addr);
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	*addr = (struct sockaddr_in){.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	assert_true(fd >= 0);
	assert_int_equal(bind(fd, (struct sockaddr *)addr, sizeof(*addr)), 0);
	assert_int_equal(listen(fd, 5), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)addr, &len), 0);
	return fd;
}

static void test_socket(void **state)
{
	int fd;

	(void)state;
	fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, IPPROTO_TCP);
	assert_int_equal(cv_fd_get(fd), CV_FD_OTHER | CV_FD_OTHER_TCP | CV_FD_OTHER_NONBLOCK);
	assert_int_equal(close(fd), 0);
	assert_int_equal(cv_fd_get(fd), 0);
	fd = socket(AF_INET6, SOCK_STREAM, 0);
	if (fd >= 0) {
		assert_int_equal(cv_fd_get(fd), CV_FD_OTHER | CV_FD_OTHER_TCP);
		close(fd);
	}
	fd = socket(AF_INET, SOCK_DGRAM, 0);
	assert_int_equal(cv_fd_get(fd), 0);
	close(fd);
	fd = socket(AF_UNIX, SOCK_STREAM, 0);
	assert_int_equal(cv_fd_get(fd), 0);
	close(fd);
	assert_int_equal(socket(12345, SOCK_STREAM, 0), -1);
	assert_int_equal(errno, EAFNOSUPPORT);
	assert_int_equal(mock.news, 0);
}

static void test_connect_accept(void **state)
{
	struct sockaddr_in addr;
	int l = listener(&addr), c, a;

	(void)state;
	assert_int_equal(cv_fd_get(l), CV_FD_OTHER | CV_FD_OTHER_TCP | CV_FD_OTHER_LISTEN);
	c = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
	errno = 0;
	if (connect(c, (struct sockaddr *)&addr, sizeof(addr)) < 0)
		assert_int_equal(errno, EINPROGRESS);
	assert_int_equal(mock.news, 1);
	assert_int_equal(mock.fd, c);
	assert_int_equal(mock.role, CV_ROLE_CLIENT);
	assert_true(mock.nonblock);
	errno = 5;
	a = accept4(l, NULL, NULL, SOCK_NONBLOCK);
	assert_int_equal(errno, 5);
	assert_int_equal(mock.news, 2);
	assert_int_equal(mock.fd, a);
	assert_int_equal(mock.role, CV_ROLE_SERVER);
	assert_true(mock.nonblock);
	close(a);
	close(c);
	assert_int_equal(mock.closed, 2);
	/* A listener that was there before us: one look, then known. */
	cv_fd_set(l, 0);
	c = socket(AF_INET, SOCK_STREAM, 0);
	assert_int_equal(connect(c, (struct sockaddr *)&addr, sizeof(addr)), 0);
	assert_false(mock.nonblock);
	a = accept(l, NULL, NULL);
	assert_int_equal(mock.fd, a);
	assert_false(mock.nonblock);
	assert_int_equal(cv_fd_get(l), CV_FD_OTHER | CV_FD_OTHER_TCP | CV_FD_OTHER_LISTEN);
	close(a);
	close(c);
	/* Refused: the socket stays what it was. */
	close(l);
	c = socket(AF_INET, SOCK_STREAM, 0);
	mock.news = 0;
	assert_int_equal(connect(c, (struct sockaddr *)&addr, sizeof(addr)), -1);
	assert_int_equal(errno, ECONNREFUSED);
	assert_int_equal(mock.news, 0);
	assert_int_equal(cv_fd_get(c), CV_FD_OTHER | CV_FD_OTHER_TCP);
	close(c);
}

/* Duplicates of an unconnected socket; and those that are not to be tracked once they connect. */
static void test_connect_others(void **state)
{
	struct sockaddr_in addr;
	int l = listener(&addr), c, d, x, y, on = 1;

	(void)state;
	/* duplicates made before: all become the one socket, and know of each other's O_NONBLOCK; another pair is none of theirs */
	c = socket(AF_INET, SOCK_STREAM, 0);
	d = dup(c);
	x = socket(AF_INET, SOCK_STREAM, 0);
	y = dup(x);
	assert_int_equal(fcntl(c, F_SETFL, O_NONBLOCK), 0);
	connect(d, (struct sockaddr *)&addr, sizeof(addr));
	assert_int_equal(mock.news, 1);
	assert_true(mock.nonblock);
	assert_non_null(cv_fd_sock(d));
	assert_ptr_equal(cv_fd_sock(c), cv_fd_sock(d));
	assert_int_equal(cv_fd_sock(c)->refs, 2);
	assert_null(cv_fd_sock(x));
	assert_null(cv_fd_sock(y));
	close(c);
	close(d);
	close(x);
	close(y);
	mock.news = 0;
	c = socket(AF_INET, SOCK_STREAM, 0);
	assert_int_equal(setsockopt(c, SOL_SOCKET, SO_TIMESTAMP, &on, sizeof(on)), 0);
	assert_int_equal(connect(c, (struct sockaddr *)&addr, sizeof(addr)), 0);
	assert_int_equal(mock.news, 0);
	close(c);
	close(l);
}

static void test_unix_listener(void **state)
{
	struct sockaddr_un {
		sa_family_t family;
		char path[32];
	} addr = {AF_UNIX, "\0culvert-test-calls-XXXX"};
	int l = socket(AF_UNIX, SOCK_STREAM, 0), c = socket(AF_UNIX, SOCK_STREAM, 0), a;

	(void)state;
	memcpy(addr.path + 19, &l, sizeof(l));
	snprintf(addr.path + 19, 12, "%d", (int)getpid());
	assert_int_equal(bind(l, (struct sockaddr *)&addr, sizeof(addr)), 0);
	assert_int_equal(listen(l, 5), 0);
	assert_int_equal(cv_fd_get(l), CV_FD_OTHER);
	assert_int_equal(connect(c, (struct sockaddr *)&addr, sizeof(addr)), 0);
	a = accept(l, NULL, NULL);
	assert_true(a >= 0);
	assert_int_equal(mock.news, 0);
	close(a);
	close(c);
	close(l);
	assert_int_equal(cv_fd_get(l), 0);
}

static void test_shutdown_ioctl(void **state)
{
	int peer, fd = mock_pair(&peer), n = -1;
	struct cv_sock *s = mock_sock(fd);

	(void)state;
	assert_int_equal(shutdown(fd, SHUT_WR), 0);
	assert_ptr_equal(mock.last, s);
	assert_int_equal(mock.shut, SHUT_WR + 1);
	mock.error = ENOTCONN;
	assert_int_equal(shutdown(fd, SHUT_RD), -1);
	assert_int_equal(errno, ENOTCONN);
	mock_feed("12345");
	assert_int_equal(ioctl(fd, FIONREAD, &n), 0);
	assert_int_equal(n, 5);
	mock.real = true;
	assert_int_equal(cv_sys3(SYS_write, peer, "ab", 2), 2);
	assert_int_equal(ioctl(fd, FIONREAD, &n), 0);
	assert_int_equal(n, 2);
	n = 1;
	assert_int_equal(ioctl(fd, FIONBIO, &n), 0);
	assert_true(s->nonblock);
	assert_int_equal(fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) & ~O_NONBLOCK), 0);
	assert_false(s->nonblock);
	assert_int_equal(fcntl64(fd, F_SETFL, O_NONBLOCK), 0);
	assert_true(s->nonblock);
	cv_sys1(SYS_close, fd);
	cv_sys1(SYS_close, peer);
}

/* ---- by number ----------------------------------------------------------------------------------------------------------------------- */

static void test_syscall(void **state)
{
	int peer, fd = mock_pair(&peer), status;
	struct cv_sock *s = mock_sock(fd);
	struct iovec iov = {"vec", 3};
	char buf[8];
	pid_t pid;
	long d;

	(void)state;
	assert_int_equal(syscall(SYS_write, fd, "abc", 3), 3);
	assert_int_equal(syscall(SYS_sendto, fd, "def", 3, MSG_MORE, NULL, 0), 3);
	assert_int_equal(mock.flags, MSG_MORE);
	assert_int_equal(syscall(SYS_writev, fd, &iov, 1), 3);
	assert_int_equal(syscall(SYS_pwritev2, fd, &iov, 1, -1l, 0l, 0), 3);
	OUT_IS("abcdefvecvec");
	mock_feed("xy");
	assert_int_equal(syscall(SYS_recvfrom, fd, buf, 8, 0, NULL, NULL), 2);
	d = syscall(SYS_dup, fd);
	assert_true(d > fd);
	assert_ptr_equal(cv_fd_sock((int)d), s);
	assert_int_equal(syscall(SYS_close, d), 0);
	assert_int_equal(mock.closed, 1);
	assert_int_equal(syscall(SYS_shutdown, fd, SHUT_WR), 0);
	assert_int_equal(mock.shut, SHUT_WR + 1);
	/* not ours, and six arguments */
	assert_int_equal(syscall(SYS_getpid), getpid());
	assert_int_not_equal(syscall(SYS_mmap, NULL, 4096l, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1l, 0l), -1);
	assert_int_equal(syscall(SYS_mmap, NULL, 4096l, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1l, 1l), -1);
	assert_int_equal(errno, EINVAL);
	assert_int_equal(syscall(100000), -1);
	assert_int_equal(errno, ENOSYS);
	assert_int_equal(syscall(-1l), -1);
	assert_int_equal(errno, ENOSYS);
	assert_int_equal(syscall(SYS_read, -1, buf, 1), -1);
	assert_int_equal(errno, EBADF);
	/* a fork by number follows the protocol */
	pid = (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
	if (pid == 0)
		cv_real._exit(mock.forks == 101 ? 0 : 1);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_int_equal(mock.forks, 11);
	cv_sys1(SYS_close, fd);
	cv_sys1(SYS_close, peer);
}

/* The engine's pending error comes first; without one, or for anything else, the kernel answers. */
static void test_so_error(void **state)
{
	int peer, fd = mock_pair(&peer), v = -1;
	struct cv_sock *s = mock_sock(fd);
	socklen_t len = sizeof(v);

	(void)state;
	mock.error = ECONNRESET;
	assert_int_equal(getsockopt(fd, SOL_SOCKET, SO_ERROR, &v, &len), 0);
	assert_ptr_equal(mock.last, s);
	assert_int_equal(v, ECONNRESET);
	assert_int_equal(len, sizeof(v));
	assert_int_equal(getsockopt(fd, SOL_SOCKET, SO_TYPE, &v, &len), 0);
	assert_int_equal(v, SOCK_STREAM);
	len = 1; /* too short for ours */
	assert_int_equal(getsockopt(fd, SOL_SOCKET, SO_ERROR, &v, &len), 0);
	assert_int_equal(len, 1);
	mock.error = 0;
	len = sizeof(v);
	assert_int_equal(getsockopt(fd, SOL_SOCKET, SO_ERROR, &v, &len), 0);
	assert_int_equal(v, 0);
	cv_sys1(SYS_close, fd);
	cv_sys1(SYS_close, peer);
}

static void test_uring(void **state)
{
	long r;

	(void)state;
	r = syscall(SYS_io_uring_setup, 0, NULL);
	assert_int_equal(r, -1);
	assert_int_equal(mock.uring, 1);
	assert_true(cv_off());
}

int main(void)
{
#define T(f) cmocka_unit_test_setup(f, mock_setup)
	const struct CMUnitTest tests[] = {
		T(test_untracked),   T(test_read_family), T(test_refused),	     T(test_recv_trunc),	T(test_recvmsg),
		T(test_recvmmsg),    T(test_bracket),	  T(test_write_family),	     T(test_sendmmsg),		T(test_printf),
		T(test_sendfile),    T(test_fall_back),	  T(test_timeo),	     T(test_socket),		T(test_connect_accept),
		T(test_unix_listener), T(test_connect_others), T(test_shutdown_ioctl), T(test_so_error), T(test_syscall), T(test_uring),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
