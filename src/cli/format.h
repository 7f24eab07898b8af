/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How values look: for people (units, addresses, tables) and for programs (JSON). Pure but for what it prints.
 */
#ifndef CV_CLI_FORMAT_H
#define CV_CLI_FORMAT_H

#include "../base/base.h"
#include <stdio.h>

/* "0", "999", "1.2K", "17M": powers of 1024, at most five characters. */
const char *cli_bytes(char buf[16], uint64_t n);
/* "850ms", "12s", "3m05s", "2h07m", "4d02h". */
const char *cli_age(char buf[16], uint64_t ns);
/* "127.0.0.1:6379", "[::1]:6379", "?" when family is neither. addr in network order, port in host order. */
const char *cli_addr(char buf[72], unsigned family, const uint8_t *addr, unsigned port);

/* A table: cells are copied; columns are as wide as they need to be. The first row is the heading. */
#define CLI_TABLE_MAX 10
struct cli_table {
	unsigned columns, right; /* right: bit per column that is flush right */
	size_t rows, room;
	char **cells;
	char **notes; /* by row: what is printed indented below it, or NULL */
};
void cli_table_row(struct cli_table *t, const char *const *cells, const char *note);
void cli_table_print(const struct cli_table *t, FILE *out);
void cli_table_free(struct cli_table *t);

/* JSON, indented, commas set by itself. key is NULL inside arrays. */
struct cli_json {
	FILE *out;
	int depth;
	bool any;
};
void cli_json_open(struct cli_json *j, const char *key, char bracket);
void cli_json_close(struct cli_json *j, char bracket);
void cli_json_u64(struct cli_json *j, const char *key, uint64_t v);
void cli_json_bool(struct cli_json *j, const char *key, bool v);
void cli_json_str(struct cli_json *j, const char *key, const char *v); /* NULL: null */

#endif
