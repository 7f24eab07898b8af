/* SPDX-License-Identifier: Apache-2.0 */
/* diff: accelerate=yes */
/* close_range and a close loop end the program's connections and nothing of ours; new ones work. */
#include "t.h"

static void peer(int fd)
{
	t_warm_follow(fd);
	t_drain("end", fd);
}

int main(void)
{
	int a, b, fd;

	t_init();
	for (int how = 0; how < 2; how++) {
		struct t_addr at;
		int l = t_listen(&at), log;

		if (!t_fork()) {
			close(l);
			peer(t_connect(&at));
			t_leave();
		}
		log = t_peers[0].log;
		fd = t_accept(l);
		t_warm_lead(fd);
		if (how == 0) {
			for (int i = 3; i < 1024; i++)
				if (i != log)
					close(i);
		} else {
			for (int i = 3; i < log; i++)
				close(i);
			L("close_range", close_range((unsigned)log + 1, ~0u, 0));
		}
		t_join(0);
		t_warm_pair(&a, &b);
		L("send", send(a, "x", 1, 0));
		t_expect(b, "x");
		close(a);
		close(b);
	}
	return t_done();
}
