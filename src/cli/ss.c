/* SPDX-License-Identifier: Apache-2.0 */
#include "cli.h"
#include "format.h"
#include "proc.h"
#include "segment.h"
#include <inttypes.h>
#include <netinet/tcp.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

const char cli_ss_help[] =
	"usage: culvert ss [OPTION]...\n\n"
	"Lists the TCP streams of the processes that run culvert: state, local and peer address, program, transport, bytes sent and\n"
	"received (link and TCP together; powers of 1024), and the reason where a stream is not accelerated.\n\n"
	"  -a, --all      also streams that are not established, and processes that have no stream\n"
	"  -v, --verbose  a second line each: role, descriptor, age, upgrades, exact bytes, what the reason means\n"
	"  -p, --pid PID  only this process\n"
	"  -d, --dir DIR  where the stats files are (default: stats-dir of the configuration, else /dev/shm)\n"
	"  -j, --json     one JSON object (culvert-ss(1) documents its names); exact bytes, all streams\n"
	"  -h, --help     this text\n\n"
	"Exit status: 0; 1 = a file could not be read, or no such process; 2 = usage.\n";

static const struct option options[] = {
	{ "all", no_argument, NULL, 'a' },
	{ "verbose", no_argument, NULL, 'v' },
	{ "pid", required_argument, NULL, 'p' },
	{ "dir", required_argument, NULL, 'd' },
	{ "json", no_argument, NULL, 'j' },
	{ "help", no_argument, NULL, 'h' },
	{ 0 },
};

static const char *const transports[] = { "tcp", "shm", "rdma" };
static const char *const phases[] = { "free", "tcp", "switching", "link", "returning" };
static const char *const roles[] = { "-", "client", "server" };

struct ss {
	bool all, verbose, json;
	bool denied;	    /* some descriptors were not for us to see */
	uint32_t denied_uid; /* whose, the first */
	uint64_t hidden;    /* streams that -a would show */
	uint64_t now_ns;
	struct cli_json j;
	struct cli_table table;
	/* The sockets of the network namespace that was asked last: processes mostly share one. */
	struct cli_sockets sockets;
	uint64_t net_ns;
	bool loaded;
};

/* One stream as it is shown. */
struct line {
	const char *state, *transport, *reason;
	char local[72], peer[72];
};

static const struct cli_socket *find_socket(struct ss *ss, const struct cli_segment *s, const struct cli_row *r, bool *denied)
{
	uint64_t inode = cli_proc_socket(s->host_pid, r->fd, denied), ns;

	if (*denied && !ss->denied) {
		ss->denied = true;
		ss->denied_uid = s->uid;
	}
	if (!inode)
		return NULL;
	ns = cli_proc_net_ns(s->host_pid);
	if (!ss->loaded || ns == 0 || ns != ss->net_ns) {
		cli_sockets_free(&ss->sockets);
		cli_sockets_load(&ss->sockets, s->host_pid);
		ss->net_ns = ns;
		ss->loaded = true;
	}
	return cli_sockets_find(&ss->sockets, inode);
}

static bool on_link(const struct cli_row *r)
{
	return r->state == CV_ROW_LINK || r->state == CV_ROW_RETURNING;
}

/* Is it an established one? What the kernel says goes before what the process wrote. */
static bool describe(struct ss *ss, const struct cli_segment *s, const struct cli_row *r, struct line *l)
{
	bool denied = false;
	const struct cli_socket *k = find_socket(ss, s, r, &denied);

	l->transport = on_link(r) ? transports[r->transport] : "tcp";
	l->reason = cv_reason_name(r->state == CV_ROW_LINK ? CV_REASON_NONE : r->reason);
	if (k) {
		cli_addr(l->local, k->family, k->local, k->local_port);
		cli_addr(l->peer, k->family, k->peer, k->peer_port);
		l->state = cli_tcp_state(k->state);
		return k->state == TCP_ESTABLISHED;
	}
	cli_addr(l->local, r->family, r->local, r->local_port);
	cli_addr(l->peer, r->family, r->peer, r->peer_port);
	/* Unseen is taken for established; seen, but not there: another descriptor holds it, or nobody. */
	l->state = denied ? "?" : "-";
	return denied;
}

static void table_line(struct ss *ss, const struct cli_segment *s, const struct cli_row *r, const struct line *l)
{
	char prog[96], tx[16], rx[16], age[16], note[512];
	uint64_t lived = r->opened_ns && ss->now_ns > r->opened_ns ? ss->now_ns - r->opened_ns : 0;

	snprintf(prog, sizeof(prog), "%s/%u", s->prog, s->pid);
	cli_bytes(tx, r->tx_link + r->tx_tcp);
	cli_bytes(rx, r->rx_link + r->rx_tcp);
	snprintf(note, sizeof(note),
		 "%s fd %d, open %s, upgrades %u, fallbacks %u, link tx %" PRIu64 " rx %" PRIu64 ", tcp tx %" PRIu64 " rx %" PRIu64 "%s%s",
		 roles[r->role], r->fd, cli_age(age, lived), r->upgrades, r->fallbacks, r->tx_link, r->rx_link, r->tx_tcp, r->rx_tcp,
		 r->state == CV_ROW_LINK || r->reason == CV_REASON_NONE ? "" : "; ",
		 r->state == CV_ROW_LINK || r->reason == CV_REASON_NONE ? "" : cv_reason_text(r->reason));
	cli_table_row(&ss->table, (const char *const[]){ l->state, l->local, l->peer, prog, l->transport, tx, rx, l->reason },
		      ss->verbose ? note : NULL);
}

static void json_u64_or_null(struct cli_json *j, const char *key, uint64_t v, bool known)
{
	if (known)
		cli_json_u64(j, key, v);
	else
		cli_json_str(j, key, NULL);
}

static void json_line(struct ss *ss, const struct cli_segment *s, const struct cli_row *r, const struct line *l)
{
	struct cli_json *j = &ss->j;

	cli_json_open(j, NULL, '{');
	cli_json_str(j, "state", l->state[0] == '-' || l->state[0] == '?' ? NULL : l->state);
	cli_json_str(j, "local", l->local[0] == '?' ? NULL : l->local);
	cli_json_str(j, "peer", l->peer[0] == '?' ? NULL : l->peer);
	cli_json_str(j, "prog", s->prog);
	cli_json_u64(j, "pid", s->pid);
	json_u64_or_null(j, "fd", (uint64_t)r->fd, r->fd >= 0);
	cli_json_str(j, "role", r->role ? roles[r->role] : NULL);
	cli_json_str(j, "transport", l->transport);
	cli_json_str(j, "phase", phases[r->state]);
	cli_json_str(j, "reason", l->reason);
	cli_json_u64(j, "tx_link_bytes", r->tx_link);
	cli_json_u64(j, "rx_link_bytes", r->rx_link);
	cli_json_u64(j, "tx_tcp_bytes", r->tx_tcp);
	cli_json_u64(j, "rx_tcp_bytes", r->rx_tcp);
	cli_json_u64(j, "upgrades", r->upgrades);
	cli_json_u64(j, "fallbacks", r->fallbacks);
	json_u64_or_null(j, "age_ms", (ss->now_ns - r->opened_ns) / 1000000, r->opened_ns && ss->now_ns > r->opened_ns);
	cli_json_close(j, '}');
}

static void show_process(struct ss *ss, const struct cli_segment *s)
{
	for (size_t i = 0; i < s->row_count; i++) {
		struct line l;
		bool established = describe(ss, s, &s->rows[i], &l);

		if (ss->json)
			json_line(ss, s, &s->rows[i], &l);
		else if (established || ss->all)
			table_line(ss, s, &s->rows[i], &l);
		else
			ss->hidden++;
	}
	if (s->row_count == 0 && ss->all && !ss->json) {
		char prog[96];

		snprintf(prog, sizeof(prog), "%s/%u", s->prog, s->pid);
		cli_table_row(&ss->table, (const char *const[]){ "-", "-", "-", prog, "-", "-", "-", "no stream open" }, NULL);
	}
}

static void show(struct ss *ss, const struct cli_segments *all)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	ss->now_ns = (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
	if (ss->json) {
		ss->j.out = stdout;
		cli_json_open(&ss->j, NULL, '{');
		cli_json_u64(&ss->j, "version", 1);
		cli_json_open(&ss->j, "streams", '[');
	} else {
		ss->table.columns = 8;
		ss->table.right = 1u << 5 | 1u << 6;
		cli_table_row(&ss->table, (const char *const[]){ "State", "Local", "Peer", "Program", "Transport", "Tx", "Rx", "Reason" }, NULL);
	}
	for (size_t i = 0; i < all->count; i++)
		show_process(ss, &all->list[i]);
	if (ss->json) {
		cli_json_close(&ss->j, ']');
		cli_json_close(&ss->j, '}');
	} else {
		cli_table_print(&ss->table, stdout);
		cli_table_free(&ss->table);
	}
	cli_sockets_free(&ss->sockets);
	if (ss->hidden)
		cli_error("not shown because not established: %" PRIu64 "; -a shows them", ss->hidden);
	if (ss->denied) {
		struct passwd *p = ss->denied_uid ? getpwuid(ss->denied_uid) : NULL;

		cli_error("the kernel's state of some streams is not for this user to see; run as root%s%s", p ? " or as " : "",
			  p ? p->pw_name : "");
	}
}

int cli_ss(int argc, char **argv)
{
	struct ss ss = { 0 };
	struct cli_segments all;
	const char *dir = NULL;
	uint32_t pid = 0;
	int c, ret;

	while ((c = cli_getopt(argc, argv, ":avp:d:jh", options, "ss")) != -1) {
		switch (c) {
		case 'a':
			ss.all = true;
			break;
		case 'v':
			ss.verbose = true;
			break;
		case 'p':
			if (!cli_parse_pid(optarg, &pid)) {
				cli_error("'%s' is not a process id", optarg);
				return CLI_USAGE;
			}
			break;
		case 'd':
			dir = optarg;
			break;
		case 'j':
			ss.json = true;
			break;
		case 'h':
			fputs(cli_ss_help, stdout);
			return CLI_OK;
		default:
			return CLI_USAGE;
		}
	}
	if (optind < argc) {
		cli_error("ss takes no '%s'; a process is given with -p PID", argv[optind]);
		return CLI_USAGE;
	}
	dir = cli_stats_dir(dir);
	if (cli_segments_load(&all, dir, pid, false) < 0)
		return CLI_FAILED;
	ret = all.trouble ? CLI_FAILED : CLI_OK;
	if (all.count || ss.json)
		show(&ss, &all);
	if (all.count == 0 && (!ss.json || pid))
		ret = cli_segments_none(&all, dir, pid);
	cli_segments_free(&all);
	return ret;
}
