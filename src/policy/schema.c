/* SPDX-License-Identifier: Apache-2.0 */
#include "schema.h"
#include "../observe/log.h"

#include <string.h>

#define US 1000ull
#define MS (1000 * US)
#define SEC (1000 * MS)
#define KIB 1024ull
#define MIB (1024 * KIB)

#define FIELD(name) .field = offsetof(struct cv_settings, name), .width = sizeof(((struct cv_settings *)0)->name)

const struct cv_key cv_keys[CV_KEY_COUNT] = {
	[CV_KEY_TRANSPORT] = {
		.name = "transport", .type = CV_TYPE_TRANSPORTS, .where = CV_IN_ANY, .standard = "rdma shm tcp",
		.help = "What a connection may be switched onto, in order of preference: shm (shared memory, for a peer on "
			"this host), rdma (for a peer on another host), tcp. tcp means to leave the connection alone; it is "
			"the last resort even when it is not named, and what comes after it is never tried. rdma is accepted "
			"everywhere and is not available until its plugin is installed.",
	},
	[CV_KEY_PROFILE] = {
		.name = "profile", .type = CV_TYPE_PROFILE, .where = CV_IN_DEFAULTS | CV_IN_APP | CV_IN_ENV, .standard = CV_PROFILE_DEFAULT,
		.help = "Take the settings of this [profile] section, and only then those that stand beside this key. A "
			"connection has one profile: that of the environment, else that of its [app] section, else that of "
			"[defaults].",
	},
	[CV_KEY_MATCH] = {
		.name = "match", .type = CV_TYPE_MATCH, .where = CV_IN_APP,
		.help = "The connections that this section is for; may stand several times, any line that matches will do. "
			"server: accepted by the program; client: opened by it; both: either. The address and the port are "
			"those of the server's end, whichever side the program is on. * stands for any address or any port, "
			"LEN is the number of leading bits that count, IPv6 addresses stand in brackets. IPv4 connections on "
			"IPv6 sockets (::ffff:a.b.c.d) match IPv4 addresses.",
	},
	[CV_KEY_UPGRADE_AFTER] = {
		.name = "upgrade-after", .type = CV_TYPE_AFTER, .where = CV_IN_ANY, .standard = "64 requests, 256KiB", .max = INT64_MAX,
		.help = "How much a connection must have done before an upgrade is tried: so many requests (sends), or so "
			"many bytes, or whichever of the two comes first. 0 = at once. Connections that end before that never"
			" pay for an upgrade.",
	},
	[CV_KEY_UPGRADE_WAIT] = {
		.name = "upgrade-wait", .type = CV_TYPE_NUMBER, .unit = CV_UNIT_TIME, .where = CV_IN_ANY, .standard = "0", .max = 60 * SEC,
		FIELD(upgrade_wait),
		.help = "The first call on a connection waits this long for its upgrade. 0 = never wait. For tests and "
			"benchmarks; a server that is to behave like TCP leaves it at 0.",
	},
	[CV_KEY_SPIN] = {
		.name = "spin", .type = CV_TYPE_SPIN, .unit = CV_UNIT_TIME, .where = CV_IN_ANY, .standard = "adaptive",
		.max = SEC, FIELD(spin),
		.help = "How long a thread that waits polls the link before it sleeps. A time is kept to always; adaptive "
			"spins longer where the wait turned out short and not at all where spinning was in vain, up to "
			"spin-max.",
	},
	[CV_KEY_SPIN_MAX] = {
		.name = "spin-max", .type = CV_TYPE_NUMBER, .unit = CV_UNIT_TIME, .where = CV_IN_ANY, .standard = "50us", .max = SEC,
		FIELD(spin_max),
		.help = "The longest adaptive spin.",
	},
	[CV_KEY_RING] = {
		.name = "ring", .type = CV_TYPE_POWER, .unit = CV_UNIT_SIZE, .where = CV_IN_ANY, .standard = "64KiB", .min = 4 * KIB,
		.max = 256 * MIB, FIELD(ring),
		.help = "What each direction of a switched connection can hold at first. Rounded up to a power of two, and "
			"never more than ring-max.",
	},
	[CV_KEY_RING_MAX] = {
		.name = "ring-max", .type = CV_TYPE_POWER, .unit = CV_UNIT_SIZE, .where = CV_IN_ANY, .standard = "16MiB", .min = 4 * KIB,
		.max = 256 * MIB, FIELD(ring_max),
		.help = "What a direction may grow to when the connection proves to need it. Rounded up to a power of two.",
	},
	[CV_KEY_SPILL_MAX] = {
		.name = "spill-max", .type = CV_TYPE_NUMBER, .unit = CV_UNIT_SIZE, .where = CV_IN_ANY, .standard = "4MiB",
		.max = 256 * MIB,
		FIELD(spill_max),
		.help = "A switch sets aside what the program has not yet read. When more than this is unread, the switch is "
			"put off.",
	},
	[CV_KEY_HANDSHAKE_TIMEOUT] = {
		.name = "handshake-timeout", .type = CV_TYPE_NUMBER, .unit = CV_UNIT_TIME, .where = CV_IN_ANY, .standard = "2s", .min = MS,
		.max = 60 * SEC, FIELD(handshake_timeout),
		.help = "An upgrade that takes longer is given up. The connection goes on over TCP meanwhile.",
	},
	[CV_KEY_HANDOVER_TIMEOUT] = {
		.name = "handover-timeout", .type = CV_TYPE_NUMBER, .unit = CV_UNIT_TIME, .where = CV_IN_ANY, .standard = "5s", .min = MS,
		.max = 60 * SEC, FIELD(handover_timeout),
		.help = "The longest wait for a peer when a connection must go back to TCP, as on exec. Past it the "
			"connection is reset.",
	},
	[CV_KEY_LOG] = {
		.name = "log", .type = CV_TYPE_LEVEL, .where = CV_IN_GLOBAL, .standard = "warn",
		.help = "How much culvert says: none, error, warn, info or debug; each includes those before it.",
	},
	[CV_KEY_LOG_FILE] = {
		.name = "log-file", .type = CV_TYPE_PATH, .where = CV_IN_GLOBAL,
		.help = "Where the log goes, an absolute path; lines are appended. Without it: standard error.",
	},
	[CV_KEY_STATS_DIR] = {
		.name = "stats-dir", .type = CV_TYPE_PATH, .where = CV_IN_GLOBAL, .standard = "/dev/shm",
		.help = "Where each process keeps the counters that culvert ss and culvert stat read, an absolute path.",
	},
	[CV_KEY_STATS_KEEP] = {
		.name = "stats-keep", .type = CV_TYPE_YESNO, .where = CV_IN_GLOBAL, .standard = "no",
		.help = "Keep the counters' file when the process ends.",
	},
};

const char cv_builtin_profiles[] = "[profile " CV_PROFILE_DEFAULT "]\n"
				   "[profile latency]\n"
				   "upgrade-after = 4 requests, 16KiB\n"
				   "spin-max = 200us\n"
				   "[profile throughput]\n"
				   "upgrade-after = 64 requests, 64KiB\n"
				   "spin-max = 20us\n"
				   "ring = 1MiB\n"
				   "ring-max = 64MiB\n";

const char *const cv_transport_names[3] = {
	[CV_TRANSPORT_TCP] = "tcp",
	[CV_TRANSPORT_SHM] = "shm",
	[CV_TRANSPORT_RDMA] = "rdma",
};

const char *const cv_level_names[5] = {
	[CV_LOG_NONE] = "none", [CV_LOG_ERROR] = "error", [CV_LOG_WARN] = "warn", [CV_LOG_INFO] = "info", [CV_LOG_DEBUG] = "debug",
};

const char *const cv_section_kinds[3] = { "defaults", "profile", "app" };

void cv_key_env_name(const struct cv_key *key, char out[CV_ENV_NAME_MAX])
{
	static const char prefix[] = "CULVERT_";
	size_t n = sizeof(prefix) - 1;

	memcpy(out, prefix, n);
	for (const char *p = key->name; *p && n < CV_ENV_NAME_MAX - 1; p++)
		out[n++] = *p >= 'a' && *p <= 'z' ? (char)(*p - 'a' + 'A') : '_';
	out[n] = '\0';
}

const struct cv_key *cv_key_find(const char *name)
{
	for (unsigned i = 0; i < CV_KEY_COUNT; i++)
		if (!strcmp(name, cv_keys[i].name))
			return &cv_keys[i];
	return NULL;
}
