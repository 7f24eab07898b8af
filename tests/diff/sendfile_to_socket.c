/* SPDX-License-Identifier: Apache-2.0 */
/* diff: accelerate=yes reasons=call */
/* sendfile from a file, with and without an offset, between ordinary sends. */
#include "t.h"
#include <sys/sendfile.h>

#define SIZE 300000

static void peer(int fd)
{
	t_warm_follow(fd);
	t_drain("recv", fd);
}

int main(void)
{
	static char buf[SIZE];
	uint64_t seed = 17;
	size_t done = 0;
	int fd, f;
	off_t off = 100;

	t_init();
	fd = t_peer(peer);
	t_warm_lead(fd);
	t_fill(buf, SIZE, &seed);
	f = memfd_create("f", MFD_CLOEXEC);
	t_need(write(f, buf, SIZE) == SIZE);
	L("send", send(fd, "head", 4, 0));
	L("sendfile with offset", sendfile(fd, f, &off, 1000));
	printf("offset %d, position %d\n", (int)off, (int)lseek(f, 0, SEEK_CUR));
	lseek(f, 0, SEEK_SET);
	while (done < SIZE) {
		ssize_t r = sendfile(fd, f, NULL, SIZE - done);

		t_need(r > 0);
		done += (size_t)r;
	}
	L("sendfile at the end", sendfile(fd, f, NULL, 10));
	L("sendfile, bad fd", sendfile(fd, 900, NULL, 10));
	L("send", send(fd, "tail", 4, 0));
	close(fd);
	t_join(0);
	return t_done();
}
