/* SPDX-License-Identifier: Apache-2.0 */
/* diff: accelerate=yes */
/* sendmsg and recvmsg with several parts; what comes back in the header of a TCP message. */
#include "t.h"

int main(void)
{
	char x[4], y[8], ctl[64];
	struct sockaddr_in from;
	struct iovec out[2] = { { "abcd", 4 }, { "efgh", 4 } }, in[2] = { { x, 4 }, { y, 8 } };
	struct msghdr mo = { .msg_iov = out, .msg_iovlen = 2 };
	struct msghdr mi = { .msg_name = &from, .msg_namelen = sizeof(from), .msg_iov = in, .msg_iovlen = 2,
			     .msg_control = ctl, .msg_controllen = sizeof(ctl), .msg_flags = 0x7fff };
	int a, b;

	t_init();
	t_warm_pair(&a, &b);
	L("sendmsg", sendmsg(a, &mo, 0));
	t_arrived(b, 8);
	L("recvmsg", recvmsg(b, &mi, 0));
	printf("%.4s %.4s flags %x namelen %d controllen %zu\n", x, y, mi.msg_flags, (int)mi.msg_namelen, (size_t)mi.msg_controllen);
	L("sendmsg again", sendmsg(a, &mo, MSG_NOSIGNAL));
	t_arrived(b, 8);
	L("recvmsg peek", recvmsg(b, &mi, MSG_PEEK));
	in[1].iov_len = 2;
	L("recvmsg short", recvmsg(b, &mi, 0));
	printf("flags %x\n", mi.msg_flags);
	L("recvmsg rest", recvmsg(b, &mi, 0));
	L("recvmsg nothing", recvmsg(b, &mi, MSG_DONTWAIT));
	mi.msg_iovlen = 0;
	L("recvmsg no room, nothing there", recvmsg(b, &mi, MSG_DONTWAIT));
	return t_done();
}
