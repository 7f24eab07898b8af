/* SPDX-License-Identifier: Apache-2.0 */
/* diff: accelerate=yes race=either */
/* New descriptors get the lowest free numbers, whatever connections did before. */
#include "t.h"

int main(void)
{
	int a[8], b[8], p[2], ep;

	t_init();
	for (int i = 0; i < 8; i++) {
		t_warm_pair(&a[i], &b[i]);
		printf("%d %d\n", a[i], b[i]);
	}
	t_need(!pipe(p));
	ep = epoll_create1(0);
	printf("pipe %d %d epoll %d dup %d\n", p[0], p[1], ep, dup(0));
	close(a[3]);
	close(b[3]);
	printf("reused %d %d\n", dup(0), dup(0));
	printf("fcntl %d\n", fcntl(0, F_DUPFD, 30));
	return t_done();
}
