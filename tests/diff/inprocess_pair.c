/* SPDX-License-Identifier: Apache-2.0 */
/* diff: accelerate=yes */
/* Both ends in one thread of one process: megabytes in both directions, in turns. */
#include "t.h"

int main(void)
{
	static char out[50000], in[50000];
	uint64_t seed = 23, sum = T_SUM_START;
	int a, b;

	t_init();
	t_pair(&a, &b);
	for (int i = 0; i < 100; i++) {
		int from = i & 1 ? b : a, to = i & 1 ? a : b;

		t_fill(out, sizeof(out), &seed);
		t_need(t_send_all(from, out, sizeof(out)) == sizeof(out));
		t_need(t_recv_all(to, in, sizeof(in)) == sizeof(in));
		if (memcmp(in, out, sizeof(in)))
			printf("different in round %d\n", i);
		sum = t_sum(sum, in, sizeof(in));
	}
	printf("sum %016llx\n", (unsigned long long)sum);
	close(a);
	t_drain("end", b);
	return t_done();
}
