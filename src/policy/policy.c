/* SPDX-License-Identifier: Apache-2.0 */
#include "policy.h"
#include "../observe/log.h"
#include "parse.h"
#include "words.h"

#include <stdlib.h>
#include <string.h>

/* Hidden, and a variable so that tests can put their own file in its place. */
const char *cv_policy_system_file = "/etc/culvert.conf";

/* What is left when the kernel gives no memory at all. */
static struct cv_policy fallback;

static void store(struct cv_settings *s, const struct cv_key *key, uint64_t n)
{
	char *field = (char *)s + key->field;
	uint32_t narrow = (uint32_t)n;

	if (key->width == sizeof(narrow))
		memcpy(field, &narrow, sizeof(narrow));
	else
		memcpy(field, &n, sizeof(n));
}

static void apply_value(struct cv_settings *s, struct cv_global *g, const struct cv_key *key, const struct cv_value *v)
{
	if (key->width) {
		store(s, key, v->number);
		return;
	}
	switch (key - cv_keys) {
	case CV_KEY_TRANSPORT:
		memcpy(s->transports, v->transports.list, sizeof(s->transports));
		s->transport_count = v->transports.count;
		break;
	case CV_KEY_UPGRADE_AFTER:
		s->after_requests = v->after.requests;
		s->after_bytes = v->after.bytes;
		break;
	case CV_KEY_LOG:
		g->log_level = (int)v->number;
		break;
	case CV_KEY_LOG_FILE:
		g->log_file = v->text;
		break;
	case CV_KEY_STATS_DIR:
		g->stats_dir = v->text;
		break;
	case CV_KEY_STATS_KEEP:
		g->stats_keep = v->number;
		break;
	}
}

/* The keys' own defaults, through the parser that reads everything else. */
static void apply_standard(struct cv_settings *s, struct cv_global *g)
{
	struct cv_value v;
	char why[CV_WHY_MAX];

	for (unsigned i = 0; i < CV_KEY_COUNT; i++) {
		memset(&v, 0, sizeof(v));
		if (cv_keys[i].standard && !cv_value_parse(&cv_keys[i], cv_keys[i].standard, &v, why, sizeof(why)))
			apply_value(s, g, &cv_keys[i], &v);
	}
}

static void apply(struct cv_settings *s, struct cv_global *g, const struct cv_section *from)
{
	for (unsigned i = 0; i < CV_KEY_COUNT; i++)
		if (from->values[i].set)
			apply_value(s, g, &cv_keys[i], &from->values[i]);
}

static const struct cv_section *profile_of(const struct cv_policy *p, const struct cv_section *naming)
{
	const struct cv_value *v = &naming->values[CV_KEY_PROFILE];

	return v->set ? cv_parse_find_profile(p, v->text) : NULL;
}

/* app: NULL for [defaults]. The profile comes just below the keys of the place that names it. */
static void resolve(struct cv_policy *p, struct cv_section *app)
{
	struct cv_section *layers[] = { &p->defaults, app, &p->env }, *naming = NULL;
	struct cv_settings *s = app ? &app->settings : &p->defaults.settings;
	struct cv_global unused, *g = app ? &unused : &p->global;

	for (unsigned i = 0; i < CV_ARRAY_LEN(layers); i++)
		if (layers[i] && profile_of(p, layers[i]))
			naming = layers[i];
	apply_standard(s, g);
	for (unsigned i = 0; i < CV_ARRAY_LEN(layers); i++) {
		if (!layers[i])
			continue;
		if (layers[i] == naming)
			apply(s, g, profile_of(p, naming));
		apply(s, g, layers[i]);
	}
	if (s->ring > s->ring_max)
		s->ring = s->ring_max;
}

static void check_profile(struct cv_loader *l, const struct cv_profile_use *u)
{
	struct cv_nearest near = CV_NEAREST(u->name);
	char text[CV_WHY_MAX];

	if (cv_parse_find_profile(l->policy, u->name))
		return;
	for (const struct cv_section *p = l->policy->profiles; p; p = p->next)
		cv_nearest_try(&near, p->name);
	if (near.best)
		cv_format(text, sizeof(text), "there is no profile %s; did you mean %s?", cv_quote(u->name, strlen(u->name)).text,
			  cv_quote(near.best, strlen(near.best)).text);
	else
		cv_format(text, sizeof(text), "there is no profile %s; write a section [profile NAME] for it",
			  cv_quote(u->name, strlen(u->name)).text);
	cv_parse_report(l, u->file, u->line, text);
}

static bool is_for_all(const struct cv_section *app)
{
	const struct cv_rule *r = app->rules;

	while (r && !cv_rule_is_any(r))
		r = r->next;
	return !app->rules || r;
}

static void note_reachable(struct cv_policy *p, const struct cv_settings *s)
{
	if (!s->transport_count)
		return;
	p->any = true;
	p->first_requests = cv_min_u64(p->first_requests, s->after_requests);
	p->first_bytes = cv_min_u64(p->first_bytes, s->after_bytes);
	if (s->upgrade_wait > p->longest_wait)
		p->longest_wait = s->upgrade_wait;
}

/* All sections have been read: resolve what they inherit. */
static void finish(struct cv_loader *l)
{
	struct cv_policy *p = l->policy;
	bool for_all = false;

	l->reported = 0;
	for (const struct cv_profile_use *u = l->uses; u; u = u->next)
		check_profile(l, u);
	resolve(p, NULL);
	p->first_requests = UINT64_MAX;
	p->first_bytes = UINT64_MAX;
	for (struct cv_section *s = p->apps; s; s = s->next) {
		resolve(p, s);
		if (!for_all)
			note_reachable(p, &s->settings);
		for_all |= is_for_all(s);
	}
	if (!for_all)
		note_reachable(p, &p->defaults.settings);
}

/* dir/name into out; false when it does not fit. */
static bool join(char *out, size_t size, const char *dir, const char *name)
{
	return cv_format(out, size, "%s%s", dir, name) == strlen(dir) + strlen(name);
}

static void read_user_file(struct cv_loader *l)
{
	const char *dir = secure_getenv("XDG_CONFIG_HOME"), *name = "/culvert.conf";
	char path[4096];

	/* The XDG specification: a relative path is to be ignored. */
	if (!dir || *dir != '/') {
		dir = secure_getenv("HOME");
		name = "/.config/culvert.conf";
	}
	if (dir && *dir == '/' && join(path, sizeof(path), dir, name))
		cv_parse_file(l, path, false);
}

static struct cv_policy *policy_new(void)
{
	struct cv_arena arena = { 0 };
	struct cv_policy *p = cv_arena_alloc(&arena, sizeof(*p));

	if (!p) {
		p = &fallback;
		memset(p, 0, sizeof(*p));
	}
	p->arena = arena;
	p->defaults.kind = CV_IN_DEFAULTS;
	p->defaults.name = "";
	p->defaults.title = "defaults";
	p->defaults.rules_end = &p->defaults.rules;
	return p;
}

const struct cv_policy *cv_policy_load(const char *prog, const char *only_file, cv_policy_error_fn on_error, void *arg)
{
	struct cv_loader l = { .policy = policy_new(), .prog = prog ? prog : "", .on_error = on_error, .arg = arg };
	const char *named = secure_getenv("CULVERT_CONFIG");

	l.uses_end = &l.uses;
	cv_parse_text(&l, NULL, cv_builtin_profiles, strlen(cv_builtin_profiles));
	if (only_file) {
		cv_parse_file(&l, only_file, true);
	} else {
		cv_parse_file(&l, cv_policy_system_file, false);
		read_user_file(&l);
		if (named && *named)
			cv_parse_file(&l, named, true);
		cv_parse_env(&l);
	}
	finish(&l);
	return l.policy;
}

void cv_policy_free(const struct cv_policy *p)
{
	struct cv_arena arena = p->arena; /* the policy itself lies in it */

	cv_arena_free(&arena);
}

const struct cv_global *cv_policy_global(const struct cv_policy *p)
{
	return &p->global;
}

bool cv_policy_any(const struct cv_policy *p)
{
	return p->any;
}

void cv_policy_first(const struct cv_policy *p, uint64_t *requests, uint64_t *bytes)
{
	*requests = p->first_requests;
	*bytes = p->first_bytes;
}

uint64_t cv_policy_longest_wait(const struct cv_policy *p)
{
	return p->longest_wait;
}

/* The rule of s that admits the connection; *all when s has none and is for all of them. */
static const struct cv_rule *admits(const struct cv_section *s, enum cv_role role, const struct sockaddr *server, bool *all)
{
	const struct cv_rule *r = s->rules;

	*all = !r;
	while (r && !cv_rule_match(r, role, server))
		r = r->next;
	return r;
}

const struct cv_settings *cv_policy_decide(const struct cv_policy *p, enum cv_role role, const struct sockaddr *local,
					   const struct sockaddr *peer, struct cv_rule_ref *why)
{
	const struct sockaddr *server = role == CV_ROLE_SERVER ? local : role == CV_ROLE_CLIENT ? peer : NULL;
	const struct cv_value *transport = &p->defaults.values[CV_KEY_TRANSPORT];
	const struct cv_section *s;
	const struct cv_rule *rule;
	bool all;

	for (s = p->apps; s; s = s->next) {
		rule = admits(s, role, server, &all);
		if (!rule && !all)
			continue;
		if (why)
			*why = (struct cv_rule_ref){ s->title, s->file, rule ? rule->line : s->line };
		return &s->settings;
	}
	if (why)
		*why = (struct cv_rule_ref){ p->defaults.title, transport->file, transport->line };
	return &p->defaults.settings;
}
