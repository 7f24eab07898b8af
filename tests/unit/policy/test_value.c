/* SPDX-License-Identifier: Apache-2.0 */
#include "test.h"

#include "../../../src/observe/log.h"
#include "../../../src/policy/value.h"

#include <errno.h>

#define KIB 1024ull
#define MIB (1024 * KIB)

static char why[CV_WHY_MAX];

static struct cv_value value(enum cv_key_id key, const char *text)
{
	struct cv_value v = { 0 };

	if (cv_value_parse(&cv_keys[key], text, &v, why, sizeof(why)))
		fail_msg("%s = %s: %s", cv_keys[key].name, text, why);
	assert_true(v.set);
	return v;
}

static uint64_t number(enum cv_key_id key, const char *text)
{
	return value(key, text).number;
}

static void test_times(void **state)
{
	(void)state;
	assert_int_equal(number(CV_KEY_SPIN_MAX, "0"), 0);
	assert_int_equal(number(CV_KEY_SPIN_MAX, "7ns"), 7);
	assert_int_equal(number(CV_KEY_SPIN_MAX, "50us"), 50000);
	assert_int_equal(number(CV_KEY_SPIN_MAX, "50 us"), 50000);
	assert_int_equal(number(CV_KEY_SPIN_MAX, "3ms"), 3000000);
	assert_int_equal(number(CV_KEY_SPIN_MAX, "1s"), 1000000000);
	assert_int_equal(number(CV_KEY_HANDSHAKE_TIMEOUT, "60s"), 60000000000);
	assert_int_equal(number(CV_KEY_SPIN, "20us"), 20000);
	assert_int_equal(number(CV_KEY_SPIN, "adaptive"), CV_SPIN_ADAPTIVE);
}

static void test_sizes(void **state)
{
	(void)state;
	assert_int_equal(number(CV_KEY_SPILL_MAX, "0"), 0);
	assert_int_equal(number(CV_KEY_SPILL_MAX, "100"), 100);
	assert_int_equal(number(CV_KEY_SPILL_MAX, "100B"), 100);
	assert_int_equal(number(CV_KEY_SPILL_MAX, "3KiB"), 3 * KIB);
	assert_int_equal(number(CV_KEY_SPILL_MAX, "3k"), 3 * KIB);
	assert_int_equal(number(CV_KEY_SPILL_MAX, "3 K"), 3 * KIB);
	assert_int_equal(number(CV_KEY_SPILL_MAX, "3MiB"), 3 * MIB);
	assert_int_equal(number(CV_KEY_SPILL_MAX, "3M"), 3 * MIB);
	assert_int_equal(number(CV_KEY_SPILL_MAX, "0GiB"), 0);
	assert_int_equal(number(CV_KEY_SPILL_MAX, "256M"), 256 * MIB);
}

static void test_rings_are_powers_of_two(void **state)
{
	(void)state;
	assert_int_equal(number(CV_KEY_RING, "4KiB"), 4 * KIB);
	assert_int_equal(number(CV_KEY_RING, "4097"), 8 * KIB);
	assert_int_equal(number(CV_KEY_RING_MAX, "129MiB"), 256 * MIB);
	assert_int_equal(number(CV_KEY_RING_MAX, "256MiB"), 256 * MIB);
}

static void check_after(const char *text, uint64_t requests, uint64_t bytes)
{
	struct cv_value v = value(CV_KEY_UPGRADE_AFTER, text);

	assert_int_equal(v.after.requests, requests);
	assert_int_equal(v.after.bytes, bytes);
}

static void test_after(void **state)
{
	(void)state;
	check_after("0", 0, UINT64_MAX);
	check_after("0KiB", 0, UINT64_MAX);
	check_after("5, 0B", 0, UINT64_MAX);
	check_after("64", 64, UINT64_MAX);
	check_after("64 requests", 64, UINT64_MAX);
	check_after("1request", 1, UINT64_MAX);
	check_after("256KiB", UINT64_MAX, 256 * KIB);
	check_after("64 requests, 256KiB", 64, 256 * KIB);
	check_after("256 KiB,64", 64, 256 * KIB);
	check_after("  1 requests ,\t1B ", 1, 1);
}

static void check_transports(const char *text, int count, int first, int second)
{
	struct cv_value v = value(CV_KEY_TRANSPORT, text);

	assert_int_equal(v.transports.count, count);
	if (count > 0)
		assert_int_equal(v.transports.list[0], first);
	if (count > 1)
		assert_int_equal(v.transports.list[1], second);
}

static void test_transports(void **state)
{
	(void)state;
	check_transports("rdma shm tcp", 2, CV_TRANSPORT_RDMA, CV_TRANSPORT_SHM);
	check_transports("shm,rdma", 2, CV_TRANSPORT_SHM, CV_TRANSPORT_RDMA);
	check_transports(" shm ,\ttcp, rdma ", 1, CV_TRANSPORT_SHM, 0);
	check_transports("tcp", 0, 0, 0);
	check_transports("tcp shm rdma", 0, 0, 0);
}

static void test_words_and_paths(void **state)
{
	(void)state;
	assert_int_equal(number(CV_KEY_LOG, "none"), CV_LOG_NONE);
	assert_int_equal(number(CV_KEY_LOG, "debug"), CV_LOG_DEBUG);
	assert_int_equal(number(CV_KEY_STATS_KEEP, "yes"), 1);
	assert_int_equal(number(CV_KEY_STATS_KEEP, "no"), 0);
	assert_int_equal(number(CV_KEY_STATS_KEEP, "1"), 1);
	assert_int_equal(number(CV_KEY_STATS_KEEP, "off"), 0);
	assert_string_equal(value(CV_KEY_LOG_FILE, " /var/log/x y").text, "/var/log/x y");
	assert_string_equal(value(CV_KEY_PROFILE, "my own").text, "my own");
}

static void test_mistakes(void **state)
{
	static const struct {
		enum cv_key_id key;
		const char *text, *why;
	} cases[] = {
		{ CV_KEY_RING, "", "the value is missing" },
		{ CV_KEY_LOG, " \t", "the value is missing" },

		{ CV_KEY_SPIN_MAX, "50", "\"50\" needs a unit: ns, us, ms or s" },
		{ CV_KEY_SPIN_MAX, "50sec", "\"sec\" is no unit; write ns, us, ms or s" },
		{ CV_KEY_SPIN_MAX, "50uss", "\"uss\" is no unit; did you mean \"us\"? (ns, us, ms or s)" },
		{ CV_KEY_SPIN_MAX, "fast", "\"fast\" is no time; write a whole number and ns, us, ms or s" },
		{ CV_KEY_SPIN_MAX, "1.5us", "\"1.5us\" is no time; write a whole number and ns, us, ms or s" },
		{ CV_KEY_SPIN_MAX, "-1us", "\"-1us\" is no time; write a whole number and ns, us, ms or s" },
		{ CV_KEY_SPIN_MAX, "2s", "\"2s\" is too large; the most is 1s" },
		{ CV_KEY_SPIN_MAX, "18446744073709551617s", "\"18446744073709551617s\" is too large; the most is 1s" },
		{ CV_KEY_SPIN_MAX, "18446744073709551615s", "\"18446744073709551615s\" is too large; the most is 1s" },
		{ CV_KEY_HANDSHAKE_TIMEOUT, "0", "\"0\" is too small; the least is 1ms" },

		{ CV_KEY_RING, "64KB", "\"KB\" is no unit; did you mean \"KiB\"? (B, KiB (or k), MiB (or M) or GiB (or G))" },
		{ CV_KEY_RING, "64parsecs", "\"parsecs\" is no unit; write B, KiB (or k), MiB (or M) or GiB (or G)" },
		{ CV_KEY_RING, "big", "\"big\" is no size; write a whole number and B, KiB (or k), MiB (or M) or GiB (or G)" },
		{ CV_KEY_RING, "4095", "\"4095\" is too small; the least is 4KiB" },
		{ CV_KEY_RING, "1GiB", "\"1GiB\" is too large; the most is 256MiB" },
		{ CV_KEY_RING, "17179869184GiB", "\"17179869184GiB\" is too large; the most is 256MiB" },

		{ CV_KEY_SPIN, "adaptve", "\"adaptve\" is neither a time nor a word known here; did you mean \"adaptive\"?" },
		{ CV_KEY_SPIN, "Adaptive", "\"Adaptive\" is neither a time nor a word known here; did you mean \"adaptive\"?" },
		{ CV_KEY_SPIN, "x", "\"x\" is no time; write a whole number and ns, us, ms or s" },

		{ CV_KEY_UPGRADE_AFTER, "soon", "\"soon\" is neither requests nor a size; write for example: 64 requests, 256KiB" },
		{ CV_KEY_UPGRADE_AFTER, "64,", "\"\" is neither requests nor a size; write for example: 64 requests, 256KiB" },
		{ CV_KEY_UPGRADE_AFTER, "64 requests 256KiB",
		  "\"64 requests 256KiB\" is neither requests nor a size; write for example: 64 requests, 256KiB" },
		{ CV_KEY_UPGRADE_AFTER, "64 reqests", "\"reqests\" is no unit; did you mean \"requests\"? (requests, B, KiB, MiB or GiB)" },
		{ CV_KEY_UPGRADE_AFTER, "64 us", "\"us\" is no unit; write requests, B, KiB, MiB or GiB" },
		{ CV_KEY_UPGRADE_AFTER, "64, 65", "\"65\": the requests are given twice" },
		{ CV_KEY_UPGRADE_AFTER, "1k,1M", "\"1M\": the bytes are given twice" },
		{ CV_KEY_UPGRADE_AFTER, "99999999999999999999", "\"99999999999999999999\" is too large" },
		{ CV_KEY_UPGRADE_AFTER, "9223372036854775808", "\"9223372036854775808\" is too large" },
		{ CV_KEY_UPGRADE_AFTER, "17179869184GiB", "\"17179869184GiB\" is too large" },

		{ CV_KEY_TRANSPORT, "shmem", "\"shmem\" is no transport; did you mean \"shm\"? (tcp, shm, rdma)" },
		{ CV_KEY_TRANSPORT, "quic", "\"quic\" is no transport; write one of: tcp, shm, rdma" },
		{ CV_KEY_LOG, "verbose", "\"verbose\" is no log level; write one of: none, error, warn, info, debug" },
		{ CV_KEY_TRANSPORT, "shm rmda", "\"rmda\" is no transport; did you mean \"rdma\"? (tcp, shm, rdma)" },
		{ CV_KEY_TRANSPORT, "shm tcp shm", "shm is named twice" },
		{ CV_KEY_TRANSPORT, ",", "names no transport; write one or more of: tcp, shm, rdma" },

		{ CV_KEY_LOG, "warning", "\"warning\" is no log level; did you mean \"warn\"? (none, error, warn, info, debug)" },
		{ CV_KEY_LOG, "debg", "\"debg\" is no log level; did you mean \"debug\"? (none, error, warn, info, debug)" },
		{ CV_KEY_STATS_KEEP, "yess", "\"yess\" is no answer; did you mean \"yes\"? (no, yes, off, on, false, true, 0, 1)" },
		{ CV_KEY_STATS_KEEP, "perhaps", "\"perhaps\" is no answer; write one of: no, yes, off, on, false, true, 0, 1" },
		{ CV_KEY_LOG_FILE, "culvert.log", "\"culvert.log\" is no absolute path" },
		{ CV_KEY_MATCH, "both *:*", "cannot stand here" },
	};
	struct cv_value v;

	(void)state;
	for (size_t i = 0; i < CV_ARRAY_LEN(cases); i++) {
		memset(&v, 0x5a, sizeof(v));
		if (cv_value_parse(&cv_keys[cases[i].key], cases[i].text, &v, why, sizeof(why)) != -EINVAL)
			fail_msg("accepted: %s = %s", cv_keys[cases[i].key].name, cases[i].text);
		assert_string_equal(why, cases[i].why);
		assert_int_equal(v.number, 0x5a5a5a5a5a5a5a5a); /* untouched */
	}
}

static void test_long_path(void **state)
{
	char path[5000];
	struct cv_value v;

	(void)state;
	memset(path, '/', sizeof(path));
	path[4096] = '\0';
	assert_int_equal(cv_value_parse(&cv_keys[CV_KEY_STATS_DIR], path, &v, why, sizeof(why)), -EINVAL);
	assert_string_equal(why, "the path is longer than 4095 bytes");
	path[4095] = '\0';
	assert_int_equal(cv_value_parse(&cv_keys[CV_KEY_STATS_DIR], path, &v, why, sizeof(why)), 0);
}

/* Every row of the schema is complete, and its own default is a value that it accepts. */
static void test_schema(void **state)
{
	char env[CV_ENV_NAME_MAX];

	(void)state;
	for (unsigned i = 0; i < CV_KEY_COUNT; i++) {
		const struct cv_key *k = &cv_keys[i];

		assert_non_null(k->name);
		assert_non_null(k->help);
		assert_true(k->where);
		assert_ptr_equal(cv_key_find(k->name), k);
		assert_int_equal(k->unit != CV_UNIT_NONE, k->width != 0);
		assert_true(k->width == 0 || k->width == 8 || (k->width == 4 && k->max <= UINT32_MAX));
		assert_true(strlen(k->name) + sizeof("CULVERT_") <= CV_ENV_NAME_MAX);
		if (k->standard)
			value((enum cv_key_id)i, k->standard);
	}
	assert_null(cv_key_find("rings"));
	cv_key_env_name(&cv_keys[CV_KEY_UPGRADE_AFTER], env);
	assert_string_equal(env, "CULVERT_UPGRADE_AFTER");
}

static void test_amounts(void **state)
{
	(void)state;
	assert_string_equal(cv_amount(0, CV_UNIT_TIME).text, "0");
	assert_string_equal(cv_amount(1500000, CV_UNIT_TIME).text, "1500us");
	assert_string_equal(cv_amount(2000000000, CV_UNIT_TIME).text, "2s");
	assert_string_equal(cv_amount(64 * KIB, CV_UNIT_SIZE).text, "64KiB");
	assert_string_equal(cv_amount(1000, CV_UNIT_SIZE).text, "1000B");
	assert_string_equal(cv_amount(2 * KIB * MIB, CV_UNIT_SIZE).text, "2GiB");
	assert_string_equal(cv_amount(12, CV_UNIT_NONE).text, "12");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_times),	 cmocka_unit_test(test_sizes),	    cmocka_unit_test(test_rings_are_powers_of_two),
		cmocka_unit_test(test_after),	 cmocka_unit_test(test_transports), cmocka_unit_test(test_words_and_paths),
		cmocka_unit_test(test_mistakes), cmocka_unit_test(test_long_path),  cmocka_unit_test(test_schema),
		cmocka_unit_test(test_amounts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
