/* SPDX-License-Identifier: Apache-2.0 */
/* diff: accelerate=yes */
/* SIOCOUTQ goes back to zero when the peer has everything. */
#include "t.h"
#include <linux/sockios.h>

int main(void)
{
	static char buf[100000];
	uint64_t seed = 3;
	int a, b, n = -1;

	t_init();
	t_warm_pair(&a, &b);
	t_fill(buf, sizeof(buf), &seed);
	L("send", t_send_all(a, buf, sizeof(buf)));
	L("recv", t_recv_all(b, buf, sizeof(buf)));
	while (!ioctl(a, SIOCOUTQ, &n) && n)
		usleep(1000);
	L("SIOCOUTQ", ioctl(a, SIOCOUTQ, &n));
	printf("queued %d\n", n);
	return t_done();
}
