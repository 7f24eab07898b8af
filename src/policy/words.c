/* SPDX-License-Identifier: Apache-2.0 */
#include "words.h"

#include <string.h>

#define WORD_MAX 48 /* longer ones are nobody's slip of the finger */

struct cv_quoted cv_quote(const char *s, size_t len)
{
	struct cv_quoted q;
	size_t room = sizeof(q.text) - 3; /* two quotes, the end */
	size_t keep = len <= room ? len : room - 3;
	size_t n = 0;

	q.text[n++] = '"';
	for (size_t i = 0; i < keep; i++) {
		unsigned char c = (unsigned char)s[i];

		q.text[n++] = c < 0x20 || c >= 0x7f ? '?' : (char)c;
	}
	if (keep < len) {
		memcpy(q.text + n, "...", 3);
		n += 3;
	}
	q.text[n++] = '"';
	q.text[n] = '\0';
	return q;
}

static char fold(char c)
{
	if (c >= 'A' && c <= 'Z')
		return (char)(c - 'A' + 'a');
	return c == '_' ? '-' : c;
}

static unsigned min3(unsigned a, unsigned b, unsigned c)
{
	unsigned m = a < b ? a : b;

	return m < c ? m : c;
}

static unsigned distance(const char *a, size_t alen, const char *b, size_t blen)
{
	unsigned row[3][WORD_MAX + 1];
	unsigned *before = row[0], *above = row[1], *cur = row[2], *t;

	for (size_t j = 0; j <= blen; j++)
		above[j] = (unsigned)j;
	for (size_t i = 1; i <= alen; i++) {
		cur[0] = (unsigned)i;
		for (size_t j = 1; j <= blen; j++) {
			bool same = fold(a[i - 1]) == fold(b[j - 1]);

			cur[j] = min3(above[j] + 1, cur[j - 1] + 1, above[j - 1] + !same);
			if (i > 1 && j > 1 && fold(a[i - 1]) == fold(b[j - 2]) && fold(a[i - 2]) == fold(b[j - 1]) &&
			    before[j - 2] + 1 < cur[j])
				cur[j] = before[j - 2] + 1;
		}
		t = before;
		before = above;
		above = cur;
		cur = t;
	}
	return above[blen];
}

/* "warning" for warn, "shmem" for shm: more wrong letters than in a slip, and yet clear. */
static bool is_stem(const char *a, const char *b, size_t len)
{
	size_t i = 0;

	while (i < len && fold(a[i]) == fold(b[i]))
		i++;
	return len >= 3 && i == len;
}

void cv_nearest_try(struct cv_nearest *n, const char *candidate)
{
	size_t wlen = strnlen(n->word, WORD_MAX + 1), clen = strnlen(candidate, WORD_MAX + 1);
	size_t longer = wlen > clen ? wlen : clen, shorter = wlen < clen ? wlen : clen;
	unsigned d;

	if (!wlen || wlen > WORD_MAX || clen > WORD_MAX)
		return;
	d = distance(n->word, wlen, candidate, clen);
	/* More than a third wrong is another word, not a misspelt one. */
	if (d < n->distance && (d <= (longer < 3 ? 1 : longer / 3) || is_stem(n->word, candidate, shorter))) {
		n->distance = d;
		n->best = candidate;
	}
}

/* Is c in the set whose text starts after '['? *end is set after the ']', or to NULL when the set is not closed. */
static bool in_set(const char *set, unsigned char c, const char **end)
{
	bool negate = *set == '!' || *set == '^', hit = false;
	const char *p = set + negate;

	/* A ']' directly after the opening stands for itself. */
	for (bool first = true; *p && (first || *p != ']'); first = false) {
		unsigned char lo = (unsigned char)*p++, hi = lo;

		if (*p == '-' && p[1] && p[1] != ']') {
			hi = (unsigned char)p[1];
			p += 2;
		}
		hit |= lo <= c && c <= hi;
	}
	*end = *p ? p + 1 : NULL;
	return hit != negate;
}

/* Matches one byte of text against the first item of glob; *after is set to the next item. */
static bool match_one(const char *glob, char c, const char **after)
{
	bool hit;

	*after = glob + 1;
	if (*glob == '?')
		return true;
	if (*glob == '[') {
		hit = in_set(glob + 1, (unsigned char)c, after);
		if (*after)
			return hit;
		*after = glob + 1; /* never closed: a plain '[' */
	} else if (*glob == '\\' && glob[1]) {
		*after = glob + 2;
		return glob[1] == c;
	}
	return *glob == c;
}

bool cv_glob_match(const char *glob, const char *text)
{
	const char *star = NULL, *star_text = NULL, *after;

	/* Only the last '*' is ever widened again: the time is bounded by the product of the lengths. */
	while (*text) {
		if (*glob == '*') {
			star = ++glob;
			star_text = text;
		} else if (*glob && match_one(glob, *text, &after)) {
			glob = after;
			text++;
		} else if (star) {
			glob = star;
			text = ++star_text;
		} else {
			return false;
		}
	}
	while (*glob == '*')
		glob++;
	return !*glob;
}
