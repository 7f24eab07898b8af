/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files that nobody wrote: random bytes, and a good file with random damage. Whatever they hold, the policy must come up, answer, and
 * report only text that may be shown on a terminal. Meant for the sanitizers; two seconds. A failure prints its seed: test_hostile
 * SEED replays it.
 */
#include "test.h"

#include "../../../src/policy/schema.h"

#include <netinet/in.h>
#include <time.h>

#define SIZE 2000

static const char good[] =
	"# comment\n[defaults]\ntransport = rdma shm tcp\nprofile = latency\nupgrade-after = 64 requests, 256KiB\n"
	"upgrade-wait = 1ms\nspin = adaptive\nspin-max = 50us\nring = 64KiB\nring-max = 16MiB\nspill-max = 256k\n"
	"handshake-timeout = 2s\nhandover-timeout = 5s\nlog = warn\nlog-file = /tmp/x\nstats-dir = /dev/shm\nstats-keep = yes\n"
	"[profile p q]\nspin = 5us ; comment\n[app [a-c]*/x\\*?]\nmatch = server 10.0.0.0/8:6379-6400\n"
	"match = client [2001:db8::]/32:*\nmatch = both [::ffff:1.2.3.4]:80\n[app *]\nmatch = both *:*\nprofile = p q\n";

static uint64_t state_;

static uint64_t next_random(void)
{
	state_ ^= state_ << 13;
	state_ ^= state_ >> 7;
	state_ ^= state_ << 17;
	return state_;
}

static size_t pick(size_t n)
{
	return (size_t)(next_random() % n);
}

static size_t make_noise(char *buf)
{
	static const char likely[] = "[]=:;# \t\r\n\0*/-0123456789abcdfghiklmnoprstuxKMG\xff\xef\xbb\xbf,!\\?";
	size_t len = pick(SIZE);

	for (size_t i = 0; i < len; i++)
		buf[i] = pick(8) ? likely[pick(sizeof(likely) - 1)] : (char)next_random();
	return len;
}

/* A good file in which something is removed, doubled, overwritten or moved. */
static size_t make_damage(char *buf)
{
	size_t len = sizeof(good) - 1;

	memcpy(buf, good, len);
	for (size_t n = 1 + pick(8); n; n--) {
		size_t from = pick(len), count = 1 + pick(20), to = pick(len);

		count = from + count > len ? len - from : count;
		switch (pick(4)) {
		case 0:
			buf[from] = (char)next_random();
			break;
		case 1:
			memmove(buf + from, buf + from + count, len - from - count);
			len -= count;
			break;
		case 2:
			if (len + count > SIZE)
				break;
			memmove(buf + from + count, buf + from, len - from);
			len += count;
			break;
		default:
			count = to + count > len ? len - to : count;
			memmove(buf + to, buf + from, count);
		}
		if (!len)
			break;
	}
	return len;
}

static void check_report(void *arg, const char *file, int line, const char *text)
{
	unsigned *count = arg;

	(void)file;
	assert_true(++*count <= 2 * 50);
	assert_in_range(line, 0, SIZE + 1);
	assert_in_range(strlen(text), 1, 511);
	for (; *text; text++)
		assert_in_range((unsigned char)*text, 0x20, 0x7e);
}

static void check_settings(const struct cv_settings *s)
{
	assert_true(s->transport_count <= 2);
	for (int i = 0; i < s->transport_count; i++)
		assert_true(s->transports[i] == CV_TRANSPORT_SHM || s->transports[i] == CV_TRANSPORT_RDMA);
	assert_true(s->ring >= 4096 && s->ring <= s->ring_max && s->ring_max <= 256u << 20);
	assert_int_equal(s->ring & (s->ring - 1), 0);
	assert_int_equal(s->ring_max & (s->ring_max - 1), 0);
	assert_true(s->spill_max <= 256u << 20);
	assert_true(s->spin == CV_SPIN_ADAPTIVE || s->spin <= 1000000000);
	assert_true(s->handshake_timeout >= 1000000 && s->handover_timeout >= 1000000);
}

static void one_round(uint64_t seed)
{
	static char buf[SIZE];
	struct sockaddr_in6 a = { .sin6_family = AF_INET6 };
	struct sockaddr_in b = { .sin_family = AF_INET };
	const struct cv_policy *p;
	uint64_t requests, bytes;
	struct cv_rule_ref why;
	unsigned reports = 0;
	size_t len;

	state_ = seed * 0x9e3779b97f4a7c15u + 1;
	len = pick(2) ? make_noise(buf) : make_damage(buf);
	p = cv_policy_load("/usr/bin/a/x*y", test_file("only.conf", buf, len), check_report, &reports);
	for (int i = 0; i < 4; i++) {
		a.sin6_port = (in_port_t)next_random();
		b.sin_port = (in_port_t)next_random();
		b.sin_addr.s_addr = (in_addr_t)next_random();
		check_settings(cv_policy_decide(p, (enum cv_role)pick(3), (struct sockaddr *)&a, (struct sockaddr *)&b, &why));
		assert_non_null(why.section);
	}
	cv_policy_first(p, &requests, &bytes);
	assert_true(cv_policy_global(p)->log_level >= 0 && cv_policy_global(p)->log_level <= 4);
	cv_policy_free(p);
}

/* The same for what one variable may hold. */
static void one_variable(void)
{
	static char buf[SIZE + 1];
	char name[CV_ENV_NAME_MAX];
	unsigned reports = 0;
	const struct cv_policy *p;

	buf[make_noise(buf)] = '\0';
	cv_key_env_name(&cv_keys[pick(CV_KEY_COUNT)], name);
	setenv(name, buf, 1);
	p = cv_policy_load("x", NULL, check_report, &reports);
	unsetenv(name);
	check_settings(cv_policy_decide(p, CV_ROLE_NONE, NULL, NULL, NULL));
	cv_policy_free(p);
}

static uint64_t only_seed, current_seed;

static void test_rounds(void **state)
{
	uint64_t seed = only_seed ? only_seed : (uint64_t)time(NULL) * 1000003u, last = only_seed ? seed : seed + 100000;
	struct timespec start, now;

	(void)state;
	cv_policy_system_file = "/nonexistent";
	setenv("HOME", "", 1);
	unsetenv("XDG_CONFIG_HOME");
	clock_gettime(CLOCK_MONOTONIC, &start);
	for (; seed <= last; seed++) {
		current_seed = seed;
		one_round(seed);
		one_variable();
		clock_gettime(CLOCK_MONOTONIC, &now);
		if ((now.tv_sec - start.tv_sec) * 1000 + (now.tv_nsec - start.tv_nsec) / 1000000 >= 2000)
			break;
	}
}

static void print_seed(void)
{
	fprintf(stderr, "seed %llu\n", (unsigned long long)current_seed);
}

#ifdef __SANITIZE_ADDRESS__
void __sanitizer_set_death_callback(void (*callback)(void));
#else
static void __sanitizer_set_death_callback(void (*callback)(void))
{
	(void)callback;
}
#endif

static int remove_dir(void **state)
{
	(void)state;
	unlink(test_path("only.conf"));
	return rmdir(test_dir_name);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_rounds) };

	int failed;

	if (argc > 1)
		only_seed = strtoull(argv[1], NULL, 0);
	__sanitizer_set_death_callback(print_seed);
	failed = cmocka_run_group_tests(tests, test_dir, remove_dir);
	if (failed)
		print_seed();
	return failed;
}
