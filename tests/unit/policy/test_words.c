/* SPDX-License-Identifier: Apache-2.0 */
#include "test.h"

#include "../../../src/policy/words.h"

static const char *nearest(const char *word)
{
	static const char *const candidates[] = { "ring", "ring-max", "spin", "spin-max", "transport", "log" };
	struct cv_nearest n = CV_NEAREST(word);

	for (size_t i = 0; i < CV_ARRAY_LEN(candidates); i++)
		cv_nearest_try(&n, candidates[i]);
	return n.best;
}

static void test_nearest(void **state)
{
	(void)state;
	assert_string_equal(nearest("trasport"), "transport");
	assert_string_equal(nearest("tranpsort"), "transport"); /* swapped neighbours are one mistake */
	assert_string_equal(nearest("Ring_Max"), "ring-max");
	assert_string_equal(nearest("rings"), "ring");
	assert_string_equal(nearest("spinmax"), "spin-max");
	assert_string_equal(nearest("lg"), "log");
	assert_string_equal(nearest("log-threshold"), "log");
	assert_string_equal(nearest("trans"), "transport");
	assert_null(nearest("r"));
	assert_null(nearest("frobnicate"));
	assert_null(nearest("")); /* nothing is near nothing */
	assert_null(nearest("a-word-that-is-much-longer-than-any-slip-of-a-finger-would-be"));
}

static void test_quote(void **state)
{
	char longest[200];

	(void)state;
	memset(longest, 'x', sizeof(longest));
	assert_string_equal(cv_quote("ab", 2).text, "\"ab\"");
	assert_string_equal(cv_quote("", 0).text, "\"\"");
	assert_string_equal(cv_quote("a\x1b[2J\n\xff", 7).text, "\"a?[2J??\"");
	assert_int_equal(strlen(cv_quote(longest, 61).text), 63);
	assert_null(strstr(cv_quote(longest, 61).text, "..."));
	assert_int_equal(strlen(cv_quote(longest, 62).text), 63);
	assert_string_equal(cv_quote(longest, 200).text + 59, "...\"");
}

static void test_glob(void **state)
{
	static const struct {
		const char *glob, *text;
		bool match;
	} cases[] = {
		{ "redis-server", "redis-server", true },
		{ "redis-server", "redis-serve", false },
		{ "redis-serve", "redis-server", false },
		{ "redis-*", "redis-cli", true },
		{ "*", "", true },
		{ "*", "anything", true },
		{ "", "", true },
		{ "", "x", false },
		{ "?", "", false },
		{ "?", "x", true },
		{ "*-*-*", "a-b", false },
		{ "*-*-*", "a-b-c-d", true },
		{ "*ab*ab", "abxababab", true },
		{ "/opt/*/bin/x", "/opt/a/b/bin/x", true },
		{ "[a-c]x", "bx", true },
		{ "[a-c]x", "dx", false },
		{ "[!a-c]x", "dx", true },
		{ "[^a-c]x", "ax", false },
		{ "[]x]", "]", true },
		{ "[a-]", "-", true },
		{ "[ab", "[ab", true }, /* never closed: itself */
		{ "[ab", "a", false },
		{ "\\*x", "*x", true },
		{ "\\*x", "ax", false },
		{ "\\", "\\", true },
		{ "**", "abc", true },
	};

	(void)state;
	for (size_t i = 0; i < CV_ARRAY_LEN(cases); i++)
		if (cv_glob_match(cases[i].glob, cases[i].text) != cases[i].match)
			fail_msg("glob %s, text %s", cases[i].glob, cases[i].text);
}

/* The textbook's exponential case: must be over at once. */
static void test_glob_is_bounded(void **state)
{
	char glob[401], text[2001];

	(void)state;
	for (int i = 0; i < 400; i += 2)
		memcpy(glob + i, "*a", 2);
	glob[399] = 'b';
	glob[400] = '\0';
	memset(text, 'a', 2000);
	text[2000] = '\0';
	assert_false(cv_glob_match(glob, text));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_nearest),
		cmocka_unit_test(test_quote),
		cmocka_unit_test(test_glob),
		cmocka_unit_test(test_glob_is_bounded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
