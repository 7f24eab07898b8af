/* SPDX-License-Identifier: Apache-2.0 */
/* What the settings of a connection come to: layers, files, environment, which section counts. */
#include "test.h"

#include "../../../src/observe/log.h"
#include "../../../src/policy/schema.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/stat.h>

#define KIB 1024u
#define MIB (1024 * KIB)
#define MS 1000000ull

static struct sockaddr_in addr(const char *text, uint16_t port)
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_port = htons(port) };

	assert_int_equal(inet_pton(AF_INET, text, &a.sin_addr), 1);
	return a;
}

/* server: the server's end of the connection; the other one is never looked at. */
static const struct cv_settings *decide(const struct cv_policy *p, enum cv_role role, const char *server, uint16_t port,
					struct cv_rule_ref *why)
{
	struct sockaddr_in s = addr(server, port), other = addr("192.0.2.77", 40000);
	const struct sockaddr *a = (struct sockaddr *)&s, *b = (struct sockaddr *)&other;

	return role == CV_ROLE_SERVER ? cv_policy_decide(p, role, a, b, why) : cv_policy_decide(p, role, b, a, why);
}

static void assert_standard(const struct cv_settings *s)
{
	assert_int_equal(s->transport_count, 2);
	assert_int_equal(s->transports[0], CV_TRANSPORT_RDMA);
	assert_int_equal(s->transports[1], CV_TRANSPORT_SHM);
	assert_int_equal(s->after_requests, 64);
	assert_int_equal(s->after_bytes, 256 * KIB);
	assert_int_equal(s->spin, CV_SPIN_ADAPTIVE);
	assert_int_equal(s->spin_max, 50000);
	assert_int_equal(s->ring, 64 * KIB);
	assert_int_equal(s->ring_max, 16 * MIB);
	assert_int_equal(s->spill_max, 4 * MIB);
	assert_int_equal(s->upgrade_wait, 0);
	assert_int_equal(s->handshake_timeout, 2000 * MS);
	assert_int_equal(s->handover_timeout, 5000 * MS);
}

static void test_no_configuration(void **state)
{
	const struct cv_policy *p = cv_policy_load("/usr/bin/any", NULL, NULL, NULL);
	const struct cv_global *g = cv_policy_global(p);
	struct cv_rule_ref why;
	uint64_t requests, bytes;

	(void)state;
	assert_standard(decide(p, CV_ROLE_SERVER, "10.0.0.1", 80, &why));
	assert_string_equal(why.section, "defaults");
	assert_null(why.file);
	assert_standard(cv_policy_decide(p, CV_ROLE_NONE, NULL, NULL, NULL));
	assert_true(cv_policy_any(p));
	cv_policy_first(p, &requests, &bytes);
	assert_int_equal(requests, 64);
	assert_int_equal(bytes, 256 * KIB);
	assert_int_equal(g->log_level, CV_LOG_WARN);
	assert_null(g->log_file);
	assert_string_equal(g->stats_dir, "/dev/shm");
	assert_false(g->stats_keep);
	cv_policy_free(p);
}

static void test_every_key(void **state)
{
	struct problems problems;
	const struct cv_policy *p = load("x",
					 "[defaults]\ntransport = shm\nupgrade-after = 9\nupgrade-wait = 1ms\nspin = 2us\nspin-max = 3us\n"
					 "ring = 128k\nring-max = 100M\nspill-max = 5\nhandshake-timeout = 6ms\nhandover-timeout = 7ms\n"
					 "log = debug\nlog-file = /l\nstats-dir = /s\nstats-keep = yes\n",
					 &problems);
	struct cv_rule_ref why;
	const struct cv_settings *s = decide(p, CV_ROLE_CLIENT, "10.0.0.1", 80, &why);
	const struct cv_global *g = cv_policy_global(p);

	(void)state;
	assert_string_equal(problems.all, "");
	assert_int_equal(s->transport_count, 1);
	assert_int_equal(s->transports[0], CV_TRANSPORT_SHM);
	assert_int_equal(s->after_requests, 9);
	assert_int_equal(s->after_bytes, UINT64_MAX);
	assert_int_equal(s->upgrade_wait, MS);
	assert_int_equal(s->spin, 2000);
	assert_int_equal(s->spin_max, 3000);
	assert_int_equal(s->ring, 128 * KIB);
	assert_int_equal(s->ring_max, 128 * MIB);
	assert_int_equal(s->spill_max, 5);
	assert_int_equal(s->handshake_timeout, 6 * MS);
	assert_int_equal(s->handover_timeout, 7 * MS);
	assert_int_equal(g->log_level, CV_LOG_DEBUG);
	assert_string_equal(g->log_file, "/l");
	assert_string_equal(g->stats_dir, "/s");
	assert_true(g->stats_keep);
	assert_string_equal(why.file, test_path("only.conf"));
	assert_int_equal(why.line, 2);
	cv_policy_free(p);
}

static void test_ring_is_bounded_by_ring_max(void **state)
{
	struct problems problems;
	const struct cv_policy *p = load("x", "[defaults]\nring-max = 16KiB\n[app x]\nmatch = both *:1\nring = 1MiB\n", &problems);

	(void)state;
	assert_int_equal(decide(p, CV_ROLE_CLIENT, "10.0.0.1", 80, NULL)->ring, 16 * KIB);
	assert_int_equal(decide(p, CV_ROLE_CLIENT, "10.0.0.1", 1, NULL)->ring, 16 * KIB);
	cv_policy_free(p);
}

static void test_first_match_wins(void **state)
{
	static const char text[] = "[defaults]\ntransport = tcp\n"
				   "[app other]\nspin = 1us\n"
				   "[app r*]\nmatch = server 10.0.0.0/8:80\nmatch = client *:90-91\nspin = 2us\n"
				   "[app redis]\nmatch = both *:80\ntransport = shm\n"
				   "[app /usr/bin/red*]\nmatch = server *:7\n";
	struct problems problems;
	struct cv_rule_ref why;
	const struct cv_policy *p = load("/usr/bin/redis", text, &problems);
	static const struct {
		enum cv_role role;
		const char *addr;
		uint16_t port;
		const char *section;
		int line;
	} cases[] = {
		{ CV_ROLE_SERVER, "10.1.1.1", 80, "app r*", 6 },	{ CV_ROLE_CLIENT, "10.1.1.1", 80, "app redis", 10 },
		{ CV_ROLE_SERVER, "11.1.1.1", 80, "app redis", 10 },	{ CV_ROLE_CLIENT, "11.1.1.1", 91, "app r*", 7 },
		{ CV_ROLE_SERVER, "11.1.1.1", 91, "defaults", 2 },	{ CV_ROLE_SERVER, "11.1.1.1", 7, "app /usr/bin/red*", 13 },
		{ CV_ROLE_CLIENT, "192.0.2.77", 40000, "defaults", 2 },
	};

	(void)state;
	assert_string_equal(problems.all, "");
	for (size_t i = 0; i < CV_ARRAY_LEN(cases); i++) {
		const struct cv_settings *s = decide(p, cases[i].role, cases[i].addr, cases[i].port, &why);

		assert_string_equal(why.section, cases[i].section);
		assert_int_equal(why.line, cases[i].line);
		assert_int_equal(s->transport_count, !strcmp(why.section, "app redis"));
		assert_int_equal(s->spin, !strcmp(why.section, "app r*") ? 2000 : CV_SPIN_ADAPTIVE);
	}
	assert_true(cv_policy_any(p));
	cv_policy_free(p);
}

static void test_globs_on_names_and_paths(void **state)
{
	static const struct {
		const char *glob, *prog;
		bool match;
	} cases[] = {
		{ "redis", "/usr/bin/redis", true },	    { "redis", "redis", true },	      { "usr*", "/usr/bin/redis", false },
		{ "/usr/*/redis", "/usr/bin/redis", true }, { "/usr/bin/*", "redis", false }, { "*/redis", "/usr/bin/redis", true },
	};
	struct problems problems;
	char text[200];

	(void)state;
	for (size_t i = 0; i < CV_ARRAY_LEN(cases); i++) {
		const struct cv_policy *p;

		snprintf(text, sizeof(text), "[app %s]\nspin = 1us\n", cases[i].glob);
		p = load(cases[i].prog, text, &problems);
		assert_int_equal(cv_policy_decide(p, CV_ROLE_NONE, NULL, NULL, NULL)->spin == 1000, cases[i].match);
		cv_policy_free(p);
	}
}

/* An app whose only match line is misspelt must not become an app for everything. */
static void test_bad_match_admits_nothing(void **state)
{
	struct problems problems;
	const struct cv_policy *p = load("x", "[app x]\nmatch = sever *:80\nspin = 1us\n", &problems);

	(void)state;
	assert_int_equal(problems.count, 1);
	assert_standard(decide(p, CV_ROLE_SERVER, "10.0.0.1", 80, NULL));
	assert_standard(cv_policy_decide(p, CV_ROLE_NONE, NULL, NULL, NULL));
	cv_policy_free(p);
}

static void test_any_and_first(void **state)
{
	static const struct {
		const char *text;
		bool any;
		uint64_t requests, bytes;
	} cases[] = {
		{ "[defaults]\ntransport = tcp\n", false, UINT64_MAX, UINT64_MAX },
		{ "[app x]\ntransport = tcp\n", false, UINT64_MAX, UINT64_MAX },
		{ "[app x]\nmatch = both *:*\ntransport = tcp\n[app x]\n", false, UINT64_MAX, UINT64_MAX },
		{ "[app x]\nmatch = both *:80\ntransport = tcp\n", true, 64, 256 * KIB },
		{ "[app other]\ntransport = tcp\n", true, 64, 256 * KIB },
		{ "[defaults]\ntransport = tcp\n[app x]\nmatch = both *:80\ntransport = shm\nupgrade-after = 7\n", true, 7, UINT64_MAX },
		{ "[app x]\nmatch = both *:80\nupgrade-after = 100, 1k\n", true, 64, 1024 },
		{ "[app x]\nmatch = both *:80\nupgrade-after = 0\n", true, 0, 256 * KIB },
		{ "[app x]\nupgrade-after = 500, 1M\n[app x]\nupgrade-after = 0\n", true, 500, MIB }, /* the second is never reached */
	};
	struct problems problems;
	uint64_t requests, bytes;

	(void)state;
	for (size_t i = 0; i < CV_ARRAY_LEN(cases); i++) {
		const struct cv_policy *p = load("x", cases[i].text, &problems);

		assert_string_equal(problems.all, "");
		assert_int_equal(cv_policy_any(p), cases[i].any);
		cv_policy_first(p, &requests, &bytes);
		assert_int_equal(requests, cases[i].requests);
		assert_int_equal(bytes, cases[i].bytes);
		cv_policy_free(p);
	}
}

/* One profile counts, just below the keys beside which it is named. */
static void test_profiles(void **state)
{
	static const char text[] = "[defaults]\nprofile = a\nspin-max = 1us\n"
				   "[profile a]\nspin-max = 10us\nring = 8KiB\n"
				   "[profile b]\nspin-max = 20us\nspill-max = 20k\n"
				   "[app x]\nmatch = both *:1\n"
				   "[app x]\nmatch = both *:2\nprofile = b\n"
				   "[app x]\nmatch = both *:3\nprofile = b\nspin-max = 3us\n"
				   "[app x]\nmatch = both *:4\nprofile = no-such\n";
	struct problems problems;
	const struct cv_policy *p = load("x", text, &problems);
	static const struct {
		uint16_t port;
		uint32_t spin_max, ring, spill_max;
	} cases[] = {
		{ 1, 1000, 8 * KIB, 4 * MIB }, { 2, 20000, 64 * KIB, 20 * KIB }, { 3, 3000, 64 * KIB, 20 * KIB },
		{ 4, 1000, 8 * KIB, 4 * MIB }, { 5, 1000, 8 * KIB, 4 * MIB },
	};

	(void)state;
	assert_int_equal(problems.count, 1);
	for (size_t i = 0; i < CV_ARRAY_LEN(cases); i++) {
		const struct cv_settings *s = decide(p, CV_ROLE_SERVER, "10.0.0.1", cases[i].port, NULL);

		assert_int_equal(s->spin_max, cases[i].spin_max);
		assert_int_equal(s->ring, cases[i].ring);
		assert_int_equal(s->spill_max, cases[i].spill_max);
	}
	cv_policy_free(p);
}

static void test_built_in_profiles(void **state)
{
	struct problems problems;
	const struct cv_policy *p = load("x",
					 "[app x]\nmatch = both *:1\nprofile = latency\n[app x]\nmatch = both *:2\nprofile = throughput\n"
					 "[app x]\nmatch = both *:3\nprofile = default\n[profile latency]\nspin-max = 7us\n",
					 &problems);

	(void)state;
	assert_string_equal(problems.all, "");
	assert_int_equal(decide(p, CV_ROLE_SERVER, "1.1.1.1", 1, NULL)->after_requests, 4);
	assert_int_equal(decide(p, CV_ROLE_SERVER, "1.1.1.1", 1, NULL)->spin_max, 7000); /* amended here */
	assert_int_equal(decide(p, CV_ROLE_SERVER, "1.1.1.1", 2, NULL)->ring, MIB);
	assert_standard(decide(p, CV_ROLE_SERVER, "1.1.1.1", 3, NULL));
	cv_policy_free(p);
}

static void clear_env(void)
{
	static char system_file[512];
	static const char *const names[] = { "CULVERT_CONFIG",	  "CULVERT_PROFILE",	   "CULVERT_SPIN",    "CULVERT_SPIN_MAX",
					     "CULVERT_TRANSPORT", "CULVERT_LOG",	   "CULVERT_MATCH",   "CULVERT_RNG",
					     "CULVERT_LIB",	  "CULVERT_UPGRADE_AFTER", "XDG_CONFIG_HOME", "CULVERT_STATS_DIR" };

	for (size_t i = 0; i < CV_ARRAY_LEN(names); i++)
		unsetenv(names[i]);
	setenv("HOME", test_path("home"), 1);
	snprintf(system_file, sizeof(system_file), "%s", test_path("etc.conf"));
	cv_policy_system_file = system_file;
}

static void test_files_in_order(void **state)
{
	struct problems problems = { 0 };
	struct cv_rule_ref why;
	const struct cv_policy *p;
	const struct cv_settings *s;

	(void)state;
	clear_env();
#define TEXT(name, text) test_file(name, text, sizeof(text) - 1)
	TEXT("etc.conf", "[defaults]\nspin-max = 1us\nspill-max = 1\nring = 4k\n[profile p]\nring = 8k\nring-max = 8k\n"
			 "[app x]\nmatch = both *:1\nhandover-timeout = 1ms\n[app x]\nmatch = both *:2\n");
	mkdir(test_path("home"), 0700);
	mkdir(test_path("home/.config"), 0700);
	TEXT("home/.config/culvert.conf", "[defaults]\nspin-max = 2us\nspill-max = 2\n[profile p]\nring-max = 16k\n"
					  "[app x]\nmatch = both *:1\nmatch = both *:3\n");
	p = cv_policy_load("x", NULL, problems_add, &problems);
	s = decide(p, CV_ROLE_SERVER, "1.1.1.1", 1, &why);
	assert_string_equal(why.file, test_path("home/.config/culvert.conf"));
	assert_int_equal(why.line, 7);
	assert_int_equal(s->spin_max, 2000);
	assert_int_equal(s->ring, 4 * KIB);
	assert_int_equal(s->handover_timeout, 5000 * MS); /* sections are not joined */
	decide(p, CV_ROLE_SERVER, "1.1.1.1", 2, &why);
	assert_string_equal(why.file, test_path("etc.conf"));
	cv_policy_free(p);

	/* XDG_CONFIG_HOME takes the place of ~/.config, unless it is relative; the named file comes last. */
	mkdir(test_path("xdg"), 0700);
	TEXT("xdg/culvert.conf", "[defaults]\nspin-max = 3us\n");
	setenv("XDG_CONFIG_HOME", test_path("xdg"), 1);
	TEXT("named.conf", "[defaults]\nspill-max = 4\n[app x]\nprofile = p\n");
	setenv("CULVERT_CONFIG", test_path("named.conf"), 1);
	p = cv_policy_load("x", NULL, problems_add, &problems);
	s = decide(p, CV_ROLE_SERVER, "1.1.1.1", 1, &why);
	assert_string_equal(why.file, test_path("named.conf"));
	assert_int_equal(why.line, 3);
	assert_int_equal(s->spin_max, 3000);
	assert_int_equal(s->spill_max, 4);
	assert_int_equal(s->ring, 8 * KIB);
	assert_int_equal(s->ring_max, 8 * KIB); /* of p as /etc has it */
	cv_policy_free(p);

	setenv("XDG_CONFIG_HOME", "xdg", 1);
	setenv("CULVERT_CONFIG", "", 1);
	p = cv_policy_load("x", NULL, problems_add, &problems);
	assert_int_equal(decide(p, CV_ROLE_SERVER, "1.1.1.1", 9, NULL)->spin_max, 2000);
	cv_policy_free(p);
	assert_string_equal(problems.all, "");

	setenv("CULVERT_CONFIG", test_path("absent.conf"), 1);
	cv_policy_free(cv_policy_load("x", NULL, problems_add, &problems));
	assert_string_equal(problems.file, test_path("absent.conf"));
	assert_string_equal(problems.text, "cannot be read: No such file or directory");

	/* A file that is there and cannot be read is a problem, whoever's it is. */
	memset(&problems, 0, sizeof(problems));
	clear_env();
	cv_policy_system_file = test_dir_name;
	setenv("HOME", "relative", 1);
	p = cv_policy_load("x", NULL, problems_add, &problems);
	assert_int_equal(problems.count, 1);
	assert_string_equal(problems.text, "cannot be read: Is a directory");
	assert_standard(decide(p, CV_ROLE_SERVER, "1.1.1.1", 1, NULL));
	cv_policy_free(p);

	/* One file only: no others, no environment. */
	memset(&problems, 0, sizeof(problems));
	clear_env();
	setenv("CULVERT_SPIN", "nonsense", 1);
	p = cv_policy_load("x", "/dev/null", problems_add, &problems);
	assert_int_equal(problems.count, 0);
	assert_standard(decide(p, CV_ROLE_SERVER, "1.1.1.1", 1, NULL));
	cv_policy_free(p);
	clear_env();
	unlink(test_path("etc.conf"));
	unlink(test_path("home/.config/culvert.conf"));
}

static void test_environment(void **state)
{
	struct problems problems = { 0 };
	const struct cv_policy *p;
	const struct cv_settings *s;

	(void)state;
	clear_env();
	TEXT("etc.conf", "[defaults]\nspin-max = 1us\n[app x]\nspin-max = 2us\nprofile = latency\ntransport = tcp\n");
	setenv("CULVERT_TRANSPORT", "shm", 1);
	setenv("CULVERT_LOG", "info", 1);
	setenv("CULVERT_STATS_DIR", "/tmp", 1);
	p = cv_policy_load("x", NULL, problems_add, &problems);
	s = decide(p, CV_ROLE_SERVER, "1.1.1.1", 1, NULL);
	assert_int_equal(s->transport_count, 1);
	assert_int_equal(s->spin_max, 2000);
	assert_int_equal(s->after_requests, 4);
	assert_int_equal(cv_policy_global(p)->log_level, CV_LOG_INFO);
	assert_string_equal(cv_policy_global(p)->stats_dir, "/tmp");
	cv_policy_free(p);

	/* Its profile beats the keys of all sections, and its own keys beat its profile. */
	setenv("CULVERT_PROFILE", "throughput", 1);
	p = cv_policy_load("x", NULL, problems_add, &problems);
	assert_int_equal(decide(p, CV_ROLE_SERVER, "1.1.1.1", 1, NULL)->spin_max, 20000);
	assert_int_equal(decide(p, CV_ROLE_SERVER, "1.1.1.1", 1, NULL)->after_requests, 64);
	cv_policy_free(p);
	setenv("CULVERT_SPIN_MAX", "9us", 1);
	setenv("CULVERT_UPGRADE_AFTER", "0", 1);
	p = cv_policy_load("x", NULL, problems_add, &problems);
	assert_int_equal(decide(p, CV_ROLE_SERVER, "1.1.1.1", 1, NULL)->spin_max, 9000);
	assert_int_equal(decide(p, CV_ROLE_SERVER, "1.1.1.1", 1, NULL)->after_requests, 0);
	cv_policy_free(p);
	assert_string_equal(problems.all, "");
	clear_env();
	unlink(test_path("etc.conf"));
}

static void test_mistakes_in_the_environment(void **state)
{
	static const struct {
		const char *name, *value, *why;
	} cases[] = {
		{ "CULVERT_SPIN", "5", "CULVERT_SPIN: \"5\" needs a unit: ns, us, ms or s" },
		{ "CULVERT_SPIN", "", "CULVERT_SPIN: the value is missing" },
		{ "CULVERT_PROFILE", "latncy", "there is no profile \"latncy\"; did you mean \"latency\"?" },
		{ "CULVERT_MATCH", "both *:*", "CULVERT_MATCH is not taken from the environment; it belongs in [app GLOB]" },
		{ "CULVERT_TRANSPROT", "shm", "there is no variable \"CULVERT_TRANSPROT\"; did you mean \"CULVERT_TRANSPORT\"?" },
		{ "CULVERT_UPGRADEAFTER", "0", "there is no variable \"CULVERT_UPGRADEAFTER\"; did you mean \"CULVERT_UPGRADE_AFTER\"?" },
		/* Other parts' own. */
		{ "CULVERT_LIB", "x", NULL },
		{ "CULVERT_", "x", NULL },
		{ "CULVERT_SOMETHING_QUITE_LONG_THAT_IS_NO_KEY_OF_OURS", "x", NULL },
		{ "CULVERT_CONFIG", "", NULL },
	};
	struct problems p;

	(void)state;
	clear_env();
	for (size_t i = 0; i < CV_ARRAY_LEN(cases); i++) {
		memset(&p, 0, sizeof(p));
		setenv(cases[i].name, cases[i].value, 1);
		cv_policy_free(cv_policy_load("x", NULL, problems_add, &p));
		unsetenv(cases[i].name);
		assert_int_equal(p.count, !!cases[i].why);
		assert_int_equal(p.line, 0);
		if (cases[i].why) {
			assert_string_equal(p.file, "environment");
			assert_string_equal(p.text, cases[i].why);
		}
	}
}

static void test_shipped_file(void **state)
{
	const char *dir = getenv("CV_SRCDIR");
	char path[4096];
	struct problems problems = { 0 };
	struct cv_rule_ref why;
	const struct cv_policy *p;

	(void)state;
	snprintf(path, sizeof(path), "%s/conf/culvert.conf", dir ? dir : ".");
	p = cv_policy_load("/usr/bin/redis-server", path, problems_add, &problems);
	assert_string_equal(problems.all, "");
	assert_int_equal(decide(p, CV_ROLE_SERVER, "127.0.0.1", 6379, &why)->after_requests, 4);
	assert_string_equal(why.section, "app redis-server");
	assert_standard(decide(p, CV_ROLE_SERVER, "127.0.0.1", 16379, &why));
	cv_policy_free(p);
	p = cv_policy_load("memcaslap", path, problems_add, &problems);
	decide(p, CV_ROLE_CLIENT, "127.0.0.1", 11211, &why);
	assert_string_equal(why.section, "app memc*");
	cv_policy_free(p);
	p = cv_policy_load("memcached", path, problems_add, &problems);
	decide(p, CV_ROLE_SERVER, "127.0.0.1", 11211, &why);
	assert_string_equal(why.section, "app memcached");
	cv_policy_free(p);
}

static void test_self(void **state)
{
	char buf[4096], tiny[4];
	const char *base;

	(void)state;
	assert_ptr_equal(cv_policy_self(buf, sizeof(buf)), buf);
	base = strrchr(buf, '/');
	assert_non_null(base);
	assert_string_equal(base, "/test_policy");
	assert_string_equal(cv_policy_self(tiny, sizeof(tiny)), "");
}

static int remove_dir(void **state)
{
	static const char *const names[] = { "only.conf", "named.conf", "xdg/culvert.conf" };

	(void)state;
	for (size_t i = 0; i < CV_ARRAY_LEN(names); i++)
		unlink(test_path(names[i]));
	rmdir(test_path("xdg"));
	rmdir(test_path("home/.config"));
	rmdir(test_path("home"));
	return rmdir(test_dir_name);
}

static int setup(void **state)
{
	int err = test_dir(state);

	clear_env();
	return err;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_no_configuration),
		cmocka_unit_test(test_every_key),
		cmocka_unit_test(test_ring_is_bounded_by_ring_max),
		cmocka_unit_test(test_first_match_wins),
		cmocka_unit_test(test_globs_on_names_and_paths),
		cmocka_unit_test(test_bad_match_admits_nothing),
		cmocka_unit_test(test_any_and_first),
		cmocka_unit_test(test_profiles),
		cmocka_unit_test(test_built_in_profiles),
		cmocka_unit_test(test_files_in_order),
		cmocka_unit_test(test_environment),
		cmocka_unit_test(test_mistakes_in_the_environment),
		cmocka_unit_test(test_shipped_file),
		cmocka_unit_test(test_self),
	};

	return cmocka_run_group_tests(tests, setup, remove_dir);
}
