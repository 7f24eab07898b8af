/* SPDX-License-Identifier: Apache-2.0 */
/* diff: accelerate=yes */
/* The checked calls that _FORTIFY_SOURCE compiles to. */
#include "t.h"

ssize_t __read_chk(int, void *, size_t, size_t);
ssize_t __recv_chk(int, void *, size_t, size_t, int);
ssize_t __recvfrom_chk(int, void *, size_t, size_t, int, struct sockaddr *, socklen_t *);
int __poll_chk(struct pollfd *, nfds_t, int, size_t);
int __ppoll_chk(struct pollfd *, nfds_t, const struct timespec *, const sigset_t *, size_t);

int main(void)
{
	struct timespec ts = { 1, 0 };
	struct pollfd p;
	char buf[16];
	int a, b;

	t_init();
	t_warm_pair(&a, &b);
	L("send", send(a, "0123456789", 10, 0));
	p = (struct pollfd){ .fd = b, .events = POLLIN };
	L("__poll_chk", __poll_chk(&p, 1, 1000, sizeof(p)));
	L("__ppoll_chk", __ppoll_chk(&p, 1, &ts, NULL, sizeof(p)));
	t_arrived(b, 10);
	LB("__read_chk", __read_chk(b, buf, 3, sizeof(buf)), buf);
	LB("__recv_chk", __recv_chk(b, buf, 3, sizeof(buf), 0), buf);
	LB("__recvfrom_chk", __recvfrom_chk(b, buf, 16, sizeof(buf), 0, NULL, NULL), buf);
	L("__recv_chk", __recv_chk(b, buf, 3, sizeof(buf), MSG_DONTWAIT));
	return t_done();
}
