/* SPDX-License-Identifier: Apache-2.0 */
#include "format.h"
#include "cli.h"
#include <arpa/inet.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

const char *cli_bytes(char buf[16], uint64_t n)
{
	static const char units[] = "KMGTPE";
	double v = (double)n / 1024;
	const char *unit = units;

	if (n < 1024) {
		snprintf(buf, 16, "%u", (unsigned)n);
		return buf;
	}
	/* What would round to 1024 of a unit is 1.0 of the next. */
	for (; v >= 1023.5 && unit[1]; unit++)
		v /= 1024;
	snprintf(buf, 16, "%.*f%c", v < 9.95 ? 1 : 0, v, *unit);
	return buf;
}

const char *cli_age(char buf[16], uint64_t ns)
{
	uint64_t s = ns / 1000000000;

	if (s == 0)
		snprintf(buf, 16, "%ums", (unsigned)(ns / 1000000));
	else if (s < 60)
		snprintf(buf, 16, "%us", (unsigned)s);
	else if (s < 3600)
		snprintf(buf, 16, "%um%02us", (unsigned)(s / 60), (unsigned)(s % 60));
	else if (s < 86400)
		snprintf(buf, 16, "%uh%02um", (unsigned)(s / 3600), (unsigned)(s / 60 % 60));
	else
		snprintf(buf, 16, "%ud%02uh", (unsigned)(s / 86400), (unsigned)(s / 3600 % 24));
	return buf;
}

const char *cli_addr(char buf[72], unsigned family, const uint8_t *addr, unsigned port)
{
	char text[INET6_ADDRSTRLEN];

	if (family == AF_INET && inet_ntop(AF_INET, addr, text, sizeof(text)))
		snprintf(buf, 72, "%s:%u", text, port);
	else if (family == AF_INET6 && inet_ntop(AF_INET6, addr, text, sizeof(text)))
		snprintf(buf, 72, "[%s]:%u", text, port);
	else
		snprintf(buf, 72, "?");
	return buf;
}

static char *copy(const char *s)
{
	return strcpy(cli_grow(NULL, strlen(s) + 1, 1), s);
}

void cli_table_row(struct cli_table *t, const char *const *cells, const char *note)
{
	if (t->rows == t->room) {
		t->room = t->room ? t->room * 2 : 64;
		t->cells = cli_grow(t->cells, t->room * t->columns, sizeof(*t->cells));
		t->notes = cli_grow(t->notes, t->room, sizeof(*t->notes));
	}
	for (unsigned c = 0; c < t->columns; c++)
		t->cells[t->rows * t->columns + c] = copy(cells[c]);
	t->notes[t->rows++] = note ? copy(note) : NULL;
}

void cli_table_print(const struct cli_table *t, FILE *out)
{
	size_t width[CLI_TABLE_MAX] = { 0 };

	for (size_t i = 0; i < t->rows * t->columns; i++) {
		size_t len = strlen(t->cells[i]);

		if (len > width[i % t->columns])
			width[i % t->columns] = len;
	}
	for (size_t r = 0; r < t->rows; r++) {
		for (unsigned c = 0; c < t->columns; c++) {
			const char *cell = t->cells[r * t->columns + c];
			bool last = c + 1 == t->columns;
			int w = last && !(t->right >> c & 1) ? 0 : (int)width[c];

			fprintf(out, "%*s%s", t->right >> c & 1 ? w : -w, cell, last ? "\n" : "  ");
		}
		if (t->notes[r])
			fprintf(out, "    %s\n", t->notes[r]);
	}
}

void cli_table_free(struct cli_table *t)
{
	for (size_t i = 0; i < t->rows * t->columns; i++)
		free(t->cells[i]);
	for (size_t i = 0; i < t->rows; i++)
		free(t->notes[i]);
	free(t->cells);
	free(t->notes);
	t->cells = t->notes = NULL;
	t->rows = t->room = 0;
}

static void json_string(struct cli_json *j, const char *s)
{
	fputc('"', j->out);
	for (; *s; s++) {
		unsigned char c = (unsigned char)*s;

		/* What is not ASCII may be a damaged name: no valid JSON text could hold it as it is. */
		if (c == '"' || c == '\\')
			fprintf(j->out, "\\%c", c);
		else if (c < 0x20 || c >= 0x7f)
			fprintf(j->out, "\\u%04x", c);
		else
			fputc(c, j->out);
	}
	fputc('"', j->out);
}

static void json_begin(struct cli_json *j, const char *key)
{
	if (j->any)
		fputc(',', j->out);
	if (j->depth)
		fprintf(j->out, "\n%*s", j->depth * 2, "");
	j->any = true;
	if (key) {
		json_string(j, key);
		fputs(": ", j->out);
	}
}

void cli_json_open(struct cli_json *j, const char *key, char bracket)
{
	json_begin(j, key);
	fputc(bracket, j->out);
	j->depth++;
	j->any = false;
}

void cli_json_close(struct cli_json *j, char bracket)
{
	j->depth--;
	if (j->any)
		fprintf(j->out, "\n%*s", j->depth * 2, "");
	fputc(bracket, j->out);
	j->any = true;
	if (j->depth == 0)
		fputc('\n', j->out);
}

void cli_json_u64(struct cli_json *j, const char *key, uint64_t v)
{
	json_begin(j, key);
	fprintf(j->out, "%" PRIu64, v);
}

void cli_json_bool(struct cli_json *j, const char *key, bool v)
{
	json_begin(j, key);
	fputs(v ? "true" : "false", j->out);
}

void cli_json_str(struct cli_json *j, const char *key, const char *v)
{
	json_begin(j, key);
	if (v)
		json_string(j, v);
	else
		fputs("null", j->out);
}
