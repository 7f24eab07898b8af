/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From text to sections: the insides of a policy while it is loaded. Private to src/policy. Nothing here fails as a whole: what is wrong is
 * reported and skipped.
 */
#ifndef CV_POLICY_PARSE_H
#define CV_POLICY_PARSE_H

#include "arena.h"
#include "match.h"
#include "value.h"

#define CV_CONFIG_MAX (1u << 20) /* bytes of one file */

struct cv_section {
	struct cv_section *next;
	enum cv_where kind;
	const char *name;  /* of a profile; the glob of an app; else "" */
	const char *title; /* as messages and culvert check show it: "app redis-*" */
	const char *file;  /* NULL: built in */
	int line;
	struct cv_rule *rules, **rules_end;
	struct cv_value values[CV_KEY_COUNT];
	struct cv_settings settings; /* everything resolved; [app] and [defaults] only */
};

struct cv_policy {
	struct cv_arena arena;
	struct cv_global global;
	struct cv_section defaults, env;
	struct cv_section *profiles;
	struct cv_section *apps; /* those that are for this program, in the order in which they are tried */
	bool any;
	uint64_t first_requests, first_bytes, longest_wait;
};

/* Where a profile is named: also in sections for other programs, which are checked and not kept. */
struct cv_profile_use {
	struct cv_profile_use *next;
	const char *name, *file;
	int line;
};

struct cv_loader {
	struct cv_policy *policy;
	const char *prog;
	cv_policy_error_fn on_error;
	void *arg;
	struct cv_profile_use *uses, **uses_end; /* in the order in which they were read */

	/* The file being read. */
	const char *file;
	const char *text, *end; /* what is left of it */
	int line;
	unsigned reported;	    /* problems in this file */
	bool unread;		    /* the line given to inih has not come back as a pair */
	bool sectionless;	    /* before the first section */
	struct cv_section *section; /* the pairs' place; NULL: skip them */
	struct cv_section scratch;  /* of an [app] for other programs: checked, not kept */
	struct cv_section *apps, **apps_end;
};

/* Read text[0..len) as a file of that name. Its [app] sections go before those that the policy has already. */
void cv_parse_text(struct cv_loader *l, const char *file, const char *text, size_t len);
/* The same with a file's contents. A file that is not there is a problem only when `must`. */
void cv_parse_file(struct cv_loader *l, const char *path, bool must);
/* The CULVERT_<KEY> variables. */
void cv_parse_env(struct cv_loader *l);

struct cv_section *cv_parse_find_profile(const struct cv_policy *p, const char *name);
void cv_parse_report(struct cv_loader *l, const char *file, int line, const char *text);

#endif
