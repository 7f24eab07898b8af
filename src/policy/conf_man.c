/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Build-time filter: culvert.conf.5.in to culvert.conf(5). A line @KEYS@ becomes a paragraph for each row of the schema, @PROFILES@
 * the built-in profiles, so that the page cannot say anything else than the parser does.
 */
#include "schema.h"
#include "value.h"

#include <stdio.h>
#include <string.h>

/* How the value of each type is written, in roff's italics after "KEY = ". */
static const char *const forms[] = {
	[CV_TYPE_TRANSPORTS] = "TRANSPORT ...",
	[CV_TYPE_PROFILE] = "NAME",
	[CV_TYPE_MATCH] = "server|client|both ADDR[/LEN]:PORT[-PORT]",
	[CV_TYPE_AFTER] = "REQUESTS, SIZE",
	[CV_TYPE_NUMBER] = "",
	[CV_TYPE_POWER] = "",
	[CV_TYPE_SPIN] = "TIME|adaptive",
	[CV_TYPE_LEVEL] = "LEVEL",
	[CV_TYPE_YESNO] = "yes|no",
	[CV_TYPE_PATH] = "PATH",
};

/* Literal text: roff takes '\', '-' and a '.' or "'" at the start of a line for its own. */
static void put_text(const char *s)
{
	for (bool start = true; *s; s++) {
		if (start && (*s == '.' || *s == '\''))
			fputs("\\&", stdout);
		start = *s == '\n';
		if (*s == '\\')
			fputs("\\e", stdout);
		else if (*s == '-')
			fputs("\\-", stdout);
		else
			putchar(*s);
	}
}

static void put_places(unsigned where)
{
	static const struct {
		unsigned bit;
		const char *name;
	} places[] = { { CV_IN_DEFAULTS, "[defaults]" }, { CV_IN_PROFILE, "[profile]" }, { CV_IN_APP, "[app]" } };
	const char *sep = "";

	for (size_t i = 0; i < CV_ARRAY_LEN(places); i++) {
		if (!(where & places[i].bit))
			continue;
		printf("%s%s", sep, places[i].name);
		sep = ", ";
	}
}

static void put_key(const struct cv_key *k)
{
	const char *form = forms[k->type];
	char env[CV_ENV_NAME_MAX];

	if (!*form)
		form = k->unit == CV_UNIT_TIME ? "TIME" : "SIZE";
	printf(".TP\n.BI \"");
	put_text(k->name);
	printf(" = \" \"");
	put_text(form);
	printf("\"\n");
	put_text(k->help);
	printf("\n.br\n");
	if (k->standard) {
		printf("Default: ");
		put_text(k->standard);
		printf(". ");
	}
	if (k->unit != CV_UNIT_NONE)
		printf("Range: %s to %s. ", cv_amount(k->min, k->unit).text, cv_amount(k->max, k->unit).text);
	printf("In: ");
	put_places(k->where);
	if (k->where & CV_IN_ENV) {
		cv_key_env_name(k, env);
		printf(", %s", env);
	}
	printf(".\n");
}

static void put_profiles(void)
{
	printf(".EX\n");
	put_text(cv_builtin_profiles);
	printf(".EE\n");
}

int main(void)
{
	char line[4096];

	while (fgets(line, sizeof(line), stdin)) {
		if (!strcmp(line, "@PROFILES@\n"))
			put_profiles();
		else if (strcmp(line, "@KEYS@\n"))
			fputs(line, stdout);
		else
			for (unsigned i = 0; i < CV_KEY_COUNT; i++)
				put_key(&cv_keys[i]);
	}
	return ferror(stdin) || fflush(stdout) ? 1 : 0;
}
