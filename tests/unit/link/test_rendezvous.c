/* SPDX-License-Identifier: Apache-2.0 */
/* Over real abstract sockets; dialer and listener are both in this process, as they are when a program talks to itself. */
#include "fake.h"
#include <stdio.h>
#include <sys/un.h>

static int token;

static void assert_quiet(void)
{
	assert_int_equal(fake_timers(), 0);
	assert_null(cv_links);
}

/* The name as docs/protocol.md has it, so that an impostor can be played. */
static socklen_t name(struct sockaddr_un *a, const struct cv_tuple *t)
{
	const uint8_t *raw = (const uint8_t *)t;
	int n;

	*a = (struct sockaddr_un){.sun_family = AF_UNIX};
	n = sprintf(a->sun_path + 1, "culvert/");
	for (size_t i = 0; i < sizeof(*t); i++)
		n += sprintf(a->sun_path + 1 + n, "%02x", raw[i]);
	return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n);
}

static int knock(const struct cv_tuple *t)
{
	struct sockaddr_un a;
	socklen_t len = name(&a, t);
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	assert_true(fd >= 0);
	assert_int_equal(connect(fd, (struct sockaddr *)&a, len), 0);
	return fd;
}

static int squat(const struct cv_tuple *t)
{
	struct sockaddr_un a;
	socklen_t len = name(&a, t);
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	assert_true(fd >= 0);
	assert_int_equal(bind(fd, (struct sockaddr *)&a, len), 0);
	assert_int_equal(listen(fd, 4), 0);
	return fd;
}

static bool closed_by_peer(int fd)
{
	char c[512];
	ssize_t n = recv(fd, c, sizeof(c), MSG_DONTWAIT);

	return n == 0 || (n < 0 && errno == ECONNRESET);
}

static void test_nobody_listens(void **state)
{
	struct cv_tuple t = tuple_of(1);

	(void)state;
	assert_int_equal(cv_shm_dial(&t, RING, &token), -ECONNREFUSED);
	assert_int_equal(told.dialled, 0);
	assert_quiet();
}

static void test_meet(void **state)
{
	struct cv_tuple t = tuple_of(2);
	struct cv_listener *l;
	struct cv_shm_link *a, *b;

	(void)state;
	assert_int_equal(cv_shm_listen(&l, &t), 0);
	assert_int_equal(cv_shm_dial(&t, RING, &token), 0);
	assert_int_equal(told.dialled, 0);
	fake_turn();
	assert_int_equal(told.dialled, 1);
	assert_ptr_equal(told.arg, &token);
	assert_int_equal(told.why, CV_REASON_NONE);
	a = cv_shm_of(told.link);
	assert_int_equal(a->side, 0);
	b = cv_shm_of(cv_links == told.link ? cv_links->next : cv_links);
	assert_int_equal(b->side, 1);
	assert_true(a->link.up && b->link.up);
	assert_memory_equal(a->link.identity, b->link.identity, 32);
	assert_int_not_equal(a->link.identity[0] | a->link.identity[1] | a->link.identity[2] | a->link.identity[3], 0);
	assert_int_equal(a->link.peer_pid, getpid());
	assert_int_equal(b->link.peer_pid, getpid());
	assert_int_equal(fake_timers(), 0);
	/* bells go both ways */
	b->seg->bell[1][0].armed = 0;
	a->seg->bell[1][0].entry[0] = 1u << CV_SHM_SLOT_BITS;
	assert_true(cv_shm_ops.bell_pending(&b->bells[0]));
	cv_shm_unlisten(l);
	assert_int_equal(cv_shm_dial(&t, RING, &token), -ECONNREFUSED);
	cv_shm_fail(a, CV_REASON_CLOSED);
	cv_shm_fail(b, CV_REASON_CLOSED);
}

/* One link to a process is enough, while it has room; each has an identity of its own. */
static void test_link_is_shared(void **state)
{
	struct cv_tuple t[2] = {tuple_of(3), tuple_of(4)};
	struct cv_listener *l[2];
	struct cv_link *first;
	uint8_t id[32];

	(void)state;
	for (int i = 0; i < 2; i++)
		assert_int_equal(cv_shm_listen(&l[i], &t[i]), 0);
	assert_int_equal(cv_shm_dial(&t[0], RING, &token), 0);
	assert_int_equal(cv_shm_dial(&t[1], RING, &token), -EALREADY); /* being made */
	fake_turn();
	assert_int_equal(told.dialled, 1);
	first = told.link;
	memcpy(id, first->identity, 32);
	assert_int_equal(cv_shm_dial(&t[1], RING, &t), 0);
	assert_int_equal(told.dialled, 2); /* at once */
	assert_ptr_equal(told.link, first);
	assert_ptr_equal(told.arg, &t);
	/* a full one does not do */
	cv_shm_of(first)->slots_used = cv_shm_of(first)->slots;
	assert_int_equal(cv_shm_dial(&t[1], RING, &token), 0);
	fake_turn();
	assert_int_equal(told.dialled, 3);
	assert_ptr_not_equal(told.link, first);
	assert_memory_not_equal(told.link->identity, id, 32);
	cv_shm_of(first)->slots_used = 0;
	for (int i = 0; i < 2; i++)
		cv_shm_unlisten(l[i]);
}

static void test_listeners_run_out(void **state)
{
	struct cv_listener *l[65];
	struct cv_tuple t;

	(void)state;
	for (unsigned i = 0; i < 65; i++) {
		t = tuple_of(100 + i);
		assert_int_equal(cv_shm_listen(&l[i], &t), i < 64 ? 0 : -EMFILE);
	}
	t = tuple_of(100);
	assert_int_equal(cv_shm_dial(&t, RING, &token), 0);
	fake_turn();
	assert_int_equal(told.dialled, 1);
	cv_shm_unlisten(l[10]);
	cv_shm_unlisten(l[10]); /* no harm */
	cv_shm_unlisten(NULL);
	t = tuple_of(164);
	assert_int_equal(cv_shm_listen(&l[10], &t), 0);
	for (unsigned i = 0; i < 64; i++)
		cv_shm_unlisten(l[i]);
}

static void test_name_taken(void **state)
{
	struct cv_tuple t = tuple_of(5);
	struct cv_listener *l;
	int squatter = squat(&t);

	(void)state;
	assert_int_equal(cv_shm_listen(&l, &t), -EADDRINUSE);
	close(squatter);
	assert_int_equal(cv_shm_listen(&l, &t), 0);
	cv_shm_unlisten(l);
}

/* ---- who dials is not who he should be ----------------------------------------------------------------------------------------- */

struct greeting {
	struct cv_shm_pkt pkt;
	int nfds;
	size_t len;
	bool sealed;
};

static void greet_with(int fd, const struct greeting *g)
{
	int fds[2] = {memfd_of(0, false), eventfd(0, EFD_NONBLOCK)};
	struct stat st;

	if (g->sealed) { /* of the right size, as far as there is one */
		struct cv_shm_link *l;

		close(fds[0]);
		assert_int_equal(cv_shm_create(&l, RING, &fds[0]), 0);
		cv_shm_drop(l);
		assert_int_equal(fstat(fds[0], &st), 0);
	}
	if (g->len != sizeof(g->pkt))
		assert_int_equal(send(fd, &g->pkt, g->len, MSG_NOSIGNAL), g->len);
	else
		assert_int_equal(cv_pkt_send(fd, &g->pkt, fds, g->nfds), 0);
	cv_fd_close(fds[0]);
	close(fds[1]);
}

#define PKT(k, v, r, n) {.kind = k, .version = v, .ring = r, .slots = n}
#define HELLO PKT(CV_PKT_HELLO, CV_WIRE_VERSION, RING, CV_SHM_SLOTS)
#define HELLO_WITH(ring, slots) PKT(CV_PKT_HELLO, CV_WIRE_VERSION, ring, slots)
#define WHOLE sizeof(struct cv_shm_pkt)

static void test_hostile_dialer(void **state)
{
	const struct greeting bad[] = {
		{HELLO, 2, 1, true},
		{HELLO, 2, WHOLE - 1, true},
		{PKT(CV_PKT_OFFER, CV_WIRE_VERSION, RING, CV_SHM_SLOTS), 2, WHOLE, true},
		{PKT(0, CV_WIRE_VERSION, RING, CV_SHM_SLOTS), 2, WHOLE, true},
		{PKT(CV_PKT_HELLO, CV_WIRE_VERSION + 1, RING, CV_SHM_SLOTS), 2, WHOLE, true},
		{PKT(CV_PKT_HELLO, 0, RING, CV_SHM_SLOTS), 2, WHOLE, true},
		{HELLO, 0, WHOLE, true},
		{HELLO, 1, WHOLE, true},
		{HELLO, 2, WHOLE, false},
		{HELLO_WITH(RING, 0), 2, WHOLE, true},
		{HELLO_WITH(RING, UINT32_MAX), 2, WHOLE, true},
		{HELLO_WITH(RING, CV_SHM_SLOTS - 1), 2, WHOLE, true},
		{HELLO_WITH(0, CV_SHM_SLOTS), 2, WHOLE, true},
		{HELLO_WITH(2 * RING, CV_SHM_SLOTS), 2, WHOLE, true},
		{HELLO_WITH(RING + 1, CV_SHM_SLOTS), 2, WHOLE, true},
		{HELLO_WITH(UINT64_MAX, CV_SHM_SLOTS), 2, WHOLE, true},
	};
	const struct greeting good = {HELLO, 2, WHOLE, true};
	struct cv_tuple t = tuple_of(6);
	struct cv_listener *l;
	int fd;

	(void)state;
	assert_int_equal(cv_shm_listen(&l, &t), 0);
	for (size_t i = 0; i < CV_ARRAY_LEN(bad); i++) {
		fd = knock(&t);
		fake_turn();
		assert_int_equal(fake_timers(), 1);
		greet_with(fd, &bad[i]);
		fake_turn();
		if (cv_links || !closed_by_peer(fd))
			fail_msg("greeting %zu is taken", i);
		assert_int_equal(fake_timers(), 0);
		close(fd);
	}
	/* goes away again, before and after it is noticed */
	close(knock(&t));
	fake_turn();
	fd = knock(&t);
	fake_turn();
	close(fd);
	fake_turn();
	assert_quiet();
	/* says nothing: not for ever */
	fd = knock(&t);
	fake_turn();
	assert_int_equal(fake_expire(), 1);
	assert_true(closed_by_peer(fd));
	assert_quiet();
	close(fd);
	/* and the listener still listens: this one says what it should */
	fd = knock(&t);
	greet_with(fd, &good);
	fake_turn();
	assert_non_null(cv_links);
	assert_int_equal(cv_shm_of(cv_links)->side, 1);
	assert_int_equal(told.dialled, 0); /* whoever listens is told by the offer */
	assert_int_equal(recv(fd, &(struct cv_shm_pkt){0}, WHOLE, 0), WHOLE);
	close(fd);
	cv_shm_unlisten(l);
}

/* ---- who listens is not who he should be --------------------------------------------------------------------------------------- */

static int answer_to(int squatter)
{
	struct cv_shm_pkt hello;
	int fds[2], fd;

	fd = accept4(squatter, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
	assert_true(fd >= 0);
	assert_int_equal(cv_pkt_recv(fd, &hello, fds), 0);
	assert_int_equal(hello.kind, CV_PKT_HELLO);
	assert_int_equal(hello.version, CV_WIRE_VERSION);
	assert_int_equal(hello.ring, RING);
	assert_true(fds[0] >= 0 && fds[1] >= 0);
	cv_fd_close(fds[0]);
	cv_fd_close(fds[1]);
	return fd;
}

static void test_hostile_listener(void **state)
{
	const struct {
		struct cv_shm_pkt pkt;
		int nfds;
		size_t len;
		enum cv_reason why;
	} bad[] = {
		{{.kind = CV_PKT_HELLO_OK, .version = CV_WIRE_VERSION + 1}, 1, WHOLE, CV_REASON_PROTOCOL},
		{{.kind = CV_PKT_HELLO, .version = CV_WIRE_VERSION}, 2, WHOLE, CV_REASON_PROTOCOL},
		{{.kind = CV_PKT_HELLO_OK, .version = CV_WIRE_VERSION}, 0, WHOLE, CV_REASON_PROTOCOL},
		{{.kind = CV_PKT_HELLO_OK, .version = CV_WIRE_VERSION}, 0, 5, CV_REASON_PROTOCOL},
		{{0}, 0, 0, CV_REASON_PEER_REFUSED}, /* hangs up */
	};
	struct cv_tuple t = tuple_of(7);
	int squatter = squat(&t), fd;

	(void)state;
	for (size_t i = 0; i < CV_ARRAY_LEN(bad); i++) {
		int fds[2] = {eventfd(0, EFD_NONBLOCK), eventfd(0, EFD_NONBLOCK)};

		assert_int_equal(cv_shm_dial(&t, RING, &token), 0);
		fd = answer_to(squatter);
		if (bad[i].len == WHOLE)
			assert_int_equal(cv_pkt_send(fd, &bad[i].pkt, fds, bad[i].nfds), 0);
		else if (bad[i].len)
			assert_int_equal(send(fd, &bad[i].pkt, bad[i].len, MSG_NOSIGNAL), bad[i].len);
		else
			close(fd);
		fake_turn();
		assert_int_equal(told.dialled, i + 1);
		assert_ptr_equal(told.arg, &token);
		assert_null(told.link);
		assert_int_equal(told.why, bad[i].why);
		assert_quiet();
		close(fds[0]);
		close(fds[1]);
		if (bad[i].len)
			close(fd);
	}
	/* never answers */
	assert_int_equal(cv_shm_dial(&t, RING, &token), 0);
	fake_turn();
	assert_int_equal(fake_expire(), 1);
	assert_null(told.link);
	assert_int_equal(told.why, CV_REASON_TIMEOUT);
	assert_quiet();
	close(squatter);
}

/* As many handshakes as there is room for, from one that keeps knocking; then it is another's turn again. */
static void test_knocking_without_end(void **state)
{
	struct cv_tuple t = tuple_of(8);
	struct cv_listener *l;
	int fd[300];

	(void)state;
	assert_int_equal(cv_shm_listen(&l, &t), 0);
	for (int i = 0; i < 300; i++) {
		fd[i] = knock(&t);
		fake_turn();
	}
	assert_int_equal(fake_timers(), 256);
	assert_int_equal(fake_expire(), 256);
	for (int i = 0; i < 300; i++) {
		assert_true(closed_by_peer(fd[i]));
		close(fd[i]);
	}
	assert_int_equal(cv_shm_dial(&t, RING, &token), 0);
	fake_turn();
	assert_int_equal(told.why, CV_REASON_NONE);
	assert_non_null(told.link);
	cv_shm_unlisten(l);
}

/* Whoever dials makes us map memory: only so many links that carry nothing. */
static void test_idle_links_are_bounded(void **state)
{
	struct cv_tuple t = tuple_of(9);
	const struct greeting good = {HELLO, 2, WHOLE, true};
	struct cv_listener *l;
	unsigned links = 0;
	int fd[80];

	(void)state;
	assert_int_equal(cv_shm_listen(&l, &t), 0);
	for (int i = 0; i < 80; i++) {
		fd[i] = knock(&t);
		fake_turn();
		greet_with(fd[i], &good);
		fake_turn();
	}
	for (struct cv_link *k = cv_links; k; k = k->next)
		links++;
	assert_int_equal(links, 64);
	for (int i = 0; i < 80; i++)
		close(fd[i]);
	cv_shm_unlisten(l);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, fake_setup, fake_teardown)
	const struct CMUnitTest tests[] = {
		T(test_nobody_listens), T(test_meet), T(test_link_is_shared), T(test_listeners_run_out), T(test_name_taken),
		T(test_hostile_dialer), T(test_hostile_listener), T(test_knocking_without_end), T(test_idle_links_are_bounded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
