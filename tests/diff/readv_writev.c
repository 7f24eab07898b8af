/* SPDX-License-Identifier: Apache-2.0 */
/* diff: accelerate=yes */
/* Scattered reads and writes keep the order of the bytes, also with offsets -1 (preadv2). */
#include "t.h"

int main(void)
{
	char parts[3][4], big[3][20000];
	struct iovec out[3] = { { "one", 3 }, { "two", 3 }, { "three", 5 } };
	struct iovec in[3] = { { parts[0], 4 }, { parts[1], 4 }, { parts[2], 4 } };
	uint64_t seed = 7, sum = T_SUM_START, got = T_SUM_START;
	struct iovec v[3];
	size_t n = 0;
	int a, b;

	t_init();
	t_warm_pair(&a, &b);
	L("writev", writev(a, out, 3));
	t_arrived(b, 11);
	L("readv", readv(b, in, 3));
	printf("%.4s|%.4s|%.3s\n", parts[0], parts[1], parts[2]);
	L("pwritev2", pwritev2(a, out, 2, -1, 0));
	t_arrived(b, 6);
	L("preadv2", preadv2(b, in, 3, -1, 0));
	printf("%.4s|%.2s\n", parts[0], parts[1]);
	L("pread", pread(b, parts[0], 4, 0));
	L("pwrite", pwrite(a, "x", 1, 0));
	for (int i = 0; i < 3; i++) {
		t_fill(big[i], sizeof(big[i]), &seed);
		sum = t_sum(sum, big[i], sizeof(big[i]));
		v[i] = (struct iovec){ big[i], sizeof(big[i]) };
	}
	L("writev 60000", writev(a, v, 3));
	while (n < 60000) {
		ssize_t r = readv(b, v, 3);

		t_need(r > 0);
		n += (size_t)r;
		for (int i = 0; r > 0; i++) {
			size_t part = (size_t)r < sizeof(big[i]) ? (size_t)r : sizeof(big[i]);

			got = t_sum(got, big[i], part);
			r -= (ssize_t)part;
		}
	}
	printf("same: %d\n", got == sum);
	return t_done();
}
