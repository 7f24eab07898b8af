/* SPDX-License-Identifier: Apache-2.0 */
/* diff: accelerate=yes */
/* The 64 bits of data come back as they went in, whatever they are; MOD changes them. */
#include "t.h"

int main(void)
{
	static const uint64_t values[] = { 0, 1, ~0ull, 1ull << 63, 0x7fffffffffffffff, 0xdeadbeefcafef00d, 0xffffffff, 0xffff800000000000 };
	char buf[4];
	int a, b, ep;

	t_init();
	t_warm_pair(&a, &b);
	ep = epoll_create1(0);
	t_ep_ctl("add", ep, EPOLL_CTL_ADD, b, EPOLLIN, 42);
	for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
		t_ep_ctl("mod", ep, EPOLL_CTL_MOD, b, EPOLLIN, values[i]);
		L("send", send(a, "x", 1, 0));
		t_ep_wait("ready", ep, 1000);
		L("recv", recv(b, buf, 4, 0));
	}
	return t_done();
}
