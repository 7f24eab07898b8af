/* SPDX-License-Identifier: Apache-2.0 */
#include "../policy/policy.h"
#include "../policy/schema.h"
#include "../policy/value.h"
#include "cli.h"
#include <arpa/inet.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

const char cli_check_help[] =
	"usage: culvert check [FILE]\n"
	"       culvert check [-c FILE] PROG ROLE ADDR:PORT\n\n"
	"The first form checks the configuration: FILE, or without it everything that a program started here would read\n"
	"(/etc/culvert.conf, the user's file, CULVERT_CONFIG, CULVERT_... variables). Prints FILE:LINE: what is wrong, or \"ok\".\n"
	"The second form says which rule decides over a connection of PROG (a path or a name), and the settings in force.\n"
	"ROLE is server (PROG accepted it) or client (PROG opened it); ADDR:PORT is the server's end, like 127.0.0.1:6379 or [::1]:6379.\n\n"
	"  -c, --config FILE  only this file, besides the built-in defaults\n"
	"  -h, --help         this text\n\n"
	"Exit status: 0; 1 = the configuration has problems; 2 = usage.\n";

static const struct option options[] = {
	{ "config", required_argument, NULL, 'c' },
	{ "help", no_argument, NULL, 'h' },
	{ 0 },
};

struct problems {
	FILE *out;
	unsigned count;
};

static void on_problem(void *arg, const char *file, int line, const char *text)
{
	struct problems *p = arg;

	p->count++;
	if (file && line > 0)
		fprintf(p->out, "%s:%d: %s\n", file, line, text);
	else
		fprintf(p->out, "%s: %s\n", file ? file : "built-in defaults", text);
}

static int validate(const char *file)
{
	struct problems p = { .out = stdout };

	cv_policy_load("culvert", file, on_problem, &p);
	if (p.count)
		return CLI_FAILED;
	puts("ok");
	return CLI_OK;
}

static bool parse_endpoint(const char *s, struct sockaddr_storage *out)
{
	struct sockaddr_in *in = (struct sockaddr_in *)out;
	struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)out;
	const char *colon = strrchr(s, ':');
	char host[64], *end;
	unsigned long port;
	bool six = *s == '[';
	size_t len;

	memset(out, 0, sizeof(*out));
	if (!colon || colon[1] < '0' || colon[1] > '9')
		return false;
	port = strtoul(colon + 1, &end, 10);
	len = (size_t)(colon - s);
	if (*end || port > 65535 || len >= sizeof(host) || (six && (len < 2 || s[len - 1] != ']')))
		return false;
	memcpy(host, s + six, len - 2 * six);
	host[len - 2 * six] = '\0';
	if (six) {
		in6->sin6_family = AF_INET6;
		in6->sin6_port = htons((uint16_t)port);
		return inet_pton(AF_INET6, host, &in6->sin6_addr) == 1;
	}
	in->sin_family = AF_INET;
	in->sin_port = htons((uint16_t)port);
	return inet_pton(AF_INET, host, &in->sin_addr) == 1;
}

static bool parse_role(const char *s, enum cv_role *role)
{
	static const char *const names[] = { "client", "server" };

	*role = strcmp(s, "client") == 0 ? CV_ROLE_CLIENT : strcmp(s, "server") == 0 ? CV_ROLE_SERVER : CV_ROLE_NONE;
	if (*role == CV_ROLE_NONE)
		cli_unknown("role", s, names, CV_ARRAY_LEN(names));
	return *role != CV_ROLE_NONE;
}

static void print_transports(const struct cv_settings *s)
{
	printf("  %-18s =", "transport");
	for (unsigned i = 0; i < s->transport_count && i < CV_ARRAY_LEN(s->transports); i++)
		printf(" %s", cv_transport_names[s->transports[i] % CV_ARRAY_LEN(cv_transport_names)]);
	printf(" tcp\n");
}

static void print_after(const struct cv_settings *s)
{
	printf("  %-18s = ", "upgrade-after");
	if (s->after_requests == 0 || s->after_bytes == 0)
		printf("0\n");
	else if (s->after_requests == UINT64_MAX && s->after_bytes == UINT64_MAX)
		printf("never\n");
	else if (s->after_bytes == UINT64_MAX)
		printf("%" PRIu64 " requests\n", s->after_requests);
	else if (s->after_requests == UINT64_MAX)
		printf("%s\n", cv_amount(s->after_bytes, CV_UNIT_SIZE).text);
	else
		printf("%" PRIu64 " requests, %s\n", s->after_requests, cv_amount(s->after_bytes, CV_UNIT_SIZE).text);
}

static void print_number(const struct cv_settings *s, const struct cv_key *key)
{
	const char *field = (const char *)s + key->field;
	uint32_t narrow;
	uint64_t v;

	if (key->width == sizeof(narrow)) {
		memcpy(&narrow, field, sizeof(narrow));
		v = narrow;
	} else {
		memcpy(&v, field, sizeof(v));
	}
	printf("  %-18s = %s\n", key->name, key->type == CV_TYPE_SPIN && v == CV_SPIN_ADAPTIVE ? "adaptive" : cv_amount(v, key->unit).text);
}

/* As they would stand in culvert.conf. */
static void print_settings(const struct cv_settings *s)
{
	print_transports(s);
	if (s->transport_count == 0)
		return;
	for (unsigned i = 0; i < CV_KEY_COUNT; i++) {
		if (i == CV_KEY_UPGRADE_AFTER)
			print_after(s);
		else if (cv_keys[i].width)
			print_number(s, &cv_keys[i]);
	}
}

static int decide(const char *only_file, char **argv)
{
	struct problems p = { .out = stderr };
	struct sockaddr_storage server, other = { 0 };
	struct cv_rule_ref why = { 0 };
	const struct cv_settings *s;
	const struct cv_policy *policy;
	enum cv_role role;

	if (!parse_role(argv[1], &role))
		return CLI_USAGE;
	if (!parse_endpoint(argv[2], &server)) {
		cli_error("'%s' is not ADDR:PORT; write it like 127.0.0.1:6379 or [::1]:6379", argv[2]);
		return CLI_USAGE;
	}
	other.ss_family = server.ss_family;
	policy = cv_policy_load(argv[0], only_file, on_problem, &p);
	s = cv_policy_decide(policy, role, (struct sockaddr *)(role == CV_ROLE_SERVER ? &server : &other),
			     (struct sockaddr *)(role == CV_ROLE_SERVER ? &other : &server), &why);
	printf("%s as %s, server at %s: %s\n", argv[0], argv[1], argv[2],
	       s->transport_count ? "may be accelerated" : "is left on TCP");
	if (why.file)
		printf("decided by [%s], %s:%d\n", why.section, why.file, why.line);
	else
		printf("decided by [%s], built in\n", why.section);
	print_settings(s);
	return p.count ? CLI_FAILED : CLI_OK;
}

int cli_check(int argc, char **argv)
{
	const char *file = NULL;
	int c;

	while ((c = cli_getopt(argc, argv, ":c:h", options, "check")) != -1) {
		if (c == 'h') {
			fputs(cli_check_help, stdout);
			return CLI_OK;
		}
		if (c != 'c')
			return CLI_USAGE;
		file = optarg;
	}
	if (file && access(file, R_OK) < 0) {
		cli_error("%s: %m", file);
		return CLI_USAGE;
	}
	if (argc - optind == 3)
		return decide(file, argv + optind);
	if (argc - optind == 1 && !file)
		return validate(argv[optind]);
	if (argc - optind == 0)
		return validate(file);
	cli_error("check takes nothing, a FILE, or PROG ROLE ADDR:PORT");
	return CLI_USAGE;
}
