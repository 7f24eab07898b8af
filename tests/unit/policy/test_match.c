/* SPDX-License-Identifier: Apache-2.0 */
#include "test.h"

#include "../../../src/policy/match.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <sys/un.h>

static char why[320];

static struct cv_rule rule(const char *text)
{
	struct cv_rule r;

	if (cv_rule_parse(text, &r, why, sizeof(why)))
		fail_msg("%s: %s", text, why);
	return r;
}

static const struct sockaddr *at(const char *addr, uint16_t port)
{
	static struct sockaddr_storage ss;
	struct sockaddr_in *v4 = (struct sockaddr_in *)&ss;
	struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)&ss;

	memset(&ss, 0, sizeof(ss));
	if (strchr(addr, ':')) {
		v6->sin6_family = AF_INET6;
		v6->sin6_port = htons(port);
		assert_int_equal(inet_pton(AF_INET6, addr, &v6->sin6_addr), 1);
	} else {
		v4->sin_family = AF_INET;
		v4->sin_port = htons(port);
		assert_int_equal(inet_pton(AF_INET, addr, &v4->sin_addr), 1);
	}
	return (struct sockaddr *)&ss;
}

static bool server_fits(const char *text, const char *addr, uint16_t port)
{
	struct cv_rule r = rule(text);

	return cv_rule_match(&r, CV_ROLE_SERVER, at(addr, port));
}

static void test_ipv4(void **state)
{
	(void)state;
	assert_true(server_fits("server 10.1.2.3:6379", "10.1.2.3", 6379));
	assert_false(server_fits("server 10.1.2.3:6379", "10.1.2.3", 6380));
	assert_false(server_fits("server 10.1.2.3:6379", "10.1.2.4", 6379));
	assert_true(server_fits("server 10.1.2.3/8:6379", "10.255.0.1", 6379)); /* bits beyond LEN do not count */
	assert_false(server_fits("server 10.0.0.0/8:6379", "11.0.0.1", 6379));
	assert_true(server_fits("server 10.1.128.0/17:*", "10.1.200.1", 1));
	assert_false(server_fits("server 10.1.128.0/17:*", "10.1.127.1", 1));
	assert_true(server_fits("server 0.0.0.0/0:*", "1.2.3.4", 65535));
	assert_false(server_fits("server 0.0.0.0/0:*", "2001:db8::1", 80));
	assert_true(server_fits("server\t 10.1.2.3/32:6379", "10.1.2.3", 6379));
}

static void test_ipv6(void **state)
{
	(void)state;
	assert_true(server_fits("server [::1]:80", "::1", 80));
	assert_false(server_fits("server [::1]:80", "::2", 80));
	assert_true(server_fits("server [2001:db8::]/32:80-90", "2001:db8:1::7", 90));
	assert_true(server_fits("server [2001:db8::/32]:80-90", "2001:db8:1::7", 80));
	assert_false(server_fits("server [2001:db8::]/32:80-90", "2001:db9::", 80));
	assert_true(server_fits("server [2001:db8::]/33:*", "2001:db8:7fff::", 80));
	assert_false(server_fits("server [2001:db8::]/33:*", "2001:db8:8000::", 80));
	assert_false(server_fits("server [::1]:80", "127.0.0.1", 80));
}

static void test_v4_mapped(void **state)
{
	(void)state;
	assert_true(server_fits("server 10.0.0.0/8:*", "::ffff:10.9.9.9", 80));
	assert_false(server_fits("server 10.0.0.0/8:*", "::ffff:11.9.9.9", 80));
	assert_false(server_fits("server [::]/0:*", "::ffff:10.9.9.9", 80));
	assert_true(server_fits("server [::ffff:10.0.0.0]/104:*", "10.9.9.9", 80));
	assert_true(server_fits("server [::ffff:10.0.0.0]/104:*", "::ffff:10.9.9.9", 80));
	assert_false(server_fits("server [::ffff:10.0.0.0]/104:*", "11.9.9.9", 80));
}

static void test_any(void **state)
{
	struct cv_rule any = rule("both *:*"), port = rule("both *:80-81"), server = rule("server *:*");
	struct sockaddr_un un = { .sun_family = AF_UNIX };

	(void)state;
	assert_true(cv_rule_is_any(&any));
	assert_false(cv_rule_is_any(&port));
	assert_false(cv_rule_is_any(&server));
	assert_true(cv_rule_match(&any, CV_ROLE_NONE, NULL));
	assert_true(cv_rule_match(&port, CV_ROLE_CLIENT, at("::1", 81)));
	assert_true(cv_rule_match(&port, CV_ROLE_SERVER, at("1.2.3.4", 80)));
	assert_false(cv_rule_match(&port, CV_ROLE_SERVER, at("1.2.3.4", 79)));
	assert_false(cv_rule_match(&port, CV_ROLE_SERVER, at("1.2.3.4", 82)));
	assert_false(cv_rule_match(&port, CV_ROLE_SERVER, NULL));
	assert_false(cv_rule_match(&port, CV_ROLE_SERVER, (struct sockaddr *)&un));
	assert_false(cv_rule_match(&port, CV_ROLE_NONE, at("::1", 81)));
}

static void test_roles(void **state)
{
	struct cv_rule client = rule("client *:80"), server = rule("server *:80");

	(void)state;
	assert_true(cv_rule_match(&client, CV_ROLE_CLIENT, at("::1", 80)));
	assert_false(cv_rule_match(&client, CV_ROLE_SERVER, at("::1", 80)));
	assert_true(cv_rule_match(&server, CV_ROLE_SERVER, at("::1", 80)));
	assert_false(cv_rule_match(&server, CV_ROLE_CLIENT, at("::1", 80)));
}

static void test_mistakes(void **state)
{
	static const struct {
		const char *text, *why;
	} cases[] = {
		{ "", "wants: server|client|both ADDR[/LEN]:PORT[-PORT]" },
		{ "sever *:80", "\"sever\" is no role; did you mean \"server\"?" },
		{ "*:80", "\"*:80\" is no role; write server, client or both before the address" },
		{ "server", "the address and port are missing: server|client|both ADDR[/LEN]:PORT[-PORT]" },
		{ "server  ", "the address and port are missing: server|client|both ADDR[/LEN]:PORT[-PORT]" },
		{ "both *:80 *:81", "\"*:80 *:81\": one address and port to a line; write another match line for the next" },
		{ "both *", "the port is missing in \"*\"; write :* for any" },
		{ "both 6379", "the port is missing in \"6379\"; write :* for any" },
		{ "both *:", "the port is missing in \"*:\"; write :* for any" },
		{ "both [::1]", "the port is missing in \"[::1]\"; write :* for any" },
		{ "both *:0", "\"0\" is no port; write 1 to 65535, or * for any" },
		{ "both *:65536", "\"65536\" is no port; write 1 to 65535, or * for any" },
		{ "both *:99999999999999999999", "\"99999999999999999999\" is no port; write 1 to 65535, or * for any" },
		{ "both *:http", "\"http\" is no port; write 1 to 65535, or * for any" },
		{ "both *:80-", "\"\" is no port; write 1 to 65535, or * for any" },
		{ "both *:-80", "\"\" is no port; write 1 to 65535, or * for any" },
		{ "both *:80-x", "\"x\" is no port; write 1 to 65535, or * for any" },
		{ "both *:80-79", "the port range \"80-79\" is empty; the lower port comes first" },
		{ "both ::1:80", "\"::1:80\": IPv6 addresses stand in brackets, as in [2001:db8::]/32:6379" },
		{ "both [::1:80", "the bracket of \"[::1:80\" is not closed" },
		{ "both [::1]x:80", "\"x\" after the address is not understood; write [ADDR/LEN]:PORT" },
		{ "both [::1/3]/3:80", "\"/3\" after the address is not understood; write [ADDR/LEN]:PORT" },
		{ "both [127.0.0.1]:80", "\"127.0.0.1\" is no IPv6 address (host names are not looked up)" },
		{ "both localhost:80", "\"localhost\" is no IPv4 address (host names are not looked up)" },
		{ "both :80", "\"\" is no IPv4 address (host names are not looked up)" },
		{ "both 1.2.3:80", "\"1.2.3\" is no IPv4 address (host names are not looked up)" },
		{ "both */8:80", "\"*\" is no IPv4 address (host names are not looked up)" },
		{ "both 1.2.3.4/33:80", "\"33\" is no prefix length; write 0 to 32" },
		{ "both 1.2.3.4/:80", "\"\" is no prefix length; write 0 to 32" },
		{ "both [::]/129:80", "\"129\" is no prefix length; write 0 to 128" },
		{ "both [fe80::1%eth0]:80", "\"fe80::1%eth0\" is no IPv6 address (host names are not looked up)" },
		{ "both aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa:80",
		  "\"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa...\" is no IPv4 address (host names are not looked up)" },
	};
	struct cv_rule r;

	(void)state;
	for (size_t i = 0; i < CV_ARRAY_LEN(cases); i++) {
		if (cv_rule_parse(cases[i].text, &r, why, sizeof(why)) != -EINVAL)
			fail_msg("accepted: %s", cases[i].text);
		assert_string_equal(why, cases[i].why);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_ipv4), cmocka_unit_test(test_ipv6),  cmocka_unit_test(test_v4_mapped),
		cmocka_unit_test(test_any),  cmocka_unit_test(test_roles), cmocka_unit_test(test_mistakes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
