/* SPDX-License-Identifier: Apache-2.0 */
/* diff: accelerate=yes */
/* MSG_DONTWAIT says EAGAIN when nothing is there, on a blocking socket, in every receiving call. */
#include "t.h"

int main(void)
{
	char buf[16];
	struct iovec iov = { buf, sizeof(buf) };
	struct msghdr mh = { .msg_iov = &iov, .msg_iovlen = 1 };
	int a, b;

	t_init();
	t_warm_pair(&a, &b);
	L("recv", recv(b, buf, 16, MSG_DONTWAIT));
	L("recvfrom", recvfrom(b, buf, 16, MSG_DONTWAIT, NULL, NULL));
	L("recvmsg", recvmsg(b, &mh, MSG_DONTWAIT));
	L("recv, other end", recv(a, buf, 16, MSG_DONTWAIT));
	L("send", send(a, "x", 1, MSG_DONTWAIT));
	t_arrived(b, 1);
	LB("recv", recv(b, buf, 16, MSG_DONTWAIT), buf);
	L("recv", recv(b, buf, 16, MSG_DONTWAIT));
	return t_done();
}
