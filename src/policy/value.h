/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The value of one key: from text, and back for messages and the man page. Pure; the one parser for files, environment and defaults.
 */
#ifndef CV_POLICY_VALUE_H
#define CV_POLICY_VALUE_H

#include "schema.h"

#define CV_WHY_MAX 320
#define CV_AMOUNT_MAX 32

struct cv_value {
	bool set;
	int line;
	const char *file; /* NULL: built in */
	union {
		uint64_t number;
		const char *text; /* CV_TYPE_PROFILE, CV_TYPE_PATH; points into the parsed text until the caller copies it */
		struct {
			uint64_t requests, bytes;
		} after;
		struct {
			uint8_t list[4], count;
		} transports;
	};
};

/*
 * Parse text as a value of key (any type but CV_TYPE_MATCH). 0; or -EINVAL, and in why (size bytes) a sentence that says what is
 * wrong, with the nearest right word, and *v untouched. Sets only the union and `set`.
 */
int cv_value_parse(const struct cv_key *key, const char *text, struct cv_value *v, char *why, size_t size);

/* An amount as one would write it: "50us", "64KiB". */
struct cv_amount {
	char text[CV_AMOUNT_MAX];
};
struct cv_amount cv_amount(uint64_t n, enum cv_unit unit);

#endif
