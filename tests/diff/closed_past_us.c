/* SPDX-License-Identifier: Apache-2.0 */
/* diff: accelerate=yes reasons=peer-absent race=either */
/* (the second connection's server may not have it yet when its client looks for it) */
/* A descriptor is closed by a bare system call, which nobody sees; its number comes back as another connection, whose bytes are nobody else's. */
#include "t.h"
#include "../../src/base/sys.h"

int main(void)
{
	char out[256], in[256];
	struct t_addr at;
	int a, b, c, d, listener;

	t_init();
	memset(out, 'n', sizeof(out));
	for (int i = 0; i < 3; i++) {
		t_warm_pair(&a, &b);
		listener = t_listen(&at);
		c = t_connect(&at);
		t_need(send(c, out, sizeof(out), 0) == (ssize_t)sizeof(out));
		t_need(cv_sys1(SYS_close, a) == 0);
		d = t_accept(listener); /* nearly always the same number */
		t_need(t_recv_all(d, in, sizeof(in)) == sizeof(in));
		if (memcmp(in, out, sizeof(in)))
			printf("not its bytes\n");
		L("recv at the other end", recv(b, in, 1, 0));
		t_need(send(d, "x", 1, 0) == 1);
		t_expect(c, "x");
		close(b);
		close(c);
		close(d);
		close(listener);
	}
	return t_done();
}
