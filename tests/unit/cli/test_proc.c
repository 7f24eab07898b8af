/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <unistd.h>
#include <cmocka.h>

#include "cli/format.h"
#include "cli/proc.h"

static void test_parse_lines(void **state)
{
	struct cli_socket s;

	(void)state;
	assert_true(cli_socket_parse(&s, "   0: 0100007F:18EB 0200007F:C350 01 00000000:00000000 00:00000000 00000000   999        0 31337 1 0\n",
				     false));
	assert_int_equal(s.inode, 31337);
	assert_int_equal(s.local_port, 6379);
	assert_int_equal(s.peer_port, 50000);
	assert_int_equal(s.state, TCP_ESTABLISHED);
	assert_int_equal(s.local[0], 127);
	assert_int_equal(s.peer[3], 2);
	assert_false(cli_socket_parse(&s, "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n", false));
	assert_false(cli_socket_parse(&s, "   0: 0100007F:18EB 0200007F:C350 01\n", false));
	assert_false(cli_socket_parse(&s, "   0: 01:18EB 02:C350 01 00000000:00000000 00:00000000 00000000   999        0 31337 1 0\n", false));
	assert_false(cli_socket_parse(&s, "", true));
}

static void check_real(int family, const struct sockaddr *bound, socklen_t len)
{
	int l = socket(family, SOCK_STREAM, 0), c = socket(family, SOCK_STREAM, 0);
	struct sockaddr_storage a;
	struct cli_sockets all;
	const struct cli_socket *s;
	bool denied = false;
	char text[72];

	if (bind(l, bound, len) < 0) {
		close(l);
		close(c);
		return; /* no IPv6 here */
	}
	assert_int_equal(listen(l, 1), 0);
	assert_int_equal(getsockname(l, (struct sockaddr *)&a, &len), 0);
	assert_int_equal(connect(c, (struct sockaddr *)&a, len), 0);
	assert_int_equal(cli_sockets_load(&all, (uint32_t)getpid()), 0);
	s = cli_sockets_find(&all, cli_proc_socket((uint32_t)getpid(), c, &denied));
	assert_non_null(s);
	assert_false(denied);
	assert_string_equal(cli_tcp_state(s->state), "ESTAB");
	assert_int_equal(s->peer_port, ntohs(((struct sockaddr_in *)&a)->sin_port));
	cli_addr(text, s->family, s->peer, s->peer_port);
	assert_memory_equal(text, family == AF_INET ? "127.0.0.1:" : "[::1]:", family == AF_INET ? 10 : 6);
	s = cli_sockets_find(&all, cli_proc_socket((uint32_t)getpid(), l, &denied));
	assert_string_equal(cli_tcp_state(s->state), "LISTEN");
	cli_sockets_free(&all);
	close(l);
	close(c);
}

static void test_real_sockets(void **state)
{
	struct sockaddr_in in = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	struct sockaddr_in6 in6 = { .sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT };
	bool denied = false;

	(void)state;
	check_real(AF_INET, (struct sockaddr *)&in, sizeof(in));
	check_real(AF_INET6, (struct sockaddr *)&in6, sizeof(in6));
	assert_int_equal(cli_proc_socket((uint32_t)getpid(), 9999, &denied), 0);
	assert_int_equal(cli_proc_socket((uint32_t)getpid(), -1, &denied), 0);
	assert_false(denied);
}

static void test_alive(void **state)
{
	(void)state;
	assert_true(cli_proc_alive((uint32_t)getpid(), 0));
	assert_false(cli_proc_alive((uint32_t)getpid(), 1));
	assert_false(cli_proc_alive(INT32_MAX, 0));
	assert_true(cli_proc_is_of((uint32_t)getpid(), getuid()));
	assert_true(cli_proc_is_of((uint32_t)getpid(), 0));
	assert_false(cli_proc_is_of((uint32_t)getpid(), 4711));
}

static void test_find_by_namespace(void **state)
{
	uint32_t ns = cli_proc_pid_ns();

	(void)state;
	if (!ns)
		skip();
	assert_int_equal(cli_proc_find(ns, (uint32_t)getpid(), 0), getpid());
	assert_int_equal(cli_proc_find(ns + 1, (uint32_t)getpid(), 0), 0);
}

static void test_states(void **state)
{
	(void)state;
	assert_string_equal(cli_tcp_state(TCP_CLOSE_WAIT), "CLOSE-WAIT");
	assert_string_equal(cli_tcp_state(TCP_CLOSING), "CLOSING");
	assert_string_equal(cli_tcp_state(200), "?");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_parse_lines), cmocka_unit_test(test_real_sockets),      cmocka_unit_test(test_alive),
		cmocka_unit_test(test_states),	    cmocka_unit_test(test_find_by_namespace),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
