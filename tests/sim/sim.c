/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sim: random schedules for the stream engine.
 *
 * sim --count N --seconds S [--seed FIRST]   run schedules FIRST, FIRST+1, ... until N are done or S seconds are over
 * sim --seed N -v                            replay one with a trace
 *
 * The engine is compiled in, with small rings, so that a schedule of a few hundred steps sees everything.
 */
#define CV_DEBUG 1
#define CV_RING_MIN 64u
#define CV_SPILL_MIN 64u
#define CV_RACE(s) sim_race(s)
#define CV_STATE_HOOK(s, half, from, to) sim_state((half), (from), (to))
#include <stdint.h>
struct cv_stream;
static void sim_state(int half, int from, int to);
static void sim_race(struct cv_stream *s);

#include "../../src/stream/ending.c"
#include "../../src/stream/resume.c"
#include "../../src/stream/ring.c"
#include "../../src/stream/spill.c"
#include "../../src/stream/stream.c"
#include "../../src/stream/switch.c"

#include "world.h"

#include "tcp.h"

#include "link.h"

#include "ghost.h"

#include "app.h"
#include <stdarg.h>
#include <time.h>

struct world W;
uint8_t pattern[2 * PATTERN];
uint64_t seen_moves[2][4][4];

static const char *const half_name[] = {"RAW", "FROZEN", "RING", "DRAINING"};

static void sim_state(int half, int from, int to)
{
	seen_moves[half][from][to]++;
	TRACE("    %s %s -> %s\n", half ? "rx" : "tx", half_name[from], half_name[to]);
}

static void sim_race(struct cv_stream *s)
{
	struct side *me = cv_container_of(s, struct side, s);

	if (W.fair || me->slot < 0 || (W.rdma && !link_alive(me)) || !chance(100))
		return;
	W.raced = lane_show_w(&W.slot[me->slot].lane[!SIDE(s)], false);
}

void fail(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(W.why, sizeof(W.why), fmt, ap);
	va_end(ap);
	longjmp(W.out, 1);
}

static const struct cv_stream_ops shm_ops = {OPS};
static const struct cv_stream_ops rdma_ops = {OPS, .flushed = op_flushed};

/* ---- one schedule -------------------------------------------------------------------------------------------------------------- */

static uint64_t one_of(const uint32_t *v, unsigned n)
{
	return v[rnd_below(n)];
}

static void setup(uint64_t seed, bool verbose)
{
	static const uint32_t caps[] = {16, 64, 100, 300, 1500, 80, 128}, rings[] = {64, 64, 128, 256}, maxes[] = {256, 512, 1024, 4096},
			      spills[] = {32, 256, 4096};

	for (int x = 0; x < 2; x++) {
		struct side *me = &W.side[x];

		if (me->s.ops)
			cv_stream_fini(&me->s);
		memset(me, 0, sizeof(*me));
		me->slot = -1;
	}
	if (W.ghost.s.ops)
		cv_stream_fini(&W.ghost.s);
	memset(&W.ghost, 0, sizeof(W.ghost));
	W.ghost.slot = -1;
	W.seed = seed;
	W.rng = (seed + 1) * 0x9e3779b97f4a7c15ull;
	W.rng ^= W.rng >> 29;
	W.rng = W.rng ? W.rng : 1;
	for (int i = 0; i < 8; i++)
		rnd();
	W.verbose = verbose;
	W.fair = W.chaos_reset = W.link_died = W.killed_any = W.flushing_kill = false;
	W.step = W.ups = W.leaves = 0;
	W.rdma = chance(80);
	W.link = 1;
	W.link_up = true;
	W.ring = one_of(rings, 4);
	W.lim.ring_max = one_of(maxes, 4);
	W.lim.ring_hot = W.lim.ring_max >> rnd_below(4);
	W.lim.spill_max = one_of(spills, 3);
	for (int i = 0; i < SLOTS; i++)
		W.slot[i].used[0] = W.slot[i].used[1] = false;
	for (int x = 0; x < 2; x++) {
		struct pipe *p = &W.pipe[x];

		memset(p, 0, offsetof(struct pipe, buf));
		p->snd_cap = (uint32_t)one_of(caps, 5);
		p->rcv_cap = (uint32_t)one_of(caps + 2, 5); /* at least a record */
		W.side[x].link_seen = 1;
		W.side[x].to_send = chance(100) ? rnd_below(200) : rnd_below(6000);
		W.side[x].polite = chance(200);
		W.side[x].lazy = chance(40);
		cv_stream_init(&W.side[x].s, W.rdma ? &rdma_ops : &shm_ops, &W.lim);
	}
	W.side[rnd() & 1].server = chance(100);
	W.p_open = 30;
	W.p_leave = chance(20) ? 60 : chance(128) ? 4 : 0;
	W.p_timeout = chance(20) ? 60 : chance(64) ? 4 : 0;
	W.p_link_kill = chance(80) ? 3 : 0;
	W.p_kill = chance(40) ? 2 : 0;
	W.p_close = chance(20) ? 20 : chance(100) ? 3 : 0;
	W.p_shut = chance(100) ? 3 : 0;
	W.p_bypass = chance(30) ? 40 : 0;
	W.p_ghost = chance(30) ? 40 : 0;
}

static void invariants(int x)
{
	struct cv_stream *s = &W.side[x].s;

	if (W.side[x].killed)
		return;
	if (s->phase == CV_PH_IDLE && s->rx_state != CV_RAW)
		fail("side %d: idle, but rx is %s", x, half_name[s->rx_state]);
	if (s->phase == CV_PH_IDLE && s->tx_state != CV_RAW)
		fail("side %d: idle, but tx is %s", x, half_name[s->tx_state]);
	if (s->tx_state == CV_RAW && s->stage.len)
		fail("side %d: RAW with a stage", x);
	if (!s->tx_slow && (s->tx_state != CV_RING || s->stage.len || s->tx_shut))
		fail("side %d: the fast path is open", x);
	if (!s->rx_slow && (s->rx_state != CV_RING || s->spill.len))
		fail("side %d: rx's fast path is open", x);
	if (s->tx_state == CV_RING && !(s->e.proven && s->e.fence_done))
		fail("side %d: in the ring without the peer's fence", x);
	if (W.rdma && W.side[x].slot >= 0 && s->tx.tail && !s->e.was_ring)
		fail("side %d: bytes in the ring before the fence", x);
	if (s->rx_state == CV_FROZEN && W.pipe[!x].read > s->e.rx_n)
		fail("side %d: read beyond N", x);
	if (s->stage.len > W.lim.ring_max)
		fail("side %d: stage of %zu bytes", x, s->stage.len);
}

/* The link's layer under a stream resets a connection that broke. */
static void reset_connection(int x, const char *why)
{
	struct side *me = &W.side[x];

	TRACE(" %d: connection reset: %s\n", x, why);
	W.chaos_reset = true;
	me->broken = true;
	if (!me->closed)
		k_close(x, true);
	me->closed = me->app_closed;
	me->lingering = false;
	me->dead = true;
}

static bool agent_due(int x)
{
	struct side *me = &W.side[x];
	uint32_t need = cv_stream_needs(&me->s), ready = k_poll(x);

	return me->news || (need & ready & (EPOLLIN | EPOLLOUT)) || ((need & EPOLLIN) && (ready & (EPOLLERR | EPOLLHUP | EPOLLRDHUP)));
}

static void linger_done(int x)
{
	struct side *me = &W.side[x];

	if (me->lingering && !cv_stream_busy(&me->s)) {
		me->lingering = false;
		k_close(x, me->s.reset_twin);
	}
}

static bool agent(int x)
{
	struct side *me = &W.side[x];
	uint64_t before;
	int err;

	if (me->killed || me->broken || !agent_due(x))
		return false;
	me->news = false;
	before = me->s.e.moved + me->s.stage.len + me->s.phase + me->s.tx_state * 8u + me->s.rx_state * 64u + me->s.e.resend + me->s.e.rx_wait;
	err = cv_stream_advance(&me->s);
	if (err) {
		if (!W.killed_any && !W.chaos_reset)
			fail("side %d: advance says %d, reason %u", x, err, me->s.reason);
		reset_connection(x, "advance");
		return true;
	}
	linger_done(x);
	return before != me->s.e.moved + me->s.stage.len + me->s.phase + me->s.tx_state * 8u + me->s.rx_state * 64u + me->s.e.resend + me->s.e.rx_wait;
}

static void timeout(int x)
{
	struct side *me = &W.side[x];

	if (me->killed || me->broken || !cv_stream_busy(&me->s))
		return;
	TRACE(" %d: deadline\n", x);
	if (me->s.phase == CV_PH_OPENING)
		me->called_off = me->s.epoch;
	if (cv_stream_timeout(&me->s) == -ETIMEDOUT)
		reset_connection(x, "deadline");
	else
		linger_done(x);
	/* An end that nobody explained in time; a close that did not wait for the peer's records. */
	W.chaos_reset |= (W.rdma && me->s.e.twin_ended) || me->app_closed;
}

static void leave(int x, bool handover)
{
	struct side *me = &W.side[x];

	if (me->killed || me->broken || me->app_closed)
		return;
	TRACE(" %d: leave%s\n", x, handover ? " (hand over)" : "");
	W.leaves++;
	if (me->s.phase == CV_PH_OPENING)
		me->called_off = me->s.epoch;
	me->handed |= handover;
	cv_stream_leave(&me->s, handover ? CV_LEAVE_HANDOVER : CV_LEAVE_STAY, CV_REASON_CALL);
}

/* Once the hand-over is through another process has the twin, and the engine is out of the way. */
static void maybe_foreign(int x)
{
	struct side *me = &W.side[x];

	if (!me->foreign && me->s.phase == CV_PH_IDLE && me->s.rx_state == CV_RAW && !me->s.rx_eof && !me->s.err && !me->app_closed &&
	    (me->s.reason == CV_REASON_CALL) && !me->s.tx_shut && chance(128))
		me->foreign = true;
}

static void kill_link(void)
{
	if (!W.link_up)
		return;
	TRACE(" link dies\n");
	W.link_up = false;
	W.link_died = true;
	for (int x = 0; x < 2; x++)
		if (chance(128)) /* some messages had arrived */
			W.side[x].q_head = W.side[x].q_tail;
}

static void kill_process(int x)
{
	struct side *me = &W.side[x], *peer = &W.side[!x];
	struct cv_stream *s = &me->s;

	if (W.killed_any || me->app_closed)
		return;
	TRACE(" %d: killed\n", x);
	me->killed = true;
	me->got_at_end = me->got;
	/* Not to be told from an end: bytes held back for an upgrade that is called off already, and nobody looks at its lines any more. */
	if (unsent(s) && (peer->s.phase == CV_PH_IDLE || peer->slot != me->slot || (W.rdma && (peer->s.phase == CV_PH_LEAVING || s->phase == CV_PH_LEAVING))))
		W.flushing_kill = true;
	me->clean_kill = !W.rdma && s->phase == CV_PH_LINKED && peer->s.phase == CV_PH_LINKED && !W.link_died && !W.chaos_reset;
	if (me->clean_kill)
		me->published_at_kill = me->sent;
	me->peer_sent_at_kill = peer->sent;
	me->frozen_kill = !W.rdma && !W.link_died && !W.chaos_reset && !W.p_leave && !W.p_timeout && !W.p_bypass && !W.p_ghost && !W.p_link_kill && !W.p_shut &&
			  !W.p_close && s->phase == CV_PH_SWITCHING && s->tx_state == CV_FROZEN && !s->spill.len && cv_engine_waiting(s) && cv_engine_waiting(s) <= W.ring &&
			  peer->s.phase == CV_PH_SWITCHING && peer->s.tx_state == CV_FROZEN && !peer->s.e.fence_begun && !cv_engine_waiting(&peer->s) && me->got == peer->sent &&
			  W.lim.spill_max >= 4096;
	W.killed_any = true;
	W.link_up = false;
	if (W.rdma)
		peer->q_tail -= (unsigned)rnd_below(peer->q_tail - peer->q_head + 1);
	if (!me->closed)
		k_close(x, false);
	me->app_closed = true;
	me->lingering = false;
}

static void reconnect(void)
{
	if (W.link_up || W.killed_any || W.side[0].link_seen || W.side[1].link_seen)
		return;
	W.link++;
	W.link_up = true;
	W.side[0].link_seen = W.side[1].link_seen = W.link;
	TRACE(" new link\n");
}

static bool show(int x, bool part)
{
	struct side *me = &W.side[x];
	struct slot *sl;
	bool moved;

	if (me->slot < 0 || me->killed)
		return false;
	if (!link_alive(me) && W.rdma)
		return false;
	sl = &W.slot[me->slot];
	moved = lane_show_w(&sl->lane[!x], part);
	moved |= lane_show_r(&sl->lane[x]);
	if (sl->lane[!x].w_bell && !part) {
		sl->lane[!x].w_bell = me->rx_blocked = false;
		moved = me->news = true;
	}
	if (sl->lane[x].r_bell) {
		sl->lane[x].r_bell = me->tx_blocked = false;
		moved = me->news = true;
	}
	return moved;
}

static void bypass(int x)
{
	struct side *me = &W.side[x];
	ssize_t n;

	if (me->s.tx_state != CV_FROZEN || me->s.e.fence_begun || unsent(&me->s) || me->app_shut || me->dead || me->s.phase != CV_PH_SWITCHING)
		return;
	n = k_send(x, bytes_of(x, me->sent), (size_t)cv_min_u64(me->to_send - me->sent, 1 + rnd_below(80)));
	if (n > 0) {
		TRACE(" %d: %zd bytes written behind our back\n", x, n);
		me->sent += (uint64_t)n;
	}
}

static bool app(int x)
{
	if (W.side[x].killed)
		return false;
	if (W.side[x].lazy && chance(220))
		return app_send(x);
	return chance(128) && (!W.side[x].server || chance(8)) ? app_send(x) : app_recv(x);
}

static void chaos_step(void)
{
	int x = (int)(rnd() & 1);
	struct side *me = &W.side[x];

	switch (rnd_below(12)) {
	case 0:
	case 1:
	case 2:
		app(x);
		break;
	case 3:
		tcp_transmit(x, 1 + rnd_below(chance(64) ? 8 : 400));
		break;
	case 4:
	case 5:
		tcp_arrive(x, 1 + rnd_below(chance(64) ? 8 : 400));
		break;
	case 6:
	case 7:
		deliver(x);
		break;
	case 8:
		show(x, chance(128));
		break;
	case 9:
	case 10:
		agent(x);
		break;
	default:
		if (chance(W.p_open))
			link_open(x);
		if (chance(W.p_ghost))
			ghost_rise(x);
		if (chance(W.p_leave) || (W.p_leave && chance(me->s.phase == CV_PH_LINKED ? 10 : 2)))
			leave(x, chance(100));
		if (chance(W.p_timeout))
			timeout(x);
		if (chance(W.p_link_kill))
			kill_link();
		if (!W.link_up && me->link_seen && !me->killed && chance(60))
			learn_down(x);
		if (chance(60))
			reconnect();
		if (chance(W.p_kill))
			kill_process(x);
		if (chance(W.p_shut) && !me->killed)
			app_shut(x);
		if (chance(W.p_close) && !me->killed)
			app_close(x, chance(40));
		if (W.p_close && me->s.e.give.len && !W.side[!x].killed && chance(128)) /* the peer of a hand-over ends in the midst of it */
			app_close(!x, false);
		if (chance(W.p_bypass))
			bypass(x);
		maybe_foreign(x);
	}
	if (chance(64))
		ghost_step();
	maybe_detach(x);
	invariants(x);
	linger_done(x);
}

static bool fair_app(int x)
{
	struct side *me = &W.side[x], *peer = &W.side[!x];
	bool moved = false;

	if (me->killed || me->app_closed)
		return false;
	for (int i = 0; i < 8; i++)
		moved |= app_recv(x);
	if (me->server && !me->eof && !me->reset && me->got < peer->to_send)
		return moved;
	for (int i = 0; i < 8; i++)
		moved |= app_send(x);
	if ((me->sent == me->to_send || me->gone) && !me->app_shut)
		moved |= app_shut(x);
	if ((me->reset || me->gone) && chance(200))
		moved |= app_close(x, false);
	if (me->eof && me->app_shut && (me->polite || peer->app_closed || peer->eof))
		moved |= app_close(x, false);
	return moved;
}

/* The environment turns fair: everything must drain, without a deadline's help unless the link or a process has died. */
static void finish(void)
{
	unsigned idle = 0;

	W.fair = true;
	TRACE("-- fair --\n");
	for (unsigned round = 0;; round++) {
		bool moved = false;

		for (int x = 0; x < 2; x++) {
			if (!W.link_up && W.side[x].link_seen && !W.side[x].killed) {
				learn_down(x);
				moved = true;
			}
			while (deliver(x))
				moved = true;
			moved |= ghost_step();
			moved |= show(x, false);
			moved |= tcp_transmit(x, UINT64_MAX);
			moved |= tcp_arrive(x, UINT64_MAX);
			while (agent(x))
				moved = true;
			moved |= fair_app(x);
			maybe_detach(x);
			invariants(x);
			linger_done(x);
		}
		idle = moved ? 0 : idle + 1;
		if (idle > 2 && W.side[0].app_closed && W.side[1].app_closed && !W.side[0].lingering && !W.side[1].lingering)
			return;
		if (idle > 4) {
			for (int x = 0; x < 2; x++) {
				struct side *me = &W.side[x];

				if (me->killed || me->broken || !cv_stream_busy(&me->s))
					continue;
				if (!W.killed_any && !W.side[!x].app_closed && !W.side[!x].broken && !me->app_closed && !me->s.e.partial &&
				    !me->s.handover)
					fail("side %d: only a deadline would help: phase %u, tx %s, rx %s, wait %u", x, me->s.phase,
					     half_name[me->s.tx_state], half_name[me->s.rx_state], me->s.e.rx_wait);
				if (idle > 5)
					timeout(x);
			}
		}
		if (idle > 12)
			fail("stuck: side 0 phase %u tx %s rx %s wait %u sent %lu got %lu; side 1 phase %u tx %s rx %s wait %u sent %lu got %lu",
			     W.side[0].s.phase, half_name[W.side[0].s.tx_state], half_name[W.side[0].s.rx_state], W.side[0].s.e.rx_wait,
			     (unsigned long)W.side[0].sent, (unsigned long)W.side[0].got, W.side[1].s.phase, half_name[W.side[1].s.tx_state],
			     half_name[W.side[1].s.rx_state], W.side[1].s.e.rx_wait, (unsigned long)W.side[1].sent,
			     (unsigned long)W.side[1].got);
		if (round > 20000)
			fail("no end");
	}
}

static bool run(uint64_t seed, bool verbose)
{
	setup(seed, verbose);
	if (setjmp(W.out)) {
		printf("FAIL seed %lu%s: %s\n", (unsigned long)seed, W.rdma ? " (rdma)" : " (shm)", W.why);
		return false;
	}
	for (unsigned steps = 100 + (unsigned)rnd_below(300); W.step < steps; W.step++)
		chaos_step();
	finish();
	for (int x = 0; x < 2; x++) {
		struct side *me = &W.side[x], *peer = &W.side[!x];

		if (peer->killed && peer->clean_kill && !me->app_closed && me->got < peer->published_at_kill)
			fail("side %d: bytes that the dead peer had published are missing", x);
	}
	return true;
}

/* ---- the whole run ------------------------------------------------------------------------------------------------------------- */

static double now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

/* Every transition that the engine allows, and how often it was taken. Number never taken. */
static unsigned coverage(void)
{
	unsigned missing = 0;

	for (int half = 0; half < 2; half++)
		for (int from = 0; from < 4; from++)
			for (int to = 0; to < 4; to++) {
				if (!((half ? rx_next : tx_next)[from] >> to & 1))
					continue;
				printf("%s %-8s -> %-8s %lu\n", half ? "rx" : "tx", half_name[from], half_name[to],
				       (unsigned long)seen_moves[half][from][to]);
				missing += !seen_moves[half][from][to];
			}
	return missing;
}

int main(int argc, char **argv)
{
	uint64_t seed = 1, count = 20000, passed = 0, failed = 0, max_failed = 10;
	double seconds = 3600, start = now();
	bool verbose = false, counted = false, one = false, quiet = false;

	for (int i = 1; i < argc; i++) {
		if (!strcmp(argv[i], "-v"))
			verbose = true;
		else if (!strcmp(argv[i], "-q"))
			quiet = true;
		else if (!strcmp(argv[i], "--seed") && i + 1 < argc)
			seed = strtoull(argv[++i], NULL, 0), one = true;
		else if (!strcmp(argv[i], "--count") && i + 1 < argc)
			count = strtoull(argv[++i], NULL, 0), counted = true;
		else if (!strcmp(argv[i], "--seconds") && i + 1 < argc)
			seconds = strtod(argv[++i], NULL), count = counted ? count : UINT64_MAX, counted = true;
		else if (!strcmp(argv[i], "--max-failures") && i + 1 < argc)
			max_failed = strtoull(argv[++i], NULL, 0);
		else {
			fprintf(stderr, "usage: sim [--seed N] [-v] [--count N] [--seconds S] [--max-failures N] [-q]\n");
			return 2;
		}
	}
	if (one && !counted)
		count = 1;
	setvbuf(stdout, NULL, _IOLBF, 0);
	W.rng = 88172645463325252ull;
	for (unsigned i = 0; i < PATTERN; i++)
		pattern[i] = pattern[i + PATTERN] = (uint8_t)rnd();
	if (!quiet)
		printf("schedules from seed %lu\n", (unsigned long)seed);
	for (uint64_t i = 0; i < count && failed < max_failed; i++) {
		if (run(seed + i, verbose))
			passed++;
		else
			failed++;
		if ((i & 255) == 255 && now() - start > seconds)
			break;
	}
	if (!quiet && passed + failed >= 100000) {
		unsigned missing = coverage();

		if (missing) {
			printf("%u transitions were never taken\n", missing);
			failed++;
		}
	}
	if (!quiet)
		printf("%.0f schedules a second\n", (double)(passed + failed) / (now() - start));
	printf("%lu passed, %lu failed\n", (unsigned long)passed, (unsigned long)failed);
	return failed ? 1 : 0;
}
