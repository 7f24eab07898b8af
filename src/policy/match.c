/* SPDX-License-Identifier: Apache-2.0 */
#include "match.h"
#include "../observe/log.h"
#include "words.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <string.h>

#define ROLE_BIT(role) (1u << (role))

static const struct {
	const char *name;
	uint8_t roles;
} role_words[] = {
	{ "server", ROLE_BIT(CV_ROLE_SERVER) },
	{ "client", ROLE_BIT(CV_ROLE_CLIENT) },
	{ "both", ROLE_BIT(CV_ROLE_SERVER) | ROLE_BIT(CV_ROLE_CLIENT) },
};

static const uint8_t v4_mapped[12] = { [10] = 0xff, [11] = 0xff };

/* A decimal number of at most max, the whole of s[0..len). */
static int small_number(const char *s, size_t len, unsigned max, unsigned *out)
{
	unsigned v = 0;

	if (!len)
		return -EINVAL;
	for (size_t i = 0; i < len; i++) {
		if (s[i] < '0' || s[i] > '9')
			return -EINVAL;
		v = v * 10 + (unsigned)(s[i] - '0');
		if (v > max)
			return -ERANGE;
	}
	*out = v;
	return 0;
}

static int parse_role(const char *text, size_t len, struct cv_rule *rule, char *why, size_t size)
{
	char word[32];
	struct cv_nearest near = CV_NEAREST(word);

	if (!len) {
		cv_format(why, size, "wants: server|client|both ADDR[/LEN]:PORT[-PORT]");
		return -EINVAL;
	}
	memcpy(word, text, len < sizeof(word) ? len : sizeof(word) - 1);
	word[len < sizeof(word) ? len : sizeof(word) - 1] = '\0';
	for (size_t i = 0; i < CV_ARRAY_LEN(role_words); i++) {
		if (!strcmp(word, role_words[i].name)) {
			rule->roles = role_words[i].roles;
			return 0;
		}
		cv_nearest_try(&near, role_words[i].name);
	}
	if (near.best)
		cv_format(why, size, "%s is no role; did you mean \"%s\"?", cv_quote(text, len).text, near.best);
	else
		cv_format(why, size, "%s is no role; write server, client or both before the address", cv_quote(text, len).text);
	return -EINVAL;
}

static int parse_ports(const char *text, struct cv_rule *rule, char *why, size_t size)
{
	const char *dash = strchr(text, '-');
	size_t len = dash ? (size_t)(dash - text) : strlen(text);
	unsigned from, to;

	if (!strcmp(text, "*")) {
		rule->port = 0;
		rule->port_to = UINT16_MAX;
		return 0;
	}
	if (small_number(text, len, UINT16_MAX, &from) || !from) {
		cv_format(why, size, "%s is no port; write 1 to 65535, or * for any", cv_quote(text, len).text);
		return -EINVAL;
	}
	to = from;
	if (dash && (small_number(dash + 1, strlen(dash + 1), UINT16_MAX, &to) || !to)) {
		cv_format(why, size, "%s is no port; write 1 to 65535, or * for any", cv_quote(dash + 1, strlen(dash + 1)).text);
		return -EINVAL;
	}
	if (to < from) {
		cv_format(why, size, "the port range %s is empty; the lower port comes first", cv_quote(text, strlen(text)).text);
		return -EINVAL;
	}
	rule->port = (uint16_t)from;
	rule->port_to = (uint16_t)to;
	return 0;
}

/* IPv4 written as ::ffff:a.b.c.d/96+ is IPv4: that is what the sockets' addresses are turned into as well. */
static void unmap_rule(struct cv_rule *rule)
{
	if (rule->family != AF_INET6 || rule->bits < 96 || memcmp(rule->addr, v4_mapped, sizeof(v4_mapped)))
		return;
	rule->family = AF_INET;
	rule->bits = (uint8_t)(rule->bits - 96);
	memmove(rule->addr, rule->addr + 12, 4);
}

static int parse_address(const char *text, size_t len, bool brackets, struct cv_rule *rule, char *why, size_t size)
{
	const char *slash = memchr(text, '/', len);
	size_t alen = slash ? (size_t)(slash - text) : len;
	unsigned all = brackets ? 128 : 32, bits = all;
	char addr[INET6_ADDRSTRLEN];

	rule->family = brackets ? AF_INET6 : AF_INET;
	if (alen >= sizeof(addr))
		goto bad;
	memcpy(addr, text, alen);
	addr[alen] = '\0';
	if (inet_pton(rule->family, addr, rule->addr) != 1)
		goto bad;
	if (slash && small_number(slash + 1, len - alen - 1, all, &bits)) {
		cv_format(why, size, "%s is no prefix length; write 0 to %u", cv_quote(slash + 1, len - alen - 1).text, all);
		return -EINVAL;
	}
	rule->bits = (uint8_t)bits;
	unmap_rule(rule);
	return 0;
bad:
	cv_format(why, size, "%s is no IPv%d address (host names are not looked up)", cv_quote(text, alen).text, brackets ? 6 : 4);
	return -EINVAL;
}

/* [ADDR]/LEN and [ADDR/LEN] are both in use in the field; both are understood. text is behind the opening bracket. */
static int parse_bracketed(const char *text, struct cv_rule *rule, const char **ports, char *why, size_t size)
{
	const char *close = strchr(text, ']');
	const char *colon = close ? strchr(close, ':') : NULL;
	char joined[INET6_ADDRSTRLEN + 8];
	size_t alen, plen;

	if (!close) {
		cv_format(why, size, "the bracket of %s is not closed", cv_quote(text - 1, strlen(text) + 1).text);
		return -EINVAL;
	}
	alen = (size_t)(close - text);
	plen = colon ? (size_t)(colon - close - 1) : strlen(close + 1);
	*ports = colon ? colon + 1 : NULL;
	if (!plen)
		return parse_address(text, alen, true, rule, why, size);
	if (close[1] != '/' || memchr(text, '/', alen) || alen + plen >= sizeof(joined)) {
		cv_format(why, size, "%s after the address is not understood; write [ADDR/LEN]:PORT", cv_quote(close + 1, plen).text);
		return -EINVAL;
	}
	memcpy(joined, text, alen);
	memcpy(joined + alen, close + 1, plen);
	return parse_address(joined, alen + plen, true, rule, why, size);
}

int cv_rule_parse(const char *text, struct cv_rule *rule, char *why, size_t size)
{
	size_t len = strcspn(text, " \t");
	const char *where = text + len, *ports = NULL;
	int err;

	memset(rule, 0, sizeof(*rule));
	err = parse_role(text, len, rule, why, size);
	if (err)
		return err;
	where += strspn(where, " \t");
	if (!*where) {
		cv_format(why, size, "the address and port are missing: server|client|both ADDR[/LEN]:PORT[-PORT]");
		return -EINVAL;
	}
	if (where[strcspn(where, " \t")]) {
		cv_format(why, size, "%s: one address and port to a line; write another match line for the next",
			  cv_quote(where, strlen(where)).text);
		return -EINVAL;
	}
	if (*where == '[') {
		err = parse_bracketed(where + 1, rule, &ports, why, size);
	} else {
		const char *colon = strchr(where, ':');

		len = colon ? (size_t)(colon - where) : strlen(where);
		ports = colon ? colon + 1 : NULL;
		if (colon && strchr(colon + 1, ':')) {
			cv_format(why, size, "%s: IPv6 addresses stand in brackets, as in [2001:db8::]/32:6379",
				  cv_quote(where, strlen(where)).text);
			err = -EINVAL;
		} else if (colon && (len != 1 || *where != '*')) {
			err = parse_address(where, len, false, rule, why, size);
		}
	}
	if (err)
		return err;
	if (!ports || !*ports) {
		cv_format(why, size, "the port is missing in %s; write :* for any", cv_quote(where, strlen(where)).text);
		return -EINVAL;
	}
	return parse_ports(ports, rule, why, size);
}

static bool same_prefix(const uint8_t *a, const uint8_t *b, unsigned bits)
{
	unsigned whole = bits / 8, rest = bits % 8;

	if (memcmp(a, b, whole))
		return false;
	return !rest || !((a[whole] ^ b[whole]) >> (8 - rest));
}

bool cv_rule_is_any(const struct cv_rule *rule)
{
	return rule->family == AF_UNSPEC && !rule->port && rule->port_to == UINT16_MAX &&
	       rule->roles == (ROLE_BIT(CV_ROLE_SERVER) | ROLE_BIT(CV_ROLE_CLIENT));
}

bool cv_rule_match(const struct cv_rule *rule, enum cv_role role, const struct sockaddr *server)
{
	struct sockaddr_in v4;
	struct sockaddr_in6 v6;
	uint8_t family, addr[16];
	uint16_t port;

	if (cv_rule_is_any(rule))
		return true;
	if (!(rule->roles & ROLE_BIT(role)) || !server)
		return false;
	if (server->sa_family == AF_INET) {
		memcpy(&v4, server, sizeof(v4));
		family = AF_INET;
		port = ntohs(v4.sin_port);
		memcpy(addr, &v4.sin_addr, 4);
	} else if (server->sa_family == AF_INET6) {
		memcpy(&v6, server, sizeof(v6));
		family = AF_INET6;
		port = ntohs(v6.sin6_port);
		memcpy(addr, &v6.sin6_addr, 16);
		if (!memcmp(addr, v4_mapped, sizeof(v4_mapped))) {
			family = AF_INET;
			memmove(addr, addr + 12, 4);
		}
	} else {
		return false;
	}
	if (port < rule->port || port > rule->port_to)
		return false;
	return rule->family == AF_UNSPEC || (rule->family == family && same_prefix(rule->addr, addr, rule->bits));
}
