/* SPDX-License-Identifier: Apache-2.0 */
/* diff: accelerate=yes */
/* A signal without SA_RESTART ends a sleeping recv with EINTR. */
#include "t.h"

static void on_signal(int sig)
{
	(void)sig;
}

int main(void)
{
	struct t_pester p;
	char buf[16];
	int a, b;

	t_init();
	t_warm_pair(&a, &b);
	t_set_handler(SIGUSR1, on_signal, 0);
	t_pester_start(&p, SIGUSR1);
	L("recv", recv(b, buf, 16, 0));
	L("read", read(b, buf, 16));
	L("recv WAITALL", recv(b, buf, 16, MSG_WAITALL));
	t_pester_stop(&p);
	L("send", send(a, "x", 1, 0));
	t_expect(b, "x");
	return t_done();
}
