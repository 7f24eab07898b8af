/* SPDX-License-Identifier: Apache-2.0 */
#include "fake.h"
#include <pthread.h>

#define STREAMS 8

static struct pair p;
static struct one a[STREAMS], b[STREAMS];
static const struct cv_link_ops *ops = &cv_shm_ops;

static int setup(void **state)
{
	fake_setup(state);
	pair_make(&p);
	for (int i = 0; i < STREAMS; i++)
		pair_stream(&p, &a[i], &b[i]);
	return 0;
}

static int teardown(void **state)
{
	for (int i = 0; i < STREAMS; i++) {
		if (a[i].port.link)
			cv_shm_detach(&a[i].s);
		if (b[i].port.link)
			cv_shm_detach(&b[i].s);
	}
	pair_end(&p);
	return fake_teardown(state);
}

/* What a bell delivers, in order. */
struct heard {
	unsigned n;
	struct cv_stream *s[8 * CV_SHM_QUEUE];
	unsigned of[STREAMS];
};
static struct heard h;

static void hear(void *arg, struct cv_stream *s)
{
	struct heard *to = arg;

	if (to->n < CV_ARRAY_LEN(to->s))
		to->s[to->n] = s;
	to->n++;
	for (int i = 0; i < STREAMS; i++)
		to->of[i] += s == &a[i].s || s == &b[i].s;
}

static unsigned drain(struct cv_bell *bell)
{
	memset(&h, 0, sizeof(h));
	return ops->bell_drain(bell, hear, &h);
}

static void publish(struct one *o, const char *text, uint32_t end)
{
	cv_ring_put_flat(&o->s.tx, text, strlen(text));
	ops->publish(&o->s, end);
}

static bool take_wake(int fd)
{
	uint64_t n;

	return read(fd, &n, sizeof(n)) == sizeof(n);
}

static struct cv_shm_bell *board_b(unsigned bell)
{
	return &p.b->seg->bell[1][bell];
}

/* ---- bytes and credit ---------------------------------------------------------------------------------------------------------- */

static void test_bytes_both_ways(void **state)
{
	char buf[16] = "";
	uint64_t held;

	(void)state;
	publish(&a[0], "hello", 0);
	publish(&b[0], "world!", CV_END_FIN);
	publish(&a[1], "other", 0);
	assert_int_equal(cv_ring_get_flat(&b[0].s.rx, buf, sizeof(buf), &held), 5);
	assert_memory_equal(buf, "hello", 5);
	assert_int_equal(cv_ring_get_flat(&a[0].s.rx, buf, sizeof(buf), &held), 6);
	assert_memory_equal(buf, "world!", 6);
	assert_int_equal(a[0].s.rx.w->end, CV_END_FIN);
	assert_int_equal(b[0].s.rx.w->end, 0);
	assert_int_equal(cv_ring_get_flat(&b[1].s.rx, buf, sizeof(buf), &held), 5);
	assert_memory_equal(buf, "other", 5);
	/* nobody asked to be told */
	assert_false(ops->bell_pending(&p.b->bells[0]));
	assert_false(readable(p.b->bell0.fd));
}

static void test_credit(void **state)
{
	char buf[RING + 1];
	uint64_t held;

	(void)state;
	memset(buf, 'x', sizeof(buf));
	buf[RING] = 0;
	publish(&a[0], buf, 0);
	assert_int_equal(cv_ring_space(&a[0].s.tx, 1), 0);
	assert_int_equal(cv_ring_get_flat(&b[0].s.rx, buf, 100, &held), 100);
	assert_int_equal(cv_ring_space(&a[0].s.tx, 1), 0); /* consumed, not yet told */
	ops->want(&a[0].s, 0, CV_WANT_TX_BELL, 0);
	ops->credit(&b[0].s, false);
	assert_int_equal(cv_ring_space(&a[0].s.tx, 1), 100);
	assert_false(ops->bell_pending(&p.a->bells[0])); /* not fenced: no ring */
	ops->credit(&b[0].s, true);
	assert_true(ops->bell_pending(&p.a->bells[0]));
	assert_int_equal(drain(&p.a->bells[0]), 1);
	assert_ptr_equal(h.s[0], &a[0].s);
	/* once a wish */
	ops->credit(&b[0].s, true);
	assert_false(ops->bell_pending(&p.a->bells[0]));
}

/* ---- bells --------------------------------------------------------------------------------------------------------------------- */

static void test_rings_in_order(void **state)
{
	static const int order[] = {3, 0, 7, 0, 1, 6, 3};
	struct cv_bell *bell = ops->bell_open(&p.b->link, &p);

	(void)state;
	assert_non_null(bell);
	fake_turn(); /* its fd goes over */
	for (int i = 0; i < STREAMS; i++)
		ops->want(&b[i].s, bell->index, CV_WANT_RX_BELL, 0);
	assert_false(ops->bell_pending(bell));
	for (size_t i = 0; i < CV_ARRAY_LEN(order); i++)
		publish(&a[order[i]], "x", 0);
	assert_true(ops->bell_pending(bell));
	assert_false(ops->bell_pending(&p.b->bells[0]));
	assert_int_equal(drain(bell), CV_ARRAY_LEN(order));
	for (size_t i = 0; i < CV_ARRAY_LEN(order); i++)
		assert_ptr_equal(h.s[i], &b[order[i]].s);
	assert_false(ops->bell_pending(bell));
	assert_int_equal(drain(bell), 0);
	ops->bell_close(bell);
}

static void test_wish_moves_and_ends(void **state)
{
	struct cv_bell *one = ops->bell_open(&p.b->link, &p), *two = ops->bell_open(&p.b->link, &p);

	(void)state;
	assert_int_not_equal(one->index, two->index);
	ops->want(&b[0].s, one->index, CV_WANT_RX_BELL, 0);
	publish(&a[0], "x", 0);
	ops->want(&b[0].s, two->index, 0, 0);
	publish(&a[0], "x", 0);
	assert_int_equal(drain(one), 1);
	assert_int_equal(drain(two), 1);
	ops->want(&b[0].s, two->index, 0, CV_WANT_RX_BELL);
	publish(&a[0], "x", 0);
	assert_false(ops->bell_pending(one));
	assert_false(ops->bell_pending(two));
	ops->bell_close(one);
	ops->bell_close(two);
}

/* The wake fd is written once after each arming, and not at all for one who is awake. */
static void test_wakes_only_the_armed(void **state)
{
	struct cv_bell *bell = ops->bell_open(&p.b->link, &p);

	(void)state;
	fake_turn();
	take_wake(bell->fd); /* that of its opening */
	ops->want(&b[0].s, bell->index, CV_WANT_RX_BELL, 0);
	ops->bell_disarm(bell);
	publish(&a[0], "x", 0);
	assert_false(readable(bell->fd));
	drain(bell);
	ops->bell_arm(bell);
	assert_false(readable(bell->fd));
	publish(&a[0], "x", 0);
	assert_true(take_wake(bell->fd));
	publish(&a[0], "x", 0);
	assert_false(readable(bell->fd));
	assert_int_equal(drain(bell), 2);
	ops->bell_arm(bell);
	ops->want(&b[0].s, bell->index, CV_WANT_TX_BELL, 0);
	ops->credit(&a[0].s, true);
	assert_true(take_wake(bell->fd));
	ops->bell_close(bell);
}

/* A bell is rung before its fd has come over: the agent of its process hears it and passes it on. */
static void test_bell_without_fd(void **state)
{
	struct cv_bell *bell = ops->bell_open(&p.b->link, &p);

	(void)state;
	assert_int_equal(p.a->peer_fd[bell->index], -1); /* the agent has not moved yet */
	ops->want(&b[0].s, bell->index, CV_WANT_RX_BELL, 0);
	publish(&a[0], "x", 0);
	assert_false(readable(bell->fd));
	assert_true(readable(p.b->bell0.fd));
	p.b->bell0.fn(&p.b->bell0, POLLIN);
	assert_true(readable(bell->fd));
	assert_int_equal(drain(bell), 1);
	assert_int_equal(told.rung, 0);
	ops->bell_close(bell);
	fake_turn();
}

static void test_agents_bell(void **state)
{
	(void)state;
	fake_turn();
	ops->want(&b[2].s, 0, CV_WANT_RX_BELL, 0);
	publish(&a[2], "x", 0);
	fake_turn();
	assert_int_equal(told.rung, 1);
	assert_ptr_equal(told.s, &b[2].s);
	publish(&a[2], "x", 0); /* armed again */
	fake_turn();
	assert_int_equal(told.rung, 2);
}

/* More rings than the queue holds: the first ones in order, and every stream that rang is heard. */
static void test_overflow(void **state)
{
	struct cv_bell *bell = &p.b->bells[0];
	unsigned n;

	(void)state;
	for (int i = 0; i < STREAMS; i++)
		ops->want(&b[i].s, 0, CV_WANT_RX_BELL, 0);
	for (unsigned i = 0; i < CV_SHM_QUEUE; i++)
		ops->publish(&a[i % 2].s, 0);
	assert_int_equal(board_b(0)->overflow, 0);
	for (int i = STREAMS - 1; i > 2; i--)
		for (int k = 0; k < 3; k++)
			ops->publish(&a[i].s, 0);
	assert_int_equal(board_b(0)->tail, CV_SHM_QUEUE);
	assert_int_not_equal(board_b(0)->overflow, 0);
	assert_true(ops->bell_pending(bell));
	n = drain(bell);
	assert_int_equal(n, CV_SHM_QUEUE + STREAMS - 3);
	for (unsigned i = 0; i < CV_SHM_QUEUE; i++)
		assert_ptr_equal(h.s[i], &b[i % 2].s);
	for (int i = 3; i < STREAMS; i++)
		assert_int_equal(h.of[i], 1);
	assert_int_equal(h.of[2], 0);
	assert_false(ops->bell_pending(bell));
	ops->publish(&a[2].s, 0); /* and the queue goes on */
	assert_int_equal(board_b(0)->overflow, 0);
	assert_int_equal(drain(bell), 1);
	assert_ptr_equal(h.s[0], &b[2].s);
}

static void test_laps(void **state)
{
	struct cv_bell *bell = &p.b->bells[0];

	(void)state;
	for (int i = 0; i < STREAMS; i++)
		ops->want(&b[i].s, 0, CV_WANT_RX_BELL, 0);
	for (unsigned i = 0; i < 20 * CV_SHM_QUEUE; i += 300) {
		for (unsigned k = 0; k < 300; k++)
			ops->publish(&a[(i + k) % STREAMS].s, 0);
		assert_int_equal(drain(bell), 300);
		for (unsigned k = 0; k < 300; k++)
			assert_ptr_equal(h.s[k], &b[(i + k) % STREAMS].s);
		assert_false(ops->bell_pending(bell));
	}
}

/* ---- a peer that lies ---------------------------------------------------------------------------------------------------------- */

static void test_hostile_entries(void **state)
{
	struct cv_bell *bell = &p.b->bells[0];
	struct cv_shm_bell *bd = board_b(0);

	(void)state;
	/* a lap of rings for slots that nobody holds, with our own in between */
	for (unsigned i = 0; i < CV_SHM_QUEUE; i++)
		bd->entry[i] = 1u << CV_SHM_SLOT_BITS | (i == 500 ? b[1].port.slot : CV_SHM_SLOTS - 1 - i % 1000);
	assert_true(ops->bell_pending(bell));
	assert_int_equal(drain(bell), 1);
	assert_ptr_equal(h.s[0], &b[1].s);
	/* a tail out of all reason means nothing to the receiver */
	bd->tail = 0xdeadbeef;
	assert_int_equal(drain(bell), 0);
	/* all bits of the board */
	memset((void *)bd->words, 0xff, sizeof(bd->words));
	bd->overflow = UINT64_MAX;
	assert_true(ops->bell_pending(bell));
	assert_int_equal(drain(bell), STREAMS);
	/* the receiver's own place is not read back from the segment */
	bd->head = 77;
	bd->entry[0] = 2u << CV_SHM_SLOT_BITS | b[0].port.slot;
	assert_int_equal(drain(bell), 1);
}

/* Whoever writes entries while we drain does not hold us: a lap is the most. */
static void rewind_bell(void *arg, struct cv_stream *s)
{
	struct cv_shm_bell *bd = board_b(0);

	(void)s;
	for (unsigned i = 0, n = ++*(unsigned *)arg; i < 3; i++)
		bd->entry[(n + i) % CV_SHM_QUEUE] = ((n + i) / CV_SHM_QUEUE + 1) << CV_SHM_SLOT_BITS | b[0].port.slot;
}

static void test_endless_ringing(void **state)
{
	unsigned n = 0;

	(void)state;
	board_b(0)->entry[0] = 1u << CV_SHM_SLOT_BITS | b[0].port.slot;
	assert_int_equal(ops->bell_drain(&p.b->bells[0], rewind_bell, &n), CV_SHM_QUEUE);
	assert_int_equal(n, CV_SHM_QUEUE);
}

/* Nonsense where the peer says what it wants to be told: no harm to us. */
static void test_hostile_wish(void **state)
{
	struct cv_shm_want *w = a[0].port.peer;
	uint32_t x = 1;

	(void)state;
	for (unsigned i = 0; i < 3000; i++) {
		struct cv_shm_bell *bd = board_b(i % CV_LINK_BELLS);

		x = x * 1664525 + 1013904223;
		w->want = x >> 3;
		w->bell = x;
		bd->armed = x >> 5;
		bd->head = x * 7;
		bd->tail = x * 3;
		ops->publish(&a[0].s, 0);
		ops->credit(&a[0].s, true);
	}
	fake_turn();
	/* nothing outside the board was touched: the slots of others are as they were */
	for (int i = 1; i < STREAMS; i++) {
		assert_int_equal(((struct cv_shm_want *)a[i].port.peer)->want, 0);
		assert_int_equal(a[i].s.tx.w->tail, 0);
	}
}

/* ---- waiting ------------------------------------------------------------------------------------------------------------------- */

static void test_wait(void **state)
{
	struct cv_wait w = ops->wait_begin(&b[0].s, false);

	(void)state;
	assert_int_equal(ops->wait(&w, 1000000), -ETIMEDOUT);
	publish(&a[0], "x", 0);
	assert_int_equal(ops->wait(&w, UINT64_MAX), 0); /* rung since wait_begin: does not sleep */
	assert_int_equal(((struct cv_shm_want *)b[0].port.mine)->want & CV_WANT_RX_FUTEX, 0);
	w = ops->wait_begin(&a[0].s, true);
	ops->credit(&b[0].s, false);
	assert_int_equal(ops->wait(&w, 1000000), -ETIMEDOUT);
	ops->credit(&b[0].s, true);
	assert_int_equal(ops->wait(&w, UINT64_MAX), 0);
	for (int tx = 0; tx < 2; tx++) {
		w = ops->wait_begin(&a[1].s, tx);
		ops->wake_local(&a[1].s);
		assert_int_equal(ops->wait(&w, UINT64_MAX), 0);
	}
}

#define ROUNDS 20000

/* Two threads, a byte to and fro; each sleeps when there is nothing. A wake-up that is lost shows as a time-out. */
static _Atomic unsigned lost;

static void *pong_futex(void *arg)
{
	struct one *o = arg;
	char c;
	uint64_t held;

	for (int i = 0; i < ROUNDS; i++) {
		while (!cv_ring_get_flat(&o->s.rx, &c, 1, &held)) {
			struct cv_wait w = ops->wait_begin(&o->s, false);

			if (cv_ring_readable_hint(&o->s.rx))
				continue;
			if (ops->wait(&w, 20000000000ull) == -ETIMEDOUT) {
				lost++;
				return NULL;
			}
		}
		ops->credit(&o->s, false);
		publish(o, "x", 0);
	}
	return NULL;
}

static void test_no_lost_futex_wake(void **state)
{
	pthread_t t[2];

	(void)state;
	lost = 0;
	publish(&a[0], "x", 0);
	assert_int_equal(pthread_create(&t[0], NULL, pong_futex, &a[0]), 0);
	assert_int_equal(pthread_create(&t[1], NULL, pong_futex, &b[0]), 0);
	pthread_join(t[0], NULL);
	pthread_join(t[1], NULL);
	assert_int_equal(lost, 0);
}

static void ignore(void *arg, struct cv_stream *s)
{
	(void)arg;
	(void)s;
}

struct player {
	struct one *o;
	struct cv_bell *bell;
};

static void *pong_bell(void *arg)
{
	struct player *me = arg;
	struct cv_stream *s = &me->o->s;
	uint64_t held;
	char c;

	for (int i = 0; i < ROUNDS; i++) {
		while (!cv_ring_get_flat(&s->rx, &c, 1, &held)) {
			struct pollfd f = {.fd = me->bell->fd, .events = POLLIN};
			uint64_t n;

			ops->bell_arm(me->bell);
			if (!ops->bell_pending(me->bell) && poll(&f, 1, 20000) == 0) {
				lost++;
				return NULL;
			}
			(void)!read(f.fd, &n, sizeof(n));
			ops->bell_disarm(me->bell);
			ops->bell_drain(me->bell, ignore, NULL);
		}
		ops->credit(s, false);
		cv_ring_put_flat(&s->tx, "x", 1);
		ops->publish(s, 0);
	}
	return NULL;
}

static void test_no_lost_bell(void **state)
{
	struct player pa = {&a[0], ops->bell_open(&p.a->link, &p)}, pb = {&b[0], ops->bell_open(&p.b->link, &p)};
	pthread_t t[2];

	(void)state;
	lost = 0;
	fake_turn();
	ops->want(&a[0].s, pa.bell->index, CV_WANT_RX_BELL, 0);
	ops->want(&b[0].s, pb.bell->index, CV_WANT_RX_BELL, 0);
	publish(&a[0], "x", 0);
	assert_int_equal(pthread_create(&t[0], NULL, pong_bell, &pa), 0);
	assert_int_equal(pthread_create(&t[1], NULL, pong_bell, &pb), 0);
	pthread_join(t[0], NULL);
	pthread_join(t[1], NULL);
	assert_int_equal(lost, 0);
	ops->bell_close(pa.bell);
	ops->bell_close(pb.bell);
}

/* Several threads ring one bell while it is drained: every ring is heard. */
#define RINGS 40000

static void *ring_often(void *arg)
{
	struct one *o = arg;

	for (int i = 0; i < RINGS; i++) {
		o->s.tx.tail++; /* only the count matters */
		ops->publish(&o->s, 0);
	}
	return NULL;
}

static _Atomic uint64_t heard_tail[STREAMS];

static void note_tail(void *arg, struct cv_stream *s)
{
	(void)arg;
	heard_tail[cv_container_of(s, struct one, s) - b] = atomic_load_explicit(&s->rx.w->tail, memory_order_acquire);
}

static void test_many_ringers(void **state)
{
	struct cv_bell *bell = &p.b->bells[0];
	pthread_t t[3];
	bool all = false;

	(void)state;
	for (int i = 0; i < 3; i++) {
		heard_tail[i] = 0;
		ops->want(&b[i].s, 0, CV_WANT_RX_BELL, 0);
		assert_int_equal(pthread_create(&t[i], NULL, ring_often, &a[i]), 0);
	}
	/* The last ring of each comes after its last tail. */
	for (uint64_t idle = 0; !all && idle < 2000000000; idle++) {
		if (ops->bell_pending(bell))
			ops->bell_drain(bell, note_tail, NULL);
		all = heard_tail[0] == RINGS && heard_tail[1] == RINGS && heard_tail[2] == RINGS;
	}
	for (int i = 0; i < 3; i++)
		pthread_join(t[i], NULL);
	assert_true(all);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		T(test_bytes_both_ways), T(test_credit),	  T(test_rings_in_order), T(test_wish_moves_and_ends),
		T(test_wakes_only_the_armed), T(test_bell_without_fd), T(test_agents_bell), T(test_overflow),
		T(test_laps),		 T(test_hostile_entries), T(test_endless_ringing), T(test_hostile_wish),
		T(test_wait),		 T(test_no_lost_futex_wake), T(test_no_lost_bell), T(test_many_ringers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
