/* SPDX-License-Identifier: Apache-2.0 */
/* diff: accelerate=no reasons=self */
/* A socket connected to itself hears itself. */
#include "t.h"

int main(void)
{
	struct t_addr at;
	char buf[16];
	int s, one = 1;

	t_init();
	signal(SIGPIPE, SIG_IGN);
	close(t_listen(&at));
	s = socket(AF_INET, SOCK_STREAM, 0);
	setsockopt(s, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	t_need(!bind(s, (struct sockaddr *)&at.ss, at.len));
	L("connect", connect(s, (struct sockaddr *)&at.ss, at.len));
	for (int i = 0; i < 100; i++) {
		t_need(send(s, "echo", 4, 0) == 4);
		t_expect(s, "echo");
	}
	L("shutdown", shutdown(s, SHUT_WR));
	L("recv", recv(s, buf, 16, 0));
	return t_done();
}
