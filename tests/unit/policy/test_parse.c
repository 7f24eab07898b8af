/* SPDX-License-Identifier: Apache-2.0 */
/* From files to sections: what is accepted, what is reported and where. What the settings come to is test_policy's matter. */
#include "test.h"

#include "../../../src/policy/parse.h"

#include <errno.h>
#include <sys/resource.h>
#include <sys/stat.h>

static void test_clean_files_say_nothing(void **state)
{
	static const char text[] = "\xef\xbb\xbf# comment\r\n"
				   "\t; another\r\n"
				   "[defaults] # the process\r\n"
				   "   spin = 20us   # indented, and a comment\r\n"
				   "ring-max=1MiB;not a comment? it is none without a blank\r\n"
				   "\r\n"
				   " [ profile   p q ] ; x]\n"
				   "spin-max : 3us\n"
				   "[app [a-c]x]\n"
				   "transport = shm";
	struct problems p;
	const struct cv_policy *pol = load("/bin/bx", text, &p);

	(void)state;
	/* The one mistake that is in there on purpose. */
	assert_int_equal(p.count, 1);
	assert_int_equal(p.line, 5);
	assert_int_equal(pol->defaults.values[CV_KEY_SPIN].number, 20000);
	assert_int_equal(pol->defaults.values[CV_KEY_SPIN].line, 4);
	assert_int_equal(cv_parse_find_profile(pol, "p q")->values[CV_KEY_SPIN_MAX].number, 3000);
	assert_string_equal(pol->apps->title, "app [a-c]x");
	assert_int_equal(pol->apps->line, 9);
	assert_int_equal(pol->apps->values[CV_KEY_TRANSPORT].line, 10);
	cv_policy_free(pol);
}

static void test_mistakes(void **state)
{
	static const struct {
		const char *text;
		int line;
		const char *why;
	} cases[] = {
		{ "[defaults]\ntrasport = shm", 2, "there is no key \"trasport\"; did you mean \"transport\"?" },
		{ "[defaults]\nring_max = 1M", 2, "there is no key \"ring_max\"; did you mean \"ring-max\"?" },
		{ "[defaults]\n\n# x\nfrobnicate = 1", 4, "there is no key \"frobnicate\"; culvert.conf(5) has the list" },
		{ "[defaults]\nring = 5GiB", 2, "ring: \"5GiB\" is too large; the most is 256MiB" },
		{ "[defaults]\nring =", 2, "ring: the value is missing" },
		{ "[defaults]\nring = # x", 2, "ring: the value is missing" },
		{ "[defaults]\nring", 2, "the line is not understood; write KEY = VALUE or [SECTION]" },
		{ "[defaults]\nring\n\nspin = 0\n", 2, "the line is not understood; write KEY = VALUE or [SECTION]" },
		{ "[defaults]\n= 5", 2, "the line is not understood; write KEY = VALUE or [SECTION]" },
		{ "ring = 64KiB\n[defaults]", 1, "\"ring\" stands before the first section; begin with [defaults]" },
		{ "[default]\nring = x", 1, "there is no section \"default\"; did you mean \"defaults\"? What stands in it is ignored" },
		{ "[apps redis]\nring = x", 1, "there is no section \"apps redis\"; did you mean \"app\"? What stands in it is ignored" },
		{ "[zebra]\nring = x", 1,
		  "there is no section \"zebra\"; write [defaults], [profile NAME] or [app GLOB]. What stands in it is ignored" },
		{ "[]\nring = x", 1,
		  "there is no section \"\"; write [defaults], [profile NAME] or [app GLOB]. What stands in it is ignored" },
		{ "[app redis\nring = x", 1, "the section header \"[app redis\" does not end in \"]\"; what stands in it is ignored" },
		{ "[", 1, "the section header \"[\" does not end in \"]\"; what stands in it is ignored" },
		{ "[app x] y\n", 1, "the section header \"[app x] y\" does not end in \"]\"; what stands in it is ignored" },
		{ "[defaults x]\nring = x", 1, "[defaults] takes no name; what stands in it is ignored" },
		{ "[profile ]\nring = x", 1, "the profile's name is missing: [profile NAME]; what stands in it is ignored" },
		{ "[app]\nring = x", 1, "the program's name is missing: [app GLOB]; what stands in it is ignored" },
		{ "[defaults]\nmatch = both *:*", 2, "match cannot stand in this section; it belongs in [app GLOB]" },
		{ "[profile p]\nprofile = latency", 2, "profile cannot stand in this section; it belongs in [defaults] or [app GLOB]" },
		{ "[app x]\nlog = info", 2, "log cannot stand in this section; it belongs in [defaults]" },
		{ "[app x]\nmatch = both *", 2, "match: the port is missing in \"*\"; write :* for any" },
		{ "[app other]\nmatch = both *", 2, "match: the port is missing in \"*\"; write :* for any" },
		{ "[app other]\nspin = 7", 2, "spin: \"7\" needs a unit: ns, us, ms or s" },
		{ "[app x]\nprofile = latncy", 2, "there is no profile \"latncy\"; did you mean \"latency\"?" },
		{ "[app other]\nprofile = none-such", 2, "there is no profile \"none-such\"; write a section [profile NAME] for it" },
		{ "[defaults]\nprofile = mine\n[profile mime]", 2, "there is no profile \"mine\"; did you mean \"mime\"?" },
		{ "[defaults]\nspin\x01 = 1us", 2, "the line holds a control character (0x01) and is ignored" },
		{ "[defaults]\rspin = 1us", 1, "the line holds a control character (0x0d) and is ignored" },
		{ "[app a\x1b[2J]", 1, "the line holds a control character (0x1b) and is ignored" },
	};
	struct problems p;

	(void)state;
	for (size_t i = 0; i < CV_ARRAY_LEN(cases); i++) {
		cv_policy_free(load("/bin/x", cases[i].text, &p));
		if (p.count != 1 || p.line != cases[i].line || strcmp(p.text, cases[i].why))
			fail_msg("%s\nexpected %d: %s\ngot %d problems\n%s", cases[i].text, cases[i].line, cases[i].why, p.count, p.all);
		assert_string_equal(p.file, test_path("only.conf"));
	}
}

static void test_nul_bytes(void **state)
{
	static const char text[] = "[defaults]\nspin = 1\0us\nring = 4KiB\n\0\n";
	struct problems p;
	const struct cv_policy *pol = load_bytes("x", text, sizeof(text) - 1, &p);

	(void)state;
	assert_string_equal(p.all, "2: the line holds a control character (0x00) and is ignored\n"
				   "4: the line holds a control character (0x00) and is ignored\n");
	assert_int_equal(pol->defaults.values[CV_KEY_RING].number, 4096);
	cv_policy_free(pol);
}

static void test_long_lines(void **state)
{
	static char text[20000];
	struct problems p;
	const struct cv_policy *pol;
	int n;

	(void)state;
	/* 198 bytes go through, whatever blanks and comment surround them. */
	n = sprintf(text, "[defaults]\nlog-file = /%0186d          # %0500d\nring = 4KiB\n", 0, 0);
	pol = load_bytes("x", text, (size_t)n, &p);
	assert_string_equal(p.all, "");
	assert_int_equal(strlen(cv_policy_global(pol)->log_file), 187);
	cv_policy_free(pol);

	n = sprintf(text, "[defaults]\nlog-file = /%0187d\nring = 4KiB\n", 0);
	pol = load_bytes("x", text, (size_t)n, &p);
	assert_string_equal(p.all, "2: the line is longer than 198 bytes and is ignored\n");
	assert_int_equal(pol->defaults.values[CV_KEY_RING].line, 3);
	cv_policy_free(pol);

	/* Nothing of a long line is taken for another one. */
	n = sprintf(text, "[defaults]\nlog-file = /%0185d x = 1 spin = 3us [app x] %09000d\nring = 4KiB\n", 0, 0);
	pol = load_bytes("x", text, (size_t)n, &p);
	assert_string_equal(p.all, "2: the line is longer than 198 bytes and is ignored\n");
	assert_false(pol->defaults.values[CV_KEY_SPIN].set);
	cv_policy_free(pol);

	/* Section headers may be long, up to what a path may be. */
	n = sprintf(text, "[app /%0300d]\nring = 4KiB\n[app %04096d]\n", 0, 0);
	pol = load_bytes("x", text, (size_t)n, &p);
	assert_string_equal(p.all, "3: the program's name is longer than 4095 bytes; the section is ignored\n");
	cv_policy_free(pol);
	n = sprintf(text, "/%0300d", 0);
	pol = load(text, "[app /0*0]\n", &p);
	assert_non_null(pol->apps);
	cv_policy_free(pol);
}

static void test_reports_are_bounded(void **state)
{
	static char text[4000];
	struct problems p;

	(void)state;
	for (int i = 0; i < 1000; i++)
		memcpy(text + 3 * i, "x=\n", 3);
	cv_policy_free(load("x", text, &p));
	assert_int_equal(p.count, 50);
	assert_int_equal(p.line, 50);
	assert_string_equal(p.text, "too many problems; the rest of them is not reported");
}

static void test_memory_is_bounded(void **state)
{
	static char text[CV_CONFIG_MAX];
	struct problems p;
	const struct cv_policy *pol;
	unsigned kept = 0;

	(void)state;
	for (size_t i = 0; i + 8 <= sizeof(text); i += 8)
		memcpy(text + i, "[app x]\n", 8);
	pol = load_bytes("x", text, sizeof(text), &p);
	assert_non_null(strstr(p.all, "no memory for more sections; this one is ignored"));
	for (const struct cv_section *s = pol->apps; s; s = s->next)
		kept++;
	assert_true(kept > 1000);
	cv_policy_free(pol);
}

/* The arena counts as full once its last block is. */
static void test_no_memory_for_values(void **state)
{
	static const char text[] = "[defaults]\nlog-file = /x\nprofile = x\n[app x]\n[defaults]\nring = 4KiB\n";
	struct cv_policy policy = { .defaults.kind = CV_IN_DEFAULTS, .arena.mapped = CV_ARENA_MAX };
	struct problems p = { 0 };
	struct cv_loader l = { .policy = &policy, .prog = "x", .on_error = problems_add, .arg = &p };

	(void)state;
	l.uses_end = &l.uses;
	cv_parse_text(&l, "f", text, sizeof(text) - 1);
	assert_string_equal(p.all, "2: log-file: no memory to keep the value; it is ignored\n"
				   "3: profile: no memory to keep the value; it is ignored\n"
				   "4: no memory for more sections; this one is ignored\n");
	assert_int_equal(policy.defaults.values[CV_KEY_RING].number, 4096);
}

static void test_no_memory_for_rules(void **state)
{
	static const char text[] = "[app x]\nmatch = both *:80\n";
	struct cv_policy policy = { 0 };
	struct problems p = { 0 };
	struct cv_loader l = { .policy = &policy, .prog = "x", .on_error = problems_add, .arg = &p };

	(void)state;
	/* Leave what the section and its title need. */
	assert_non_null(cv_arena_alloc(&policy.arena, (64 << 10) - 32 - (sizeof(struct cv_section) + 15) / 16 * 16 - 16));
	assert_int_equal(policy.arena.mapped, 64 << 10);
	policy.arena.mapped = CV_ARENA_MAX;
	cv_parse_text(&l, "f", text, sizeof(text) - 1);
	assert_string_equal(p.all, "2: match: no memory for more rules; this one is ignored\n");
	assert_non_null(policy.apps);
	cv_arena_free(&policy.arena);
}

static void test_unreadable_files(void **state)
{
	static char big[CV_CONFIG_MAX + 1];
	char *path, longname[5000];
	struct problems p;
	struct rlimit old, none = { 0 };

	(void)state;
#define REFUSED(name, cause) \
	do { \
		memset(&p, 0, sizeof(p)); \
		cv_policy_free(cv_policy_load("x", name, problems_add, &p)); \
		assert_int_equal(p.count, 1); \
		assert_int_equal(p.line, 0); \
		assert_string_equal(p.text, "cannot be read: " cause); \
	} while (0)

	REFUSED(test_path("absent"), "No such file or directory");
	assert_string_equal(p.file, test_path("absent"));
	REFUSED(test_dir_name, "Is a directory");
	test_file("plain", "", 0);
	REFUSED(test_path("plain/x"), "Not a directory");
	path = test_path("fifo");
	assert_int_equal(mkfifo(path, 0600), 0);
	REFUSED(path, "Not a regular file"); /* and does not wait for a writer */
	assert_int_equal(symlink("loop", test_path("loop")), 0);
	REFUSED(test_path("loop"), "Too many levels of symbolic links");
	memset(longname, 'a', sizeof(longname));
	longname[4999] = '\0';
	REFUSED(longname, "File name too long");
	memset(big, '\n', sizeof(big));
	REFUSED(test_file("big", big, sizeof(big)), "Larger than 1 MiB");
	REFUSED("/dev/zero", "Larger than 1 MiB");
	REFUSED("/proc/self/mem", "Input/output error");
	REFUSED("/dev/tty-of-nobody", "No such file or directory");

	assert_int_equal(getrlimit(RLIMIT_NOFILE, &old), 0);
	none.rlim_max = old.rlim_max;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
	memset(&p, 0, sizeof(p));
	cv_policy_free(cv_policy_load("x", "/dev/null", problems_add, &p));
	setrlimit(RLIMIT_NOFILE, &old);
	assert_string_equal(p.text, "cannot be read: Too many open files");

	if (geteuid()) {
		path = (char *)test_file("secret", "", 0);
		chmod(path, 0);
		REFUSED(path, "Permission denied");
	}
}

static void test_readable_oddities(void **state)
{
	static char full[CV_CONFIG_MAX];
	struct problems p;

	(void)state;
	memset(&p, 0, sizeof(p));
	cv_policy_free(cv_policy_load("x", "/dev/null", problems_add, &p));
	cv_policy_free(load("x", "", &p));
	assert_int_equal(p.count, 0);
	cv_policy_free(load("x", "\xef\xbb\xbf", &p));
	assert_int_equal(p.count, 0);
	memset(full, '\n', sizeof(full));
	cv_policy_free(load_bytes("x", full, sizeof(full), &p));
	assert_int_equal(p.count, 0);
	cv_policy_free(cv_policy_load(NULL, "/dev/null", NULL, NULL));
	cv_policy_free(cv_policy_load("x", test_path("absent"), NULL, NULL)); /* nobody to tell */
}

static int remove_dir(void **state)
{
	static const char *const names[] = { "only.conf", "plain", "fifo", "loop", "big", "secret" };

	(void)state;
	for (size_t i = 0; i < CV_ARRAY_LEN(names); i++)
		unlink(test_path(names[i]));
	return rmdir(test_dir_name);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_clean_files_say_nothing),
		cmocka_unit_test(test_mistakes),
		cmocka_unit_test(test_nul_bytes),
		cmocka_unit_test(test_long_lines),
		cmocka_unit_test(test_reports_are_bounded),
		cmocka_unit_test(test_memory_is_bounded),
		cmocka_unit_test(test_no_memory_for_values),
		cmocka_unit_test(test_no_memory_for_rules),
		cmocka_unit_test(test_unreadable_files),
		cmocka_unit_test(test_readable_oddities),
	};

	return cmocka_run_group_tests(tests, test_dir, remove_dir);
}
