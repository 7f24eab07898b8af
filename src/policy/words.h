/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Words in the operator's text: quoting them in a message, finding the right one near a wrong one, matching program names. Pure.
 */
#ifndef CV_POLICY_WORDS_H
#define CV_POLICY_WORDS_H

#include "../base/base.h"

#define CV_QUOTE_MAX 64

/* A word as it may be shown on a terminal: in double quotes, no control characters, cut when long. Made by cv_quote(). */
struct cv_quoted {
	char text[CV_QUOTE_MAX];
};
struct cv_quoted cv_quote(const char *s, size_t len);

/*
 * The nearest of a set of candidates, by edit distance (insert, delete, replace, swap of neighbours; case, '_' and '-' count as
 * equal), or one that begins like the word. best stays NULL while nothing is near enough to be what was meant. Start with
 * CV_NEAREST(word).
 */
struct cv_nearest {
	const char *word;
	const char *best;
	unsigned distance;
};
#define CV_NEAREST(w) ((struct cv_nearest){ .word = (w), .distance = UINT32_MAX })
void cv_nearest_try(struct cv_nearest *n, const char *candidate);

/*
 * Does text match the whole glob? '*' any run of bytes ('/' included), '?' one byte, [a-z] and [!a-z] sets, '\' takes the next
 * literally.
 */
bool cv_glob_match(const char *glob, const char *text);

#endif
