/* SPDX-License-Identifier: Apache-2.0 */
/* Who holds the other end of a connection: both ways of asking, on real connections. */
#include "../../../src/link/holder.c" /* its two ways are private */
#include <arpa/inet.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <unistd.h>
/* after the headers that it needs */
#include <cmocka.h>

struct pair {
	int listener, client, server;
	struct cv_tuple t;
};

static void name_of(struct sockaddr_storage *a, uint8_t out[16], uint16_t *port)
{
	if (a->ss_family == AF_INET) {
		memset(out, 0, 10);
		out[10] = out[11] = 0xff;
		memcpy(out + 12, &((struct sockaddr_in *)a)->sin_addr, 4);
		*port = ((struct sockaddr_in *)a)->sin_port;
	} else {
		memcpy(out, &((struct sockaddr_in6 *)a)->sin6_addr, 16);
		*port = ((struct sockaddr_in6 *)a)->sin6_port;
	}
}

/* listen: AF_INET6 takes IPv4 too. */
static struct pair make(int listen_family, int connect_family, bool take)
{
	struct sockaddr_in6 any6 = {.sin6_family = AF_INET6};
	struct sockaddr_in lo4 = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	struct sockaddr_in6 lo6 = {.sin6_family = AF_INET6, .sin6_addr = in6addr_loopback};
	struct sockaddr_storage a;
	socklen_t len = sizeof(a);
	struct pair p = {.listener = socket(listen_family, SOCK_STREAM, 0), .client = socket(connect_family, SOCK_STREAM, 0), .server = -1};
	uint16_t port;
	int off = 0;

	if (listen_family == AF_INET6) {
		setsockopt(p.listener, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off));
		assert_int_equal(bind(p.listener, (struct sockaddr *)&any6, sizeof(any6)), 0);
	} else {
		assert_int_equal(bind(p.listener, (struct sockaddr *)&lo4, sizeof(lo4)), 0);
	}
	assert_int_equal(listen(p.listener, 1), 0);
	getsockname(p.listener, (struct sockaddr *)&a, &len);
	name_of(&a, p.t.server, &port);
	lo4.sin_port = lo6.sin6_port = port;
	if (connect_family == AF_INET)
		assert_int_equal(connect(p.client, (struct sockaddr *)&lo4, sizeof(lo4)), 0);
	else
		assert_int_equal(connect(p.client, (struct sockaddr *)&lo6, sizeof(lo6)), 0);
	len = sizeof(a);
	getsockname(p.client, (struct sockaddr *)&a, &len);
	name_of(&a, p.t.client, &p.t.client_port);
	len = sizeof(a);
	getpeername(p.client, (struct sockaddr *)&a, &len);
	name_of(&a, p.t.server, &p.t.server_port);
	if (take)
		p.server = accept(p.listener, NULL, NULL);
	return p;
}

static void end(struct pair *p)
{
	close(p->listener);
	close(p->client);
	if (p->server >= 0)
		close(p->server);
}

static void check(const struct pair *p, bool server, int want)
{
	struct end e = end_of(&p->t, server);
	uint32_t uid = 12345;
	int err = by_netlink(&e, &uid);

	/* A sandbox may forbid it; but never a wrong answer. */
	assert_true(err == want || (err && err != -ENOENT) || (!want && err == -ENOENT));
	if (!err)
		assert_int_equal(uid, geteuid());
	uid = 12345;
	assert_int_equal(by_proc(&e, &uid), want);
	if (!want)
		assert_int_equal(uid, geteuid());
	assert_int_equal(cv_holder_uid(&p->t, server, &uid), want);
}

static void both_ends_are_known(void **state)
{
	static const int family[][2] = {{AF_INET, AF_INET}, {AF_INET6, AF_INET6}, {AF_INET6, AF_INET}};

	(void)state;
	for (size_t i = 0; i < CV_ARRAY_LEN(family); i++) {
		struct pair p = make(family[i][0], family[i][1], true);

		check(&p, false, 0);
		check(&p, true, 0);
		assert_true(cv_holder_is(&p.t, true, geteuid()));
		assert_false(cv_holder_is(&p.t, true, geteuid() + 1));
		assert_false(cv_holder_is(&p.t, false, 65533));
		end(&p);
	}
}

/* Nobody holds the server's end of what nobody has accepted; nor a listener's, for another client. */
static void not_accepted_is_nobody(void **state)
{
	struct pair p = make(AF_INET, AF_INET, false);

	(void)state;
	check(&p, true, -ENOENT);
	assert_false(cv_holder_is(&p.t, true, geteuid() + 1));
	p.t.client_port = (uint16_t)(p.t.client_port ^ htons(1));
	check(&p, true, -ENOENT);
	check(&p, false, -ENOENT);
	end(&p);
}

static void lines(void **state)
{
	static const char line[] = "   2: 0100007F:1A2B 0100007F:C3D4 01 00000000:00000000 02:000A7214 00000000  1000        0 123456 2 0000000000000000";
	uint32_t uid = 0;

	(void)state;
	assert_true(line_uid(line, "0100007F:1A2B 0100007F:C3D4", &uid));
	assert_int_equal(uid, 1000);
	assert_false(line_uid(line, "0100007F:1A2B 0100007F:C3D5", &uid));
	assert_false(line_uid("  sl  local_address rem_address", "0100007F:1A2B 0100007F:C3D4", &uid));
	assert_false(line_uid("", "0100007F:1A2B", &uid));
	assert_false(line_uid("2:", "0100007F:1A2B", &uid));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(both_ends_are_known),
		cmocka_unit_test(not_accepted_is_nobody),
		cmocka_unit_test(lines),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
