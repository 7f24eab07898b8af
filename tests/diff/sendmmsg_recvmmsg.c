/* SPDX-License-Identifier: Apache-2.0 */
/* diff: accelerate=yes */
/* Several messages in one call: a stream has no borders, but the counts are told. */
#include "t.h"

int main(void)
{
	char in[3][4];
	struct iovec ov[2] = { { "abcd", 4 }, { "efghij", 6 } }, iv[3] = { { in[0], 4 }, { in[1], 4 }, { in[2], 4 } };
	struct mmsghdr out[2], got[3];
	struct timespec zero = { 0, 0 };
	int a, b;

	t_init();
	t_warm_pair(&a, &b);
	memset(out, 0, sizeof(out));
	memset(got, 0, sizeof(got));
	for (int i = 0; i < 2; i++) {
		out[i].msg_hdr.msg_iov = &ov[i];
		out[i].msg_hdr.msg_iovlen = 1;
	}
	for (int i = 0; i < 3; i++) {
		got[i].msg_hdr.msg_iov = &iv[i];
		got[i].msg_hdr.msg_iovlen = 1;
	}
	L("sendmmsg", sendmmsg(a, out, 2, 0));
	printf("%u %u\n", out[0].msg_len, out[1].msg_len);
	t_arrived(b, 10);
	L("recvmmsg", recvmmsg(b, got, 3, MSG_DONTWAIT, NULL));
	printf("%u %u %u %.4s%.4s%.2s\n", got[0].msg_len, got[1].msg_len, got[2].msg_len, in[0], in[1], in[2]);
	L("recvmmsg nothing", recvmmsg(b, got, 3, MSG_DONTWAIT, &zero));
	L("sendmmsg", sendmmsg(b, out, 2, 0));
	t_expect(a, "abcdefghij");
	return t_done();
}
