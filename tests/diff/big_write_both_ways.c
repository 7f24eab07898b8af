/* SPDX-License-Identifier: Apache-2.0 */
/* diff: accelerate=yes */
/* Both sides write 2 MiB before they read: what TCP's buffers take must not deadlock. */
#include "t.h"

/* Both in turn, in one thread: each side fills while the other does not read at all. */
#define SIZE (2u << 20)

static size_t fill(int fd, const unsigned char *buf, size_t n)
{
	size_t done = 0;

	while (done < n) {
		ssize_t r = send(fd, buf + done, n - done, MSG_DONTWAIT);

		if (r < 0)
			break;
		done += (size_t)r;
	}
	return done;
}

int main(void)
{
	static unsigned char x[SIZE], y[SIZE], in[SIZE];
	uint64_t seed = 21;
	size_t nx, ny;
	int a, b;

	t_init();
	t_warm_pair(&a, &b);
	t_fill(x, SIZE, &seed);
	t_fill(y, SIZE, &seed);
	nx = fill(a, x, SIZE);
	ny = fill(b, y, SIZE);
	printf("at least 1.5 MiB each %d %d\n", nx >= 3 * SIZE / 4, ny >= 3 * SIZE / 4);
	L("recv", t_recv_all(b, in, nx) == nx);
	printf("same %d\n", !memcmp(in, x, nx));
	L("recv", t_recv_all(a, in, ny) == ny);
	printf("same %d\n", !memcmp(in, y, ny));
	L("recv more", recv(a, in, 1, MSG_DONTWAIT));
	L("recv more", recv(b, in, 1, MSG_DONTWAIT));
	return t_done();
}
