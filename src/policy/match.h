/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One `match` line: server|client|both ADDR[/LEN]:PORT[-PORT]. Pure; immutable once parsed.
 */
#ifndef CV_POLICY_MATCH_H
#define CV_POLICY_MATCH_H

#include "policy.h"

struct cv_rule {
	struct cv_rule *next; /* of the same section, in file order */
	int line;
	uint8_t roles;		/* bit 1 << enum cv_role */
	uint8_t family;		/* AF_INET, AF_INET6, or AF_UNSPEC: any address */
	uint8_t bits;		/* how many leading bits of addr count */
	uint16_t port, port_to; /* host order, inclusive */
	uint8_t addr[16];	/* network order; the first four bytes for AF_INET */
};

/* 0; or -EINVAL, and in why (size bytes) what is wrong. line and next are the caller's. */
int cv_rule_parse(const char *text, struct cv_rule *rule, char *why, size_t size);

/* server: the address of the server's end of the connection, as getsockname or getpeername gave it; may be NULL (nothing but *:* fits). */
bool cv_rule_match(const struct cv_rule *rule, enum cv_role role, const struct sockaddr *server);

/* True when the rule admits every connection there is. */
bool cv_rule_is_any(const struct cv_rule *rule);

#endif
