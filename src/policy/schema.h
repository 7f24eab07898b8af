/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The schema of culvert.conf: one row a key. Parsing, defaults, CULVERT_<KEY> variables, suggestions and the KEYS section of
 * culvert.conf(5) all come from it; a new number needs a row here and a field in struct cv_settings, nothing else.
 */
#ifndef CV_POLICY_SCHEMA_H
#define CV_POLICY_SCHEMA_H

#include "policy.h"

enum cv_key_id {
	CV_KEY_TRANSPORT,
	CV_KEY_PROFILE,
	CV_KEY_MATCH,
	CV_KEY_UPGRADE_AFTER,
	CV_KEY_UPGRADE_WAIT,
	CV_KEY_SPIN,
	CV_KEY_SPIN_MAX,
	CV_KEY_RING,
	CV_KEY_RING_MAX,
	CV_KEY_SPILL_MAX,
	CV_KEY_HANDSHAKE_TIMEOUT,
	CV_KEY_HANDOVER_TIMEOUT,
	CV_KEY_LOG,
	CV_KEY_LOG_FILE,
	CV_KEY_STATS_DIR,
	CV_KEY_STATS_KEEP,
	CV_KEY_COUNT
};

enum cv_key_type {
	CV_TYPE_TRANSPORTS, /* a list of transports */
	CV_TYPE_PROFILE,    /* the name of a [profile] section */
	CV_TYPE_MATCH,	    /* a rule; may stand several times */
	CV_TYPE_AFTER,	    /* requests and/or bytes */
	CV_TYPE_NUMBER,	    /* in the key's unit */
	CV_TYPE_POWER,	    /* a number, rounded up to a power of two */
	CV_TYPE_SPIN,	    /* a number, or "adaptive" */
	CV_TYPE_LEVEL,	    /* an enum cv_log_level */
	CV_TYPE_YESNO,
	CV_TYPE_PATH, /* absolute */
};

enum cv_unit { CV_UNIT_NONE, CV_UNIT_TIME, CV_UNIT_SIZE };

enum cv_where {
	CV_IN_DEFAULTS = 1,
	CV_IN_PROFILE = 2,
	CV_IN_APP = 4,
	CV_IN_ENV = 8,
	CV_IN_ANY = CV_IN_DEFAULTS | CV_IN_PROFILE | CV_IN_APP | CV_IN_ENV,
	CV_IN_GLOBAL = CV_IN_DEFAULTS | CV_IN_ENV
};

struct cv_key {
	const char *name;
	enum cv_key_type type;
	enum cv_unit unit;
	unsigned where;	      /* enum cv_where */
	const char *standard; /* the default, as one would write it; NULL = none */
	uint64_t min, max;    /* in ns or bytes */
	size_t field;	      /* offset in struct cv_settings, for numbers */
	size_t width;	      /* size of that field; 0 = the key is stored by its own code */
	const char *help;     /* plain sentences */
};

extern const struct cv_key cv_keys[CV_KEY_COUNT];

#define CV_PROFILE_DEFAULT "default"

/* The profiles that are built in: a configuration text, read by the same parser before any file. */
extern const char cv_builtin_profiles[];

#define CV_ENV_NAME_MAX 48
/* CULVERT_RING_MAX of "ring-max", into out. */
void cv_key_env_name(const struct cv_key *key, char out[CV_ENV_NAME_MAX]);

/* NULL when there is none of that name. */
const struct cv_key *cv_key_find(const char *name);

extern const char *const cv_transport_names[3]; /* by enum cv_transport */
extern const char *const cv_level_names[5];	/* by enum cv_log_level */
extern const char *const cv_section_kinds[3];	/* defaults, profile, app */

#endif
