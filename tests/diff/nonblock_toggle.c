/* SPDX-License-Identifier: Apache-2.0 */
/* diff: accelerate=yes */
/* O_NONBLOCK by fcntl and FIONBIO, on and off, is obeyed at once. */
#include "t.h"

int main(void)
{
	struct timeval tv = { 0, 50000 };
	int a, b, on = 1, off = 0;
	char buf[4];
	double from;

	t_init();
	t_warm_pair(&a, &b);
	L("fcntl on", fcntl(b, F_SETFL, O_NONBLOCK));
	L("recv", recv(b, buf, 4, 0));
	L("fcntl off", fcntl(b, F_SETFL, 0));
	setsockopt(b, SOL_SOCKET, SO_RCVTIMEO, &tv, sizeof(tv));
	from = t_now();
	L("recv", recv(b, buf, 4, 0));
	printf("waited %d\n", t_now() - from > 0.04);
	L("FIONBIO on", ioctl(b, FIONBIO, &on));
	printf("flag %d\n", !!(fcntl(b, F_GETFL) & O_NONBLOCK));
	from = t_now();
	L("recv", recv(b, buf, 4, 0));
	printf("waited %d\n", t_now() - from > 0.04);
	L("FIONBIO off", ioctl(b, FIONBIO, &off));
	from = t_now();
	L("recv", recv(b, buf, 4, 0));
	printf("waited %d\n", t_now() - from > 0.04);
	return t_done();
}
