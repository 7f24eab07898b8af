/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "observe/reason.h"

static void test_names_are_words_and_unique(void **state)
{
	(void)state;
	for (unsigned i = 0; i < CV_REASON_COUNT; i++) {
		assert_true(strlen(cv_reason_name(i)) > 0);
		assert_null(strpbrk(cv_reason_name(i), " \t\"\\"));
		assert_true(strlen(cv_reason_text(i)) > 5);
		for (unsigned j = 0; j < i; j++)
			assert_string_not_equal(cv_reason_name(i), cv_reason_name(j));
	}
	assert_string_equal(cv_reason_name(CV_REASON_PEER_ABSENT), "peer-absent");
}

static void test_out_of_range(void **state)
{
	(void)state;
	assert_string_equal(cv_reason_name(CV_REASON_COUNT), "?");
	assert_string_equal(cv_reason_name(255), "?");
	assert_non_null(cv_reason_text(4000000000u));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_names_are_words_and_unique),
		cmocka_unit_test(test_out_of_range),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
