/* SPDX-License-Identifier: Apache-2.0 */
/* The man pages say what the program does: their lists are those of the headers, and every option of a command's --help is in its page. */
#include <ctype.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "cli/cli.h"
#include "observe/stats.h"

static char page[65536];

/* The page without roff's escaped hyphens. */
static void load(const char *name)
{
	const char *src = getenv("CV_SRCDIR");
	char path[512];
	size_t n = 0;
	FILE *f;
	int c;

	snprintf(path, sizeof(path), "%s/docs/%s.1", src ? src : ".", name);
	f = fopen(path, "r");
	if (!f)
		fail_msg("%s: cannot be read", path);
	while ((c = getc(f)) != EOF && n < sizeof(page) - 1) {
		if (c == '\\') {
			c = getc(f);
			if (c != '-')
				page[n++] = '\\';
		}
		page[n++] = (char)c;
	}
	page[n] = '\0';
	fclose(f);
}

static void must_list(const char *name, const char *text)
{
	char entry[512];

	snprintf(entry, sizeof(entry), "\n.TP\n.B %s\n%s\n.", name, text);
	if (!strstr(page, entry))
		fail_msg("the page lacks:%s", entry);
}

static void test_reasons(void **state)
{
	(void)state;
	load("culvert-reasons");
	for (unsigned i = 0; i < CV_REASON_COUNT; i++)
		must_list(cv_reason_name(i), cv_reason_text(i));
}

static void test_counters(void **state)
{
	(void)state;
	load("culvert-stat");
#define X(id, name, help) must_list(name, help);
	CV_COUNTERS(X)
#undef X
}

static void check_options(const char *name, const char *help)
{
	unsigned options = 0;

	load(name);
	for (const char *p = strstr(help, "\n  -"); p; p = strstr(p + 1, "\n  -")) {
		char option[40];
		const char *l = strstr(p, "--");
		size_t len = 2;

		assert_non_null(l);
		while (isalpha((unsigned char)l[len]) || l[len] == '-')
			len++;
		snprintf(option, sizeof(option), "%.*s", (int)len, l);
		if (!strstr(page, option))
			fail_msg("%s.1 lacks %s", name, option);
		options++;
	}
	assert_true(options >= 2);
}

static void test_options(void **state)
{
	(void)state;
	check_options("culvert-ss", cli_ss_help);
	check_options("culvert-stat", cli_stat_help);
	check_options("culvert-run", cli_run_help);
	check_options("culvert-check", cli_check_help);
	check_options("culvert-reasons", cli_reasons_help);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_reasons),
		cmocka_unit_test(test_counters),
		cmocka_unit_test(test_options),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
