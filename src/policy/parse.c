/* SPDX-License-Identifier: Apache-2.0 */
#include "parse.h"
#include "../observe/log.h"
#include "words.h"

#include <ini.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

#define TEXT_MAX 512
#define REPORTS_MAX 50 /* a file; somebody's JPEG must not fill the log */

#define report(l, line, ...) \
	do { \
		char text_[TEXT_MAX]; \
		cv_format(text_, sizeof(text_), __VA_ARGS__); \
		cv_parse_report(l, (l)->file, line, text_); \
	} while (0)

void cv_parse_report(struct cv_loader *l, const char *file, int line, const char *text)
{
	if (!l->on_error || ++l->reported > REPORTS_MAX)
		return;
	if (l->reported == REPORTS_MAX)
		text = "too many problems; the rest of them is not reported";
	l->on_error(l->arg, file, line, text);
}

static void section_init(struct cv_section *s, enum cv_where kind, const char *file, int line)
{
	memset(s, 0, sizeof(*s));
	s->kind = kind;
	s->file = file;
	s->line = line;
	s->name = "";
	s->rules_end = &s->rules;
}

struct cv_section *cv_parse_find_profile(const struct cv_policy *p, const char *name)
{
	struct cv_section *s = p->profiles;

	while (s && strcmp(s->name, name))
		s = s->next;
	return s;
}

static struct cv_section *section_new(struct cv_loader *l, enum cv_where kind, const char *name, size_t len)
{
	static const char app[] = "app ", profile[] = "profile ";
	const char *word = kind == CV_IN_APP ? app : profile;
	size_t wlen = strlen(word);
	struct cv_section *s = cv_arena_alloc(&l->policy->arena, sizeof(*s));
	char *title = s ? cv_arena_alloc(&l->policy->arena, wlen + len + 1) : NULL;

	if (!title) {
		report(l, l->line, "no memory for more sections; this one is ignored");
		return NULL;
	}
	section_init(s, kind, l->file, l->line);
	memcpy(title, word, wlen);
	memcpy(title + wlen, name, len);
	s->title = title;
	s->name = title + wlen;
	return s;
}

/* Where the pairs of [profile NAME] go: a profile is one section, however many files add to it. */
static struct cv_section *open_profile(struct cv_loader *l, const char *name, size_t len)
{
	struct cv_section *s = l->policy->profiles;

	while (s && (strlen(s->name) != len || memcmp(s->name, name, len)))
		s = s->next;
	if (s)
		return s;
	s = section_new(l, CV_IN_PROFILE, name, len);
	if (s) {
		s->next = l->policy->profiles;
		l->policy->profiles = s;
	}
	return s;
}

static bool is_for(const char *glob, const char *prog)
{
	const char *base = strrchr(prog, '/');

	return cv_glob_match(glob, !strchr(glob, '/') && base ? base + 1 : prog);
}

static struct cv_section *open_app(struct cv_loader *l, const char *name, size_t len)
{
	char glob[4096];
	struct cv_section *s;

	if (len >= sizeof(glob)) {
		report(l, l->line, "the program's name is longer than %zu bytes; the section is ignored", sizeof(glob) - 1);
		return NULL;
	}
	memcpy(glob, name, len);
	glob[len] = '\0';
	if (!is_for(glob, l->prog)) {
		section_init(&l->scratch, CV_IN_APP, l->file, l->line);
		return &l->scratch;
	}
	s = section_new(l, CV_IN_APP, name, len);
	if (s) {
		*l->apps_end = s;
		l->apps_end = &s->next;
	}
	return s;
}

static void unknown_section(struct cv_loader *l, const char *head, size_t len, size_t wlen)
{
	char word[24];
	struct cv_nearest near = CV_NEAREST(word);

	wlen = wlen < sizeof(word) ? wlen : sizeof(word) - 1;
	memcpy(word, head, wlen);
	word[wlen] = '\0';
	for (unsigned i = 0; i < CV_ARRAY_LEN(cv_section_kinds); i++)
		cv_nearest_try(&near, cv_section_kinds[i]);
	if (near.best)
		report(l, l->line, "there is no section %s; did you mean \"%s\"? What stands in it is ignored", cv_quote(head, len).text,
		       near.best);
	else
		report(l, l->line, "there is no section %s; write [defaults], [profile NAME] or [app GLOB]. What stands in it is ignored",
		       cv_quote(head, len).text);
}

static bool is_blank(char c)
{
	return c == ' ' || c == '\t';
}

static const char *trim(const char *s, size_t *len)
{
	while (*len && is_blank(*s)) {
		s++;
		--*len;
	}
	while (*len && is_blank(s[*len - 1]))
		--*len;
	return s;
}

/*
 * A section header, from '[' on. Taken here and not by inih, which keeps 49 bytes of a section's name, ends it at the first ']' (globs
 * have some of their own), and does not say that a section without keys has begun.
 */
static void open_section(struct cv_loader *l, const char *s, size_t len)
{
	const char *head, *name;
	size_t wlen = 0, nlen;

	l->sectionless = false;
	l->section = NULL;
	if (s[len - 1] != ']') {
		report(l, l->line, "the section header %s does not end in \"]\"; what stands in it is ignored", cv_quote(s, len).text);
		return;
	}
	len -= 2;
	head = trim(s + 1, &len);
	while (wlen < len && !is_blank(head[wlen]))
		wlen++;
	nlen = len - wlen;
	name = trim(head + wlen, &nlen);

	if (wlen == 8 && !memcmp(head, "defaults", 8) && !nlen)
		l->section = &l->policy->defaults;
	else if (wlen == 7 && !memcmp(head, "profile", 7) && nlen)
		l->section = open_profile(l, name, nlen);
	else if (wlen == 3 && !memcmp(head, "app", 3) && nlen)
		l->section = open_app(l, name, nlen);
	else if (wlen == 8 && !memcmp(head, "defaults", 8))
		report(l, l->line, "[defaults] takes no name; what stands in it is ignored");
	else if (wlen == 7 && !memcmp(head, "profile", 7))
		report(l, l->line, "the profile's name is missing: [profile NAME]; what stands in it is ignored");
	else if (wlen == 3 && !memcmp(head, "app", 3))
		report(l, l->line, "the program's name is missing: [app GLOB]; what stands in it is ignored");
	else
		unknown_section(l, head, len, wlen);
}

static void add_rule(struct cv_loader *l, const char *value)
{
	char why[CV_WHY_MAX];
	struct cv_rule rule, *kept = NULL;

	if (cv_rule_parse(value, &rule, why, sizeof(why))) {
		report(l, l->line, "match: %s", why);
		/*
		 * The section must not become one for all connections because its only match line is misspelt: keep a rule that
		 * nothing fits.
		 */
		memset(&rule, 0, sizeof(rule));
	}
	if (l->section == &l->scratch)
		return;
	rule.line = l->line;
	kept = cv_arena_alloc(&l->policy->arena, sizeof(*kept));
	if (!kept) {
		report(l, l->line, "match: no memory for more rules; this one is ignored");
		return;
	}
	*kept = rule;
	*l->section->rules_end = kept;
	l->section->rules_end = &kept->next;
}

/* The text of v outlives the file's; a profile's name is noted as well, to be looked up when all files have been read. */
static bool keep_text(struct cv_loader *l, const struct cv_key *key, struct cv_value *v)
{
	struct cv_profile_use *use;

	v->text = cv_arena_copy(&l->policy->arena, v->text, strlen(v->text));
	if (!v->text || key->type != CV_TYPE_PROFILE)
		return v->text;
	use = cv_arena_alloc(&l->policy->arena, sizeof(*use));
	if (!use)
		return false;
	*use = (struct cv_profile_use){ .name = v->text, .file = v->file, .line = v->line };
	*l->uses_end = use;
	l->uses_end = &use->next;
	return true;
}

/* written: how the key is called in messages ("ring", "CULVERT_RING"). */
static void set_value(struct cv_loader *l, struct cv_section *s, const struct cv_key *key, const char *written, const char *value)
{
	struct cv_value *v = &s->values[key - cv_keys], parsed = { .file = l->file, .line = l->line };
	char why[CV_WHY_MAX];

	if (cv_value_parse(key, value, &parsed, why, sizeof(why))) {
		report(l, l->line, "%s: %s", written, why);
		return;
	}
	if ((key->type == CV_TYPE_PATH || key->type == CV_TYPE_PROFILE) && !keep_text(l, key, &parsed)) {
		report(l, l->line, "%s: no memory to keep the value; it is ignored", written);
		return;
	}
	*v = parsed;
}

static void unknown_key(struct cv_loader *l, const char *name)
{
	struct cv_nearest near = CV_NEAREST(name);

	for (unsigned i = 0; i < CV_KEY_COUNT; i++)
		cv_nearest_try(&near, cv_keys[i].name);
	if (near.best)
		report(l, l->line, "there is no key %s; did you mean \"%s\"?", cv_quote(name, strlen(name)).text, near.best);
	else
		report(l, l->line, "there is no key %s; culvert.conf(5) has the list", cv_quote(name, strlen(name)).text);
}

static const char *places(unsigned where)
{
	if (where & CV_IN_APP)
		return where & CV_IN_DEFAULTS ? "[defaults] or [app GLOB]" : "[app GLOB]";
	return "[defaults]";
}

#if INI_HANDLER_LINENO
static int on_pair(void *arg, const char *section, const char *name, const char *value, int lineno)
#else
static int on_pair(void *arg, const char *section, const char *name, const char *value)
#endif
{
	struct cv_loader *l = arg;
	const struct cv_key *key;

	(void)section;
#if INI_HANDLER_LINENO
	(void)lineno; /* counts the lines that next_line() let through */
#endif
	if (!value || !*name) /* no '=': next_line() says so */
		return 1;
	l->unread = false;
	if (l->sectionless) {
		report(l, l->line, "%s stands before the first section; begin with [defaults]", cv_quote(name, strlen(name)).text);
		return 1;
	}
	if (!l->section)
		return 1;
	key = cv_key_find(name);
	if (!key)
		unknown_key(l, name);
	else if (!(key->where & l->section->kind))
		report(l, l->line, "%s cannot stand in this section; it belongs in %s", name, places(key->where));
	else if (key->type == CV_TYPE_MATCH)
		add_rule(l, value);
	else
		set_value(l, l->section, key, name, value);
	return 1;
}

/* The next line without its end, blanks around it and a comment; NULL at the end of the text. */
static const char *cut_line(struct cv_loader *l, size_t *len)
{
	const char *s = l->text, *nl;

	if (s == l->end)
		return NULL;
	nl = memchr(s, '\n', (size_t)(l->end - s));
	*len = (size_t)((nl ? nl : l->end) - s);
	l->text = nl ? nl + 1 : l->end;
	l->line++;
	if (*len && s[*len - 1] == '\r')
		--*len;
	s = trim(s, len);
	for (size_t i = 0; i < *len; i++) {
		if ((s[i] == '#' || s[i] == ';') && (!i || is_blank(s[i - 1]))) {
			*len = i;
			break;
		}
	}
	return trim(s, len);
}

static bool has_control(const char *s, size_t len, unsigned *which)
{
	for (size_t i = 0; i < len; i++) {
		*which = (unsigned char)s[i];
		if ((*which < 0x20 && *which != '\t') || *which == 0x7f)
			return true;
	}
	return false;
}

static void check_unread(struct cv_loader *l)
{
	if (l->unread)
		report(l, l->line, "the line is not understood; write KEY = VALUE or [SECTION]");
	l->unread = false;
}

/*
 * inih's reader: one line a call, into buf. Lines that inih would treat in ways of its own never reach it: section headers (see
 * open_section), long ones (it would go on in the middle), indented ones (it takes them for the previous key's), NULs (it would stop
 * there). The lines are counted here, because whether inih tells their numbers depends on how it was built.
 */
static char *next_line(char *buf, int size, void *arg)
{
	struct cv_loader *l = arg;
	const char *s;
	size_t len;
	unsigned c;

	check_unread(l);
	while ((s = cut_line(l, &len))) {
		if (!len)
			continue;
		if (has_control(s, len, &c)) {
			report(l, l->line, "the line holds a control character (0x%02x) and is ignored", c);
		} else if (*s == '[') {
			open_section(l, s, len);
		} else if (len + 2 > (size_t)size) {
			report(l, l->line, "the line is longer than %d bytes and is ignored", size - 2);
		} else {
			memcpy(buf, s, len);
			buf[len] = '\n';
			buf[len + 1] = '\0';
			l->unread = true;
			return buf;
		}
	}
	return NULL;
}

void cv_parse_text(struct cv_loader *l, const char *file, const char *text, size_t len)
{
	static const char bom[3] = "\xef\xbb\xbf";

	if (len >= sizeof(bom) && !memcmp(text, bom, sizeof(bom))) {
		text += sizeof(bom);
		len -= sizeof(bom);
	}
	l->file = file;
	l->text = text;
	l->end = text + len;
	l->line = 0;
	l->reported = 0;
	l->unread = false;
	l->sectionless = true;
	l->section = NULL;
	l->apps = NULL;
	l->apps_end = &l->apps;
	ini_parse_stream(next_line, l, on_pair, l);
	check_unread(l);

	*l->apps_end = l->policy->apps;
	l->policy->apps = l->apps;
}

/*
 * A variable that is nearly one of ours is a misspelt one; anything else that begins with CULVERT_ may be another part's, and is let alone.
 */
static void check_env_names(struct cv_loader *l)
{
	char name[CV_ENV_NAME_MAX], word[CV_ENV_NAME_MAX];

	for (char **e = environ; e && *e; e++) {
		const char *eq = strchr(*e, '=');
		struct cv_nearest near = CV_NEAREST(word);
		bool known = false;

		if (strncmp(*e, "CULVERT_", 8) || !eq || eq - *e - 8 < 4 || eq - *e >= CV_ENV_NAME_MAX)
			continue;
		memcpy(word, *e + 8, (size_t)(eq - *e - 8));
		word[eq - *e - 8] = '\0';
		for (unsigned i = 0; i < CV_KEY_COUNT; i++) {
			cv_key_env_name(&cv_keys[i], name);
			known |= !strcmp(word, name + 8);
			if (cv_keys[i].where & CV_IN_ENV)
				cv_nearest_try(&near, cv_keys[i].name);
		}
		if (known || !near.best || !strcmp(word, "CONFIG"))
			continue;
		cv_key_env_name(cv_key_find(near.best), name);
		report(l, 0, "there is no variable %s; did you mean \"%s\"?", cv_quote(*e, (size_t)(eq - *e)).text, name);
	}
}

void cv_parse_env(struct cv_loader *l)
{
	char name[CV_ENV_NAME_MAX];
	const char *value;

	section_init(&l->policy->env, CV_IN_ENV, NULL, 0);
	l->file = "environment";
	l->line = 0;
	l->reported = 0;
	for (unsigned i = 0; i < CV_KEY_COUNT; i++) {
		cv_key_env_name(&cv_keys[i], name);
		value = secure_getenv(name);
		if (!value)
			continue;
		if (cv_keys[i].where & CV_IN_ENV)
			set_value(l, &l->policy->env, &cv_keys[i], name, value);
		else
			report(l, 0, "%s is not taken from the environment; it belongs in %s", name, places(cv_keys[i].where));
	}
	/* What secure_getenv hides in a set-user-id program must not be spoken of either. */
	if (!getauxval(AT_SECURE))
		check_env_names(l);
}
