/* SPDX-License-Identifier: Apache-2.0 */
#include "fake.h"

static const struct cv_link_ops *ops = &cv_shm_ops;

static void test_create_and_map(void **state)
{
	struct cv_shm_link *a, *b;
	int fd;

	(void)state;
	assert_int_equal(cv_shm_create(&a, RING, &fd), 0);
	assert_int_equal(cv_shm_map(&b, fd, RING, a->slots), 0);
	cv_fd_close(fd);
	assert_int_equal(a->side, 0);
	assert_int_equal(b->side, 1);
	assert_int_equal(a->slots, CV_SHM_SLOTS);
	assert_int_equal(a->seg_size, b->seg_size);
	assert_int_equal(b->seg->head.magic, CV_SHM_MAGIC);
	assert_int_equal(a->seg->bell[0][0].armed, 1); /* both agents sleep at first */
	assert_int_equal(a->seg->bell[1][0].armed, 1);
	/* one and the same memory, to its last byte */
	a->rings[2ull * a->slots * RING - 1] = 0x5a;
	assert_int_equal(b->rings[2ull * b->slots * RING - 1], 0x5a);
	assert_false(a->link.up);
	assert_null(cv_links);
	cv_shm_drop(a);
	cv_shm_drop(b);
}

/* Large rings: as many slots as the address space allowed for them holds. */
static void test_large_rings(void **state)
{
	struct cv_shm_link *a, *b;
	int fd;

	(void)state;
	assert_int_equal(cv_shm_create(&a, 16u << 20, &fd), 0);
	assert_int_equal(a->slots, CV_SHM_RINGS_MAX / (32u << 20));
	assert_int_equal(cv_shm_map(&b, fd, 16u << 20, a->slots), 0);
	cv_fd_close(fd);
	cv_shm_drop(a);
	cv_shm_drop(b);
}

static void test_map_hostile(void **state)
{
	const struct {
		uint64_t ring, slots;
	} bad[] = {
		{0, 1},	       {1, 1},		    {2048, 1},		  {4097, 1},		 {12288, 1},
		{RING, 0},     {RING, CV_SHM_SLOTS + 1}, {RING, UINT32_MAX}, {RING, CV_SHM_SLOTS - 1}, {2 * RING, CV_SHM_SLOTS},
		{1ull << 63, 1}, {UINT64_MAX, 1},   {CV_SHM_RINGS_MAX, 1},
	};
	struct cv_shm_link *a, *b = NULL;
	struct stat st;
	int fd, other;

	(void)state;
	assert_int_equal(cv_shm_create(&a, RING, &fd), 0);
	for (size_t i = 0; i < CV_ARRAY_LEN(bad); i++)
		if (cv_shm_map(&b, fd, bad[i].ring, (uint32_t)bad[i].slots) != -EPROTO)
			fail_msg("case %zu is taken", i);
	/* the right size, but it may be taken away under us */
	assert_int_equal(fstat(fd, &st), 0);
	other = memfd_of((uint64_t)st.st_size, false);
	assert_int_equal(cv_shm_map(&b, other, RING, CV_SHM_SLOTS), -EPROTO);
	close(other);
	other = memfd_of((uint64_t)st.st_size - 4096, true);
	assert_int_equal(cv_shm_map(&b, other, RING, CV_SHM_SLOTS), -EPROTO);
	close(other);
	assert_int_equal(cv_shm_map(&b, -1, RING, CV_SHM_SLOTS), -EPROTO);
	cv_fd_close(fd);
	cv_shm_drop(a);
	/* of the size that goes with what is said, but what is said is nonsense */
	assert_int_equal(cv_shm_create(&a, 3 * RING, &fd), 0);
	assert_int_equal(cv_shm_map(&b, fd, 3 * RING, a->slots), -EPROTO);
	cv_fd_close(fd);
	cv_shm_drop(a);
	other = memfd_of(((sizeof(struct cv_shm_segment) + 5000 * sizeof(struct cv_shm_slot) + 4095) & ~4095ull) + 2ull * RING * 5000, true);
	assert_int_equal(cv_shm_map(&b, other, RING, 5000), -EPROTO);
	close(other);
	assert_null(b);
}

static void test_up_and_down(void **state)
{
	struct pair p;
	struct one a, b, c;

	(void)state;
	pair_make(&p);
	assert_ptr_equal(cv_links, &p.b->link);
	assert_ptr_equal(cv_links->next, &p.a->link);
	pair_stream(&p, &a, &b);
	one_init(&c);
	assert_int_equal(cv_shm_attach(&p.a->link, &c.s, &(struct cv_tuple){0}), 0);
	cv_shm_fail(p.a, CV_REASON_NO_MEMORY);
	assert_int_equal(told.down, 2);
	assert_int_equal(told.why, CV_REASON_NO_MEMORY);
	assert_ptr_equal(cv_links, &p.b->link);
	assert_null(cv_links->next);
	cv_shm_fail(p.a, CV_REASON_NO_MEMORY); /* once */
	assert_int_equal(told.down, 2);
	/* the streams' memory stays until they let go of it */
	fake_turn();
	assert_false(fake_expire_one(&p.a->unmap));
	assert_non_null(p.a->seg);
	ops->publish(&a.s, 0);
	cv_shm_detach(&a.s);
	fake_turn();
	assert_false(fake_expire_one(&p.a->unmap));
	assert_non_null(p.a->seg);
	cv_shm_detach(&c.s);
	fake_turn();
	assert_non_null(p.a->seg); /* a thread may be about to look at one of its lines */
	assert_true(fake_expire_one(&p.a->unmap));
	assert_null(p.a->seg);
	/* the other side hears of it, when no process is there any more */
	assert_true(p.b->link.up);
	fake_expire_one(&p.b->grave);
	assert_false(p.b->link.up);
	assert_int_equal(told.down, 3);
	assert_ptr_equal(told.s, &b.s);
	assert_int_equal(told.why, CV_REASON_PEER_DEAD);
	cv_shm_detach(&b.s);
	fake_turn();
	assert_true(fake_expire_one(&p.b->unmap));
	assert_null(p.b->seg);
	assert_null(cv_links);
}

/* The channel is closed, but the process lives: its twins may still tell how they end. Not for ever. */
static void test_closed_channel_of_the_living(void **state)
{
	struct pair p;
	unsigned looks = 0;

	(void)state;
	pair_make(&p);
	p.b->link.peer_pid = getpid();
	cv_shm_fail(p.a, CV_REASON_CLOSED);
	fake_turn();
	while (p.b->link.up && looks < 10000) {
		assert_true(fake_expire_one(&p.b->grave));
		looks++;
	}
	assert_in_range(looks, 2, 1000);
}

static void test_breach(void **state)
{
	struct pair p;
	struct one a, b;

	(void)state;
	pair_make(&p);
	pair_stream(&p, &a, &b);
	cv_shm_breach(&p.b->link);
	assert_true(p.b->link.up); /* only the agent ends links */
	fake_turn();
	assert_false(p.b->link.up);
	assert_int_equal(told.why, CV_REASON_PROTOCOL);
	fake_expire_one(&p.a->grave);
	assert_false(p.a->link.up);
	cv_shm_detach(&a.s);
	cv_shm_detach(&b.s);
	fake_turn();
}

static void test_bells_run_out(void **state)
{
	struct cv_bell *bell[CV_LINK_BELLS];
	struct pair p;
	int owner;

	(void)state;
	pair_make(&p);
	for (unsigned i = 1; i < CV_LINK_BELLS; i++) {
		bell[i] = ops->bell_open(&p.b->link, &owner);
		assert_non_null(bell[i]);
		assert_int_equal(bell[i]->index, i);
		assert_true(cv_fd_internal(bell[i]->fd));
	}
	fake_turn();
	for (unsigned i = 1; i < CV_LINK_BELLS; i++)
		assert_true(p.a->peer_fd[i] >= 0);
	assert_null(ops->bell_open(&p.b->link, &owner));
	ops->bell_close(bell[7]);
	bell[7] = ops->bell_open(&p.b->link, &owner);
	assert_int_equal(bell[7]->index, 7);
	fake_turn(); /* the new fd took the old one's place over there */
	/* a dead link stays until its bells are closed */
	cv_shm_fail(p.b, CV_REASON_CLOSED);
	fake_turn();
	assert_false(fake_expire_one(&p.b->unmap));
	assert_non_null(p.b->seg);
	assert_null(ops->bell_open(&p.b->link, &owner));
	for (unsigned i = 1; i < CV_LINK_BELLS; i++)
		ops->bell_close(bell[i]);
	fake_turn();
	assert_true(fake_expire_one(&p.b->unmap));
	assert_null(p.b->seg);
	fake_expire();
}

/* A link's memory is used for links only, so that a late look at a dead one does no harm; what it was does not show. */
static void test_used_again(void **state)
{
	struct cv_shm_link *first;
	struct pair p;
	struct one a, b;

	(void)state;
	pair_make(&p);
	pair_stream(&p, &a, &b);
	cv_shm_detach(&a.s);
	cv_shm_detach(&b.s);
	first = p.a;
	pair_end(&p);
	assert_null(first->seg);
	pair_make(&p);
	assert_true(p.a == first || p.b == first);
	assert_int_equal(p.a->attached, 0);
	pair_stream(&p, &a, &b);
	assert_int_equal(a.port.slot, 0);
	cv_shm_detach(&a.s);
	cv_shm_detach(&b.s);
	pair_end(&p);
}

static void test_forked(void **state)
{
	struct pair p;
	struct one a, b;
	int fds[6];

	(void)state;
	pair_make(&p);
	pair_stream(&p, &a, &b);
	cv_lock(&p.a->send); /* some thread of the parent held it */
	/* as in a child, whose descriptors cv_fd_forked() has closed */
	fds[0] = p.a->sock.fd, fds[1] = p.a->bell0.fd, fds[2] = p.a->peer_fd[0];
	fds[3] = p.b->sock.fd, fds[4] = p.b->bell0.fd, fds[5] = p.b->peer_fd[0];
	for (int i = 0; i < 2; i++) {
		struct cv_shm_link *l = i ? p.b : p.a;

		cv_agent_watch(&l->sock, 0);
		cv_agent_watch(&l->bell0, 0);
	}
	cv_shm_forked();
	cv_locks_leave();
	assert_null(cv_links);
	assert_false(p.a->link.up);
	assert_int_equal(cv_shm_attach(&p.a->link, &(struct cv_stream){0}, &(struct cv_tuple){0}), -EPIPE);
	assert_int_equal(cv_shm_send(p.a, &(struct cv_shm_pkt){0}, -1), -EPIPE);
	assert_non_null(a.s.tx.w); /* still mapped: the child's copies of streams look there */
	assert_int_equal(a.s.tx.w->tail, 0);
	for (int i = 0; i < 6; i++) {
		assert_true(cv_fd_internal(fds[i]));
		cv_fd_close(fds[i]);
	}
	cv_shm_detach(&a.s);
	cv_shm_detach(&b.s);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, fake_setup, fake_teardown)
	const struct CMUnitTest tests[] = {
		T(test_create_and_map), T(test_large_rings), T(test_map_hostile), T(test_up_and_down), T(test_closed_channel_of_the_living),
		T(test_breach),		T(test_bells_run_out), T(test_used_again), T(test_forked),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
