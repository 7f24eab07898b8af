/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <arpa/inet.h>
#include <cmocka.h>

#include "cli/format.h"

static void test_bytes(void **state)
{
	static const struct {
		uint64_t n;
		const char *want;
	} cases[] = {
		{ 0, "0" },
		{ 1023, "1023" },
		{ 1024, "1.0K" },
		{ 1536, "1.5K" },
		{ 10138, "9.9K" },
		{ 10240, "10K" },
		{ 1048063, "1023K" },
		{ 1048064, "1.0M" },
		{ 1048576, "1.0M" },
		{ 5ull << 30, "5.0G" },
		{ 3ull << 40, "3.0T" },
		{ UINT64_MAX, "16E" },
	};
	char buf[16];

	(void)state;
	for (size_t i = 0; i < CV_ARRAY_LEN(cases); i++)
		assert_string_equal(cli_bytes(buf, cases[i].n), cases[i].want);
}

static void test_age(void **state)
{
	const uint64_t s = 1000000000;
	char buf[16];

	(void)state;
	assert_string_equal(cli_age(buf, 5000000), "5ms");
	assert_string_equal(cli_age(buf, 12 * s), "12s");
	assert_string_equal(cli_age(buf, 185 * s), "3m05s");
	assert_string_equal(cli_age(buf, 7625 * s), "2h07m");
	assert_string_equal(cli_age(buf, 4 * 86400 * s + 7300 * s), "4d02h");
	assert_true(strlen(cli_age(buf, UINT64_MAX)) < 16);
}

static void test_addr(void **state)
{
	uint8_t a[16];
	char buf[72];

	(void)state;
	inet_pton(AF_INET, "127.0.0.1", a);
	assert_string_equal(cli_addr(buf, AF_INET, a, 6379), "127.0.0.1:6379");
	inet_pton(AF_INET6, "fe80::1", a);
	assert_string_equal(cli_addr(buf, AF_INET6, a, 65535), "[fe80::1]:65535");
	assert_string_equal(cli_addr(buf, 0, a, 1), "?");
	assert_string_equal(cli_addr(buf, 77, a, 1), "?");
}

static char text[4096];

static FILE *open_text(void)
{
	memset(text, 0, sizeof(text));
	return fmemopen(text, sizeof(text), "w");
}

static void test_table(void **state)
{
	struct cli_table t = { .columns = 3, .right = 2 };
	FILE *f = open_text();

	(void)state;
	cli_table_row(&t, (const char *const[]){ "Name", "N", "Last" }, NULL);
	cli_table_row(&t, (const char *const[]){ "a", "1000", "x" }, "note");
	for (int i = 0; i < 100; i++)
		cli_table_row(&t, (const char *const[]){ "bb", "2", "" }, NULL);
	cli_table_print(&t, f);
	fclose(f);
	cli_table_free(&t);
	assert_memory_equal(text, "Name     N  Last\na     1000  x\n    note\nbb       2  \n", 53);
}

static void test_json(void **state)
{
	struct cli_json j = { 0 };

	(void)state;
	j.out = open_text();
	cli_json_open(&j, NULL, '{');
	cli_json_u64(&j, "n", UINT64_MAX);
	cli_json_open(&j, "empty", '[');
	cli_json_close(&j, ']');
	cli_json_open(&j, "list", '[');
	cli_json_str(&j, NULL, "a\"b\\\n\x7f\xff");
	cli_json_str(&j, NULL, NULL);
	cli_json_close(&j, ']');
	cli_json_bool(&j, "yes", true);
	cli_json_close(&j, '}');
	fclose(j.out);
	assert_string_equal(text, "{\n  \"n\": 18446744073709551615,\n  \"empty\": [],\n  \"list\": [\n    \"a\\\"b\\\\\\u000a\\u007f\\u00ff\",\n"
				  "    null\n  ],\n  \"yes\": true\n}\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_bytes), cmocka_unit_test(test_age),  cmocka_unit_test(test_addr),
		cmocka_unit_test(test_table), cmocka_unit_test(test_json),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
