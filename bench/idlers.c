/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Opens --clients connections to a Redis server, does --count PINGs on each, says "idle", and then sleeps with all of them open until its
 * standard input ends.
 */
#include "common.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char usage[] = "usage: idlers client --port N [--addr A] [--clients N] [--count PINGS]\n";

int main(int argc, char **argv)
{
	struct bench_options opt;
	char buf[8];
	int *fd;

	bench_parse(&opt, argc, argv, usage);
	fd = calloc(opt.clients, sizeof(*fd));
	if (!fd)
		bench_die("memory");
	for (unsigned i = 0; i < opt.clients; i++) {
		fd[i] = bench_connect(&opt, 0, true);
		if (fd[i] < 0)
			bench_die("connect");
	}
	for (uint64_t r = 0; r < (opt.count ? opt.count : 200); r++) {
		for (unsigned i = 0; i < opt.clients; i++) {
			bench_send_all(fd[i], "PING\r\n", 6);
			if (!bench_recv_all(fd[i], buf, 7) || memcmp(buf, "+PONG\r\n", 7)) {
				errno = EPROTO;
				bench_die("PING");
			}
		}
	}
	puts("idle");
	fflush(stdout);
	while (read(0, buf, sizeof(buf)) > 0)
		;
	return 0;
}
