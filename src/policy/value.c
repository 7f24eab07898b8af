/* SPDX-License-Identifier: Apache-2.0 */
#include "value.h"
#include "../observe/log.h"
#include "words.h"

#include <errno.h>
#include <string.h>

#define BLANKS " \t"
#define PATH_LIMIT 4095

struct unit_word {
	const char *name;
	uint64_t factor;
};

/* Largest first; among equals the first is the one that is written. */
static const struct unit_word time_units[] = {
	{ "s", 1000000000 }, { "ms", 1000000 }, { "us", 1000 }, { "ns", 1 }, { NULL, 0 },
};
static const struct unit_word size_units[] = {
	{ "GiB", 1 << 30 }, { "G", 1 << 30 }, { "MiB", 1 << 20 }, { "M", 1 << 20 }, { "KiB", 1 << 10 },
	{ "k", 1 << 10 },   { "K", 1 << 10 }, { "B", 1 },	  { NULL, 0 },
};
static const struct unit_word request_units[] = { { "requests", 1 }, { "request", 1 }, { NULL, 0 } };

static const char unit_help_time[] = "ns, us, ms or s";
static const char unit_help_size[] = "B, KiB (or k), MiB (or M) or GiB (or G)";

static const struct unit_word *find_unit(const struct unit_word *units, const char *s, size_t len)
{
	for (; units->name; units++)
		if (strlen(units->name) == len && !memcmp(units->name, s, len))
			return units;
	return NULL;
}

/* What a text of the form NUMBER[ UNIT] is made of. */
struct amount_parts {
	uint64_t number;
	const char *unit;
	size_t unit_len;
};

/* 0, -EINVAL (not of that form) or -ERANGE (the number does not fit 64 bits). */
static int split_amount(const char *s, size_t len, struct amount_parts *p)
{
	const char *end = s + len, *digits = s;
	bool over = false;

	p->number = 0;
	for (; s < end && *s >= '0' && *s <= '9'; s++) {
		over |= __builtin_mul_overflow(p->number, 10u, &p->number);
		over |= __builtin_add_overflow(p->number, (uint64_t)(*s - '0'), &p->number);
	}
	if (s == digits)
		return -EINVAL;
	while (s < end && (*s == ' ' || *s == '\t'))
		s++;
	p->unit = s;
	p->unit_len = (size_t)(end - s);
	for (; s < end; s++)
		if (!((*s >= 'a' && *s <= 'z') || (*s >= 'A' && *s <= 'Z')))
			return -EINVAL;
	return over ? -ERANGE : 0;
}

static void unknown_unit(const struct amount_parts *p, const struct unit_word *a, const struct unit_word *b, const char *help, char *why,
			 size_t size)
{
	char word[16];
	struct cv_nearest near = CV_NEAREST(word);

	memcpy(word, p->unit, p->unit_len < sizeof(word) ? p->unit_len : sizeof(word) - 1);
	word[p->unit_len < sizeof(word) ? p->unit_len : sizeof(word) - 1] = '\0';
	for (; a->name; a++)
		cv_nearest_try(&near, a->name);
	for (; b && b->name; b++)
		cv_nearest_try(&near, b->name);
	if (near.best)
		cv_format(why, size, "%s is no unit; did you mean \"%s\"? (%s)", cv_quote(p->unit, p->unit_len).text, near.best, help);
	else
		cv_format(why, size, "%s is no unit; write %s", cv_quote(p->unit, p->unit_len).text, help);
}

static int parse_amount(const struct cv_key *key, const char *text, uint64_t *out, char *why, size_t size)
{
	bool time = key->unit == CV_UNIT_TIME;
	const struct unit_word *units = time ? time_units : size_units, *u = NULL;
	const char *help = time ? unit_help_time : unit_help_size;
	struct cv_quoted q = cv_quote(text, strlen(text));
	struct amount_parts p;
	uint64_t v = 0;
	int err = split_amount(text, strlen(text), &p);

	if (err == -EINVAL) {
		cv_format(why, size, "%s is no %s; write a whole number and %s", q.text, time ? "time" : "size", help);
		return -EINVAL;
	}
	if (!p.unit_len && (!time || !p.number)) {
		v = p.number; /* 0 needs no unit, and a size without one is in bytes */
	} else if (!p.unit_len) {
		cv_format(why, size, "%s needs a unit: %s", q.text, help);
		return -EINVAL;
	} else {
		u = find_unit(units, p.unit, p.unit_len);
		if (!u) {
			unknown_unit(&p, units, NULL, help, why, size);
			return -EINVAL;
		}
		if (__builtin_mul_overflow(p.number, u->factor, &v))
			err = -ERANGE;
	}
	if (err || v > key->max) {
		cv_format(why, size, "%s is too large; the most is %s", q.text, cv_amount(key->max, key->unit).text);
		return -EINVAL;
	}
	if (v < key->min) {
		cv_format(why, size, "%s is too small; the least is %s", q.text, cv_amount(key->min, key->unit).text);
		return -EINVAL;
	}
	*out = v;
	return 0;
}

/* At most 2^28 here (the largest `max` of such a key), so that the shift cannot overflow. */
static uint64_t round_up_power(uint64_t v)
{
	uint64_t p = 1;

	while (p < v)
		p <<= 1;
	return p;
}

static const char *trim(const char *s, size_t *len)
{
	while (*len && strchr(BLANKS, s[0])) {
		s++;
		--*len;
	}
	while (*len && strchr(BLANKS, s[*len - 1]))
		--*len;
	return s;
}

/* One part of upgrade-after: "64", "64 requests" or "256KiB". */
static int parse_after_part(const struct cv_key *key, const char *s, size_t len, struct cv_value *v, char *why, size_t size)
{
	const struct unit_word *u;
	struct amount_parts p;
	struct cv_quoted q;
	uint64_t n, *to;
	int err;

	s = trim(s, &len);
	q = cv_quote(s, len);
	err = split_amount(s, len, &p);
	if (err == -EINVAL) {
		cv_format(why, size, "%s is neither requests nor a size; write for example: 64 requests, 256KiB", q.text);
		return -EINVAL;
	}
	u = find_unit(size_units, p.unit, p.unit_len);
	if (!u && p.unit_len && !find_unit(request_units, p.unit, p.unit_len)) {
		unknown_unit(&p, request_units, size_units, "requests, B, KiB, MiB or GiB", why, size);
		return -EINVAL;
	}
	if (err || __builtin_mul_overflow(p.number, u ? u->factor : 1, &n) || n > key->max) {
		cv_format(why, size, "%s is too large", q.text);
		return -EINVAL;
	}
	to = u ? &v->after.bytes : &v->after.requests;
	if (*to != UINT64_MAX) {
		cv_format(why, size, "%s: the %s are given twice", q.text, u ? "bytes" : "requests");
		return -EINVAL;
	}
	*to = n;
	return 0;
}

static int parse_after(const struct cv_key *key, const char *text, struct cv_value *v, char *why, size_t size)
{
	size_t len;
	int err;

	v->after.requests = UINT64_MAX;
	v->after.bytes = UINT64_MAX;
	for (;; text += len + 1) {
		len = strcspn(text, ",");
		err = parse_after_part(key, text, len, v, why, size);
		if (err)
			return err;
		if (!text[len])
			break;
	}
	/* "At once" has one form, whichever way it was written. */
	if (!v->after.bytes || !v->after.requests) {
		v->after.requests = 0;
		v->after.bytes = UINT64_MAX;
	}
	return 0;
}

/* The index of text[0..len) in words, or -1 and why. what: "transport", "level". */
static int find_word(const char *const *words, int count, const char *what, const char *text, size_t len, char *why, size_t size)
{
	char word[48], list[128];
	struct cv_nearest near = CV_NEAREST(word);
	size_t n = 0;

	memcpy(word, text, len < sizeof(word) ? len : sizeof(word) - 1);
	word[len < sizeof(word) ? len : sizeof(word) - 1] = '\0';
	for (int i = 0; i < count; i++) {
		if (!strcmp(word, words[i]))
			return i;
		cv_nearest_try(&near, words[i]);
		n += cv_format(list + n, sizeof(list) - n, "%s%s", i ? ", " : "", words[i]);
	}
	if (near.best)
		cv_format(why, size, "%s is no %s; did you mean \"%s\"? (%s)", cv_quote(text, len).text, what, near.best, list);
	else
		cv_format(why, size, "%s is no %s; write one of: %s", cv_quote(text, len).text, what, list);
	return -1;
}

static int parse_transports(const char *text, struct cv_value *v, char *why, size_t size)
{
	unsigned seen = 0;
	bool cut = false;

	v->transports.count = 0;
	for (size_t len; text += strspn(text, BLANKS ","), *text; text += len) {
		int t;

		len = strcspn(text, BLANKS ",");
		t = find_word(cv_transport_names, (int)CV_ARRAY_LEN(cv_transport_names), "transport", text, len, why, size);
		if (t < 0)
			return -EINVAL;
		if (seen & (1u << t)) {
			cv_format(why, size, "%s is named twice", cv_transport_names[t]);
			return -EINVAL;
		}
		seen |= 1u << t;
		cut |= t == CV_TRANSPORT_TCP;
		if (!cut)
			v->transports.list[v->transports.count++] = (uint8_t)t;
	}
	if (!seen) {
		cv_format(why, size, "names no transport; write one or more of: tcp, shm, rdma");
		return -EINVAL;
	}
	return 0;
}

static int parse_yes_no(const char *text, struct cv_value *v, char *why, size_t size)
{
	static const char *const words[] = { "no", "yes", "off", "on", "false", "true", "0", "1" };
	int i = find_word(words, (int)CV_ARRAY_LEN(words), "answer", text, strlen(text), why, size);

	if (i < 0)
		return -EINVAL;
	v->number = (uint64_t)i % 2;
	return 0;
}

static int parse_path(const char *text, struct cv_value *v, char *why, size_t size)
{
	size_t len = strlen(text);

	if (*text != '/') {
		cv_format(why, size, "%s is no absolute path", cv_quote(text, len).text);
		return -EINVAL;
	}
	if (len > PATH_LIMIT) {
		cv_format(why, size, "the path is longer than %d bytes", PATH_LIMIT);
		return -EINVAL;
	}
	v->text = text;
	return 0;
}

static int parse_spin(const struct cv_key *key, const char *text, struct cv_value *v, char *why, size_t size)
{
	struct cv_nearest near = CV_NEAREST(text);

	if (!strcmp(text, "adaptive")) {
		v->number = CV_SPIN_ADAPTIVE;
		return 0;
	}
	cv_nearest_try(&near, "adaptive");
	if (near.best) {
		cv_format(why, size, "%s is neither a time nor a word known here; did you mean \"adaptive\"?",
			  cv_quote(text, strlen(text)).text);
		return -EINVAL;
	}
	return parse_amount(key, text, &v->number, why, size);
}

static int parse_any(const struct cv_key *key, const char *text, struct cv_value *v, char *why, size_t size)
{
	int err;

	switch (key->type) {
	case CV_TYPE_TRANSPORTS:
		return parse_transports(text, v, why, size);
	case CV_TYPE_PROFILE:
		v->text = text;
		return 0;
	case CV_TYPE_AFTER:
		return parse_after(key, text, v, why, size);
	case CV_TYPE_NUMBER:
		return parse_amount(key, text, &v->number, why, size);
	case CV_TYPE_POWER:
		err = parse_amount(key, text, &v->number, why, size);
		if (!err)
			v->number = round_up_power(v->number);
		return err;
	case CV_TYPE_SPIN:
		return parse_spin(key, text, v, why, size);
	case CV_TYPE_LEVEL:
		err = find_word(cv_level_names, (int)CV_ARRAY_LEN(cv_level_names), "log level", text, strlen(text), why, size);
		if (err < 0)
			return -EINVAL;
		v->number = (uint64_t)err;
		return 0;
	case CV_TYPE_YESNO:
		return parse_yes_no(text, v, why, size);
	case CV_TYPE_PATH:
		return parse_path(text, v, why, size);
	case CV_TYPE_MATCH:
		break;
	}
	cv_format(why, size, "cannot stand here");
	return -EINVAL;
}

int cv_value_parse(const struct cv_key *key, const char *text, struct cv_value *v, char *why, size_t size)
{
	struct cv_value parsed = *v;
	int err;

	text += strspn(text, BLANKS);
	if (!*text) {
		cv_format(why, size, "the value is missing");
		return -EINVAL;
	}
	err = parse_any(key, text, &parsed, why, size);
	if (err)
		return err;
	parsed.set = true;
	*v = parsed;
	return 0;
}

struct cv_amount cv_amount(uint64_t n, enum cv_unit unit)
{
	const struct unit_word *u = unit == CV_UNIT_TIME ? time_units : unit == CV_UNIT_SIZE ? size_units : NULL;
	struct cv_amount a;

	while (u && n && n % u->factor)
		u++;
	cv_format(a.text, sizeof(a.text), "%lu%s", (unsigned long)(u && n ? n / u->factor : n), u && n ? u->name : "");
	return a;
}
