/* SPDX-License-Identifier: Apache-2.0 */
/* What the policy's tests share: cmocka, and a policy loaded from a text with its problems collected. */
#ifndef CV_TEST_POLICY_H
#define CV_TEST_POLICY_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "../../../src/policy/policy.h"

extern const char *cv_policy_system_file;

struct problems {
	int count;
	char file[256], text[600]; /* of the last one */
	int line;
	char all[8192]; /* "line: text\n" each; cut when too long */
};

static void problems_add(void *arg, const char *file, int line, const char *text)
{
	struct problems *p = arg;
	size_t n = strlen(p->all);

	p->count++;
	p->line = line;
	snprintf(p->file, sizeof(p->file), "%s", file ? file : "(built in)");
	snprintf(p->text, sizeof(p->text), "%s", text);
	snprintf(p->all + n, sizeof(p->all) - n, "%d: %s\n", line, text);
}

/* A file in the test's own directory (made by test_dir), with that content. */
static char test_dir_name[] = "/tmp/culvert-test-policy.XXXXXX";

static inline int test_dir(void **state)
{
	(void)state;
	return mkdtemp(test_dir_name) ? 0 : -1;
}

static inline char *test_path(const char *name)
{
	static char paths[8][512];
	static unsigned next;
	char *path = paths[next++ % 8];

	snprintf(path, sizeof(paths[0]), "%s/%s", test_dir_name, name);
	return path;
}

static inline const char *test_file(const char *name, const void *text, size_t len)
{
	char *path = test_path(name);
	FILE *f = fopen(path, "w");

	assert_non_null(f);
	assert_int_equal(fwrite(text, 1, len, f), len);
	assert_int_equal(fclose(f), 0);
	return path;
}

static inline const struct cv_policy *load_bytes(const char *prog, const void *text, size_t len, struct problems *p)
{
	memset(p, 0, sizeof(*p));
	return cv_policy_load(prog, test_file("only.conf", text, len), problems_add, p);
}

static inline const struct cv_policy *load(const char *prog, const char *text, struct problems *p)
{
	return load_bytes(prog, text, strlen(text), p);
}

#endif
