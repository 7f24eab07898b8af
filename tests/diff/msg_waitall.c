/* SPDX-License-Identifier: Apache-2.0 */
/* diff: accelerate=yes */
/* MSG_WAITALL waits for the whole length, and returns less at the end of the stream. */
#include "t.h"

static void peer(int fd)
{
	t_warm_follow(fd);
	for (int i = 0; i < 10; i++) {
		t_need(t_send_all(fd, "0123456789", 10) == 10);
		usleep(3000);
	}
	t_expect(fd, "go");
	t_need(t_send_all(fd, "short", 5) == 5);
	close(fd);
}

int main(void)
{
	char buf[128];
	int fd;

	t_init();
	fd = t_peer(peer);
	t_warm_lead(fd);
	LB("recv 95", recv(fd, buf, 95, MSG_WAITALL), buf);
	LB("recv 5", recv(fd, buf, 5, MSG_WAITALL), buf);
	L("recv, both flags", recv(fd, buf, 5, MSG_WAITALL | MSG_DONTWAIT));
	L("send", send(fd, "go", 2, 0));
	LB("recv 100", recv(fd, buf, 100, MSG_WAITALL), buf);
	L("recv", recv(fd, buf, 100, MSG_WAITALL));
	t_join(0);
	return t_done();
}
