/* SPDX-License-Identifier: Apache-2.0 */
#include "fake.h"
#include <stdio.h>

static struct pair p;
static const struct cv_link_ops *ops = &cv_shm_ops;

static int setup(void **state)
{
	fake_setup(state);
	pair_make(&p);
	return 0;
}

static int teardown(void **state)
{
	pair_end(&p);
	return fake_teardown(state);
}

/* ---- packets ------------------------------------------------------------------------------------------------------------------- */

static void test_packet(void **state)
{
	struct cv_shm_pkt in, out = {.kind = CV_PKT_STREAM, .slot = 7, .ring = 1ull << 40, .msg = {.type = CV_MSG_SWITCH, .a = 99}};
	int sv[2], fds[2], send[2] = {memfd_of(111, false), memfd_of(222, false)};
	struct stat st;

	(void)state;
	sockets(sv);
	assert_int_equal(cv_pkt_recv(sv[1], &in, fds), -EAGAIN);
	for (int n = 0; n <= 2; n++) {
		assert_int_equal(cv_pkt_send(sv[0], &out, send, n), 0);
		assert_int_equal(cv_pkt_recv(sv[1], &in, fds), 0);
		assert_memory_equal(&in, &out, sizeof(in));
		for (int i = 0; i < 2; i++) {
			assert_int_equal(fds[i] >= 0, i < n);
			if (i >= n)
				continue;
			assert_true(cv_fd_internal(fds[i]));
			assert_int_equal(fcntl(fds[i], F_GETFD), FD_CLOEXEC);
			assert_int_equal(fstat(fds[i], &st), 0);
			assert_int_equal(st.st_size, (i + 1) * 111);
			cv_fd_close(fds[i]);
		}
	}
	close(send[0]);
	close(send[1]);
	close(sv[0]);
	assert_int_equal(cv_pkt_recv(sv[1], &in, fds), -EPIPE);
	assert_int_equal(cv_pkt_send(sv[1], &out, NULL, 0), -EPIPE);
	close(sv[1]);
}

/* What a peer may send instead of a packet: `len` bytes with `nfds` descriptors. */
static void send_raw(int sock, const void *data, size_t len, int nfds)
{
	union {
		char buf[CMSG_SPACE(32 * sizeof(int))];
		struct cmsghdr align;
	} c = {0};
	struct iovec iov = {.iov_base = (void *)(uintptr_t)data, .iov_len = len};
	struct msghdr m = {.msg_iov = &iov, .msg_iovlen = 1};

	if (nfds) {
		m.msg_control = c.buf;
		m.msg_controllen = CMSG_SPACE((size_t)nfds * sizeof(int));
		c.align.cmsg_level = SOL_SOCKET;
		c.align.cmsg_type = SCM_RIGHTS;
		c.align.cmsg_len = CMSG_LEN((size_t)nfds * sizeof(int));
		for (int i = 0; i < nfds; i++)
			memcpy(CMSG_DATA(&c.align) + (size_t)i * sizeof(int), &sock, sizeof(int));
	}
	assert_int_equal(sendmsg(sock, &m, MSG_DONTWAIT | MSG_NOSIGNAL), len);
}

static void test_packet_hostile(void **state)
{
	char big[sizeof(struct cv_shm_pkt) + 1] = "";
	struct cv_shm_pkt in;
	int sv[2], fds[2];
	unsigned before;

	(void)state;
	sockets(sv);
	before = open_fds();
	/* short, long, and empty, with descriptors and without: none stays open */
	for (int nfds = 0; nfds <= 3; nfds++) {
		send_raw(sv[0], big, sizeof(in) - 1, nfds);
		assert_int_equal(cv_pkt_recv(sv[1], &in, fds), -EPROTO);
		send_raw(sv[0], big, sizeof(in) + 1, nfds);
		assert_int_equal(cv_pkt_recv(sv[1], &in, fds), -EPROTO);
		send_raw(sv[0], big, 1, nfds);
		assert_int_equal(cv_pkt_recv(sv[1], &in, fds), -EPROTO);
		assert_int_equal(open_fds(), before);
	}
	/* more descriptors than anybody honest sends: two are handed on, the others closed */
	send_raw(sv[0], big, sizeof(in), 5);
	assert_int_equal(cv_pkt_recv(sv[1], &in, fds), 0);
	assert_int_equal(open_fds(), before + 2);
	cv_fd_close(fds[0]);
	cv_fd_close(fds[1]);
	/* more than we make room for */
	send_raw(sv[0], big, sizeof(in), 30);
	assert_int_equal(cv_pkt_recv(sv[1], &in, fds), -EPROTO);
	assert_int_equal(open_fds(), before);
	close(sv[0]);
	close(sv[1]);
}

/* A packet of side A's making, to side B. B's link ends with PROTOCOL, or not. */
static void hostile(struct cv_shm_link *from, struct cv_shm_link *to, struct cv_shm_pkt pkt, int fd, bool fatal)
{
	assert_int_equal(cv_pkt_send(from->sock.fd, &pkt, &fd, fd >= 0), 0);
	cv_shm_readable(&to->sock, POLLIN);
	assert_int_equal(to->link.up, !fatal);
}

static void test_bad_packets_end_the_link(void **state)
{
	const struct {
		struct cv_shm_pkt pkt;
		bool to_a;
	} bad[] = {
		{{.kind = 0}, false},
		{{.kind = CV_PKT_HELLO}, false},
		{{.kind = CV_PKT_HELLO_OK}, true},
		{{.kind = 4711}, false},
		{{.kind = CV_PKT_STREAM, .slot = CV_SHM_SLOTS}, false},
		{{.kind = CV_PKT_STREAM, .slot = UINT32_MAX}, true},
		{{.kind = CV_PKT_OFFER, .slot = CV_SHM_SLOTS, .msg.type = CV_MSG_OPEN}, false},
		{{.kind = CV_PKT_OFFER, .slot = 0, .msg.type = CV_MSG_GROW}, false},
		{{.kind = CV_PKT_OFFER, .slot = 0, .msg.type = CV_MSG_OPEN}, true}, /* only side 0 hands out slots */
		{{.kind = CV_PKT_BYE, .slot = CV_SHM_SLOTS}, true},
		{{.kind = CV_PKT_BELL, .slot = 1}, false}, /* without a descriptor */
	};

	(void)state;
	for (size_t i = 0; i < CV_ARRAY_LEN(bad); i++) {
		hostile(bad[i].to_a ? p.b : p.a, bad[i].to_a ? p.a : p.b, bad[i].pkt, -1, true);
		assert_int_equal(told.offered, 0);
		pair_end(&p);
		pair_make(&p);
	}
	/* a bell out of range, with one */
	hostile(p.a, p.b, (struct cv_shm_pkt){.kind = CV_PKT_BELL, .slot = CV_LINK_BELLS}, 0, true);
	pair_end(&p);
	pair_make(&p);
	/* half a packet */
	send_raw(p.a->sock.fd, "x", 1, 0);
	cv_shm_readable(&p.b->sock, POLLIN);
	assert_false(p.b->link.up);
}

/* Late or useless, not wrong. */
static void test_odd_packets(void **state)
{
	int fd = eventfd(0, EFD_NONBLOCK);

	(void)state;
	hostile(p.a, p.b, (struct cv_shm_pkt){.kind = CV_PKT_STREAM, .slot = 5, .msg.type = CV_MSG_CANCEL}, -1, false);
	hostile(p.a, p.b, (struct cv_shm_pkt){.kind = CV_PKT_BYE, .slot = 5}, -1, false);
	hostile(p.b, p.a, (struct cv_shm_pkt){.kind = CV_PKT_BYE, .slot = 5}, -1, false);
	hostile(p.a, p.b, (struct cv_shm_pkt){.kind = CV_PKT_BELL, .slot = 63}, fd, false); /* never to be rung */
	close(fd);
	assert_int_equal(told.messages, 0);
}

/* ---- memfds -------------------------------------------------------------------------------------------------------------------- */

static void test_memfd(void **state)
{
	int fd = cv_memfd("test", 8192), pipes[2];

	(void)state;
	assert_true(cv_fd_internal(fd));
	assert_int_equal(cv_memfd_check(fd, 8192), 0);
	assert_int_equal(cv_memfd_check(fd, 4096), -EPROTO);
	assert_int_equal(cv_memfd_check(fd, 16384), -EPROTO);
	assert_int_equal(ftruncate(fd, 4096), -1);
	assert_int_equal(ftruncate(fd, 16384), -1);
	cv_fd_close(fd);
	fd = memfd_of(8192, false);
	assert_int_equal(cv_memfd_check(fd, 8192), -EPROTO);
	assert_int_equal(fcntl(fd, F_ADD_SEALS, F_SEAL_GROW), 0);
	assert_int_equal(cv_memfd_check(fd, 8192), -EPROTO); /* may still shrink */
	close(fd);
	assert_int_equal(pipe(pipes), 0);
	assert_int_equal(cv_memfd_check(pipes[0], 0), -EPROTO);
	close(pipes[0]);
	close(pipes[1]);
	assert_int_equal(cv_memfd_check(-1, 0), -EPROTO);
}

/* ---- slots and offers ---------------------------------------------------------------------------------------------------------- */

static void offer(struct one *o, const struct cv_tuple *t, uint32_t epoch)
{
	struct cv_msg m = {.type = CV_MSG_OPEN, .epoch = epoch};

	one_init(o);
	assert_int_equal(cv_shm_attach(&p.a->link, &o->s, t), 0);
	assert_int_equal(ops->msg(&o->s, &m), 0);
}

static void test_offer_accepted(void **state)
{
	struct cv_tuple t = tuple_of(77);
	struct cv_msg m = {.type = CV_MSG_SWITCH, .epoch = 4, .a = 1234};
	struct one a, b;

	(void)state;
	one_init(&b);
	told.give = &b.s;
	offer(&a, &t, 3);
	fake_turn();
	assert_int_equal(told.offered, 1);
	assert_int_equal(told.accepted, 1);
	assert_memory_equal(&told.tuple, &t, sizeof(t));
	assert_ptr_equal(told.s, &b.s);
	assert_int_equal(told.msg.epoch, 3);
	assert_int_equal(b.port.slot, a.port.slot);
	assert_int_equal(ops->msg(&b.s, &m), 0);
	fake_turn();
	assert_ptr_equal(told.s, &a.s);
	assert_memory_equal(&told.msg, &m, sizeof(m));
	/* a second offer for the occupied slot is a breach */
	m = (struct cv_msg){.type = CV_MSG_OPEN};
	assert_int_equal(ops->msg(&a.s, &m), 0);
	cv_shm_readable(&p.b->sock, POLLIN);
	assert_false(p.b->link.up);
	assert_int_equal(told.down, 1);
	assert_int_equal(told.why, CV_REASON_PROTOCOL);
	cv_shm_detach(&a.s);
	cv_shm_detach(&b.s);
	assert_int_equal(ops->msg(&b.s, &m), -EPIPE);
}

static void test_offer_declined(void **state)
{
	struct cv_tuple t = tuple_of(1);
	struct one a;

	(void)state;
	told.nak = CV_REASON_POLICY;
	offer(&a, &t, 9);
	fake_turn();
	assert_int_equal(told.offered, 1);
	assert_int_equal(told.messages, 1);
	assert_ptr_equal(told.s, &a.s);
	assert_int_equal(told.msg.type, CV_MSG_NAK);
	assert_int_equal(told.msg.epoch, 9);
	assert_int_equal(told.msg.a, CV_REASON_POLICY);
	assert_int_equal(p.a->slot_state[a.port.slot] & 1, 1);
	cv_shm_detach(&a.s);
	assert_int_equal(p.a->slot_state[a.port.slot], 0); /* its BYE came with the NAK */
	fake_turn();
}

static void test_offer_waits(void **state)
{
	struct cv_tuple t[3] = {tuple_of(1), tuple_of(2), tuple_of(3)};
	struct one a[2], b;

	(void)state;
	one_init(&b);
	for (int i = 0; i < 2; i++)
		offer(&a[i], &t[i], 10 + (uint32_t)i);
	fake_turn();
	assert_int_equal(told.offered, 2);
	assert_int_equal(told.accepted, 0);
	assert_int_equal(told.messages, 0);
	told.give = &b.s;
	cv_shm_offers(&t[2]); /* not that one */
	assert_int_equal(told.offered, 2);
	cv_shm_offers(&t[1]);
	assert_int_equal(told.accepted, 1);
	assert_int_equal(told.msg.epoch, 11);
	assert_int_equal(b.port.slot, a[1].port.slot);
	cv_shm_offers(&t[1]); /* once */
	assert_int_equal(told.offered, 3);
	/* the other is cancelled before anybody took it: its slot comes back */
	assert_int_equal(ops->msg(&a[0].s, &(struct cv_msg){.type = CV_MSG_CANCEL}), 0);
	cv_shm_detach(&a[0].s);
	fake_turn();
	assert_int_equal(p.a->slot_state[a[0].port.slot], 0);
	cv_shm_offers(&t[0]);
	assert_int_equal(told.offered, 3);
	cv_shm_detach(&a[1].s);
	cv_shm_detach(&b.s);
	fake_turn();
}

/* A slot is used again only when both sides are done with it; the lines are clean then. */
static void test_slot_lives_twice(void **state)
{
	struct cv_tuple t = tuple_of(1);
	struct one a, b, c;
	uint32_t slot;

	(void)state;
	pair_stream(&p, &a, &b);
	slot = a.port.slot;
	a.s.tx.tail = 55;
	ops->publish(&a.s, CV_END_FIN);
	cv_shm_detach(&a.s);
	assert_null(a.port.link);
	fake_turn();
	one_init(&c);
	assert_int_equal(cv_shm_attach(&p.a->link, &c.s, &t), 0);
	assert_int_not_equal(c.port.slot, slot);
	cv_shm_detach(&c.s);
	cv_shm_detach(&b.s);
	fake_turn();
	one_init(&c);
	assert_int_equal(cv_shm_attach(&p.a->link, &c.s, &t), 0);
	assert_int_equal(c.port.slot, slot);
	assert_int_equal(c.s.tx.w->tail, 0);
	assert_int_equal(c.s.tx.w->end, 0);
	cv_shm_detach(&c.s);
	cv_shm_detach(&c.s); /* no harm */
}

static void test_no_slot(void **state)
{
	struct one *o = calloc(CV_SHM_SLOTS + 1, sizeof(*o));
	struct cv_tuple t = tuple_of(1);

	(void)state;
	for (unsigned i = 0; i <= CV_SHM_SLOTS; i++) {
		one_init(&o[i]);
		assert_int_equal(cv_shm_attach(&p.a->link, &o[i].s, &t), i < CV_SHM_SLOTS ? 0 : -ENOSPC);
	}
	assert_null(o[CV_SHM_SLOTS].port.link);
	assert_ptr_not_equal(o[0].s.tx.gen[0].base, o[1].s.tx.gen[0].base);
	cv_shm_fail(p.a, CV_REASON_LINK_DOWN);
	assert_int_equal(told.down, CV_SHM_SLOTS);
	assert_int_equal(cv_shm_attach(&p.a->link, &o[CV_SHM_SLOTS].s, &t), -EPIPE);
	for (unsigned i = 0; i < CV_SHM_SLOTS; i++)
		cv_shm_detach(&o[i].s);
	free(o);
}

/* ---- further generations of a ring --------------------------------------------------------------------------------------------- */

/* Memory of further generations that is mapped here. */
static unsigned rings_mapped(void)
{
	FILE *f = fopen("/proc/self/maps", "r");
	char line[512];
	unsigned n = 0;

	assert_non_null(f);
	while (fgets(line, sizeof(line), f))
		n += strstr(line, "memfd:culvert-ring") != NULL;
	fclose(f);
	return n;
}

static void test_grow(void **state)
{
	struct one a, b;
	uint8_t *base = NULL, text[8];
	struct iovec v = {.iov_base = text, .iov_len = 8};
	uint64_t got;
	unsigned fds;

	(void)state;
	pair_stream(&p, &a, &b);
	fake_turn();
	fds = open_fds();
	cv_ring_put_flat(&a.s.tx, "abcd", 4);
	ops->publish(&a.s, 0);
	assert_int_equal(ops->grow(&a.s, 65536, &base, &got), 0);
	assert_int_equal(got, 65536);
	assert_int_equal(cv_ring_open_gen(&a.s.tx, base, got), 0);
	assert_int_equal(ops->grow(&a.s, 65536, &base, &got), -ENOSPC); /* its message has not gone yet */
	assert_int_equal(ops->msg(&a.s, &(struct cv_msg){.type = CV_MSG_GROW, .a = 1, .b = 4, .c = 65536}), 0);
	cv_ring_put_flat(&a.s.tx, "efgh", 4);
	ops->publish(&a.s, 0);
	fake_turn();
	assert_int_equal(told.fd_size, 65536);
	assert_int_equal(told.take_gen, 0);
	assert_int_equal(open_fds(), fds); /* both mapped, nothing kept open */
	assert_int_equal(b.s.rx.gens, 2);
	assert_int_equal(cv_ring_readable(&b.s.rx), 8);
	assert_int_equal(cv_ring_get(&b.s.rx, &v, 1, 8, false), 8);
	assert_memory_equal(text, "abcdefgh", 8);
	assert_int_equal(rings_mapped(), 2);
	cv_shm_detach(&a.s);
	cv_shm_detach(&b.s);
	assert_int_equal(rings_mapped(), 0);
	/* grown, but the message never went: the descriptor goes with the slot */
	pair_stream(&p, &a, &b);
	assert_int_equal(ops->grow(&a.s, 8192, &base, &got), 0);
	cv_shm_detach(&a.s);
	cv_shm_detach(&b.s);
	fake_turn();
	assert_int_equal(open_fds(), fds);
}

static void test_grow_hostile(void **state)
{
	const struct {
		uint64_t gen, start, size, real;
		bool sealed;
	} bad[] = {
		{1, 4, 8192, 8192, false},    {1, 4, 8192, 4096, true}, /* shorter than said */
		{1, 4, 8192, 16384, true},    {1, 4, 12288, 12288, true}, /* no power of two */
		{1, 4, 2048, 2048, true},     {1, 4, 2 * CV_SHM_EXTRA_MAX, 2 * CV_SHM_EXTRA_MAX, true},
		{1, 4, 0, 0, true},	      {1, 4, 1ull << 63, 8192, true},
		{0, 4, 8192, 8192, true},     {2, 4, 8192, 8192, true}, /* not the next one */
		{4, 4, 8192, 8192, true},     {1ull << 32 | 1, 4, 8192, 8192, true},
		{1, 0, 8192, 8192, true}, /* from the very beginning: there would be no first one */
	};
	struct one a, b;

	(void)state;
	pair_stream(&p, &a, &b);
	for (size_t i = 0; i < CV_ARRAY_LEN(bad); i++) {
		struct cv_msg m = {.type = CV_MSG_GROW, .a = bad[i].gen, .b = bad[i].start, .c = bad[i].size};
		int fd = memfd_of(bad[i].real, bad[i].sealed);

		if (cv_shm_take_gen(&b.s, &m, fd) != -EPROTO)
			fail_msg("case %zu is taken", i);
		assert_int_equal(b.s.rx.gens, 1);
		assert_int_equal(b.port.extras, 0);
		close(fd);
	}
	assert_int_equal(cv_shm_take_gen(&b.s, &(struct cv_msg){.a = 1, .b = 4, .c = 8192}, -1), -EPROTO);
	/* the honest ones, and then one more */
	for (uint64_t g = 1; g <= CV_RING_GENS; g++) {
		int fd = memfd_of(8192, true);

		assert_int_equal(cv_shm_take_gen(&b.s, &(struct cv_msg){.a = g, .b = 4 * g, .c = 8192}, fd), g < CV_RING_GENS ? 0 : -EPROTO);
		close(fd);
	}
	cv_shm_detach(&a.s);
	cv_shm_detach(&b.s);
}

/* ---- a channel that is full ---------------------------------------------------------------------------------------------------- */

static void test_full_channel(void **state)
{
	struct one a, b;
	uint64_t order = 0;
	unsigned sent = 0, fds;
	int fd = memfd_of(4096, true);

	(void)state;
	pair_stream(&p, &a, &b);
	fake_turn();
	fds = open_fds();
	while (sent < 100000 && p.a->queued < 10) {
		assert_int_equal(ops->msg(&a.s, &(struct cv_msg){.type = CV_MSG_SWITCH, .epoch = ++sent}), 0);
		order = order * 31 + sent;
	}
	assert_int_equal(p.a->queued, 10);
	/* one with a descriptor: it is kept for as long as it takes, not ours to keep open */
	assert_int_equal(cv_shm_send(p.a, &(struct cv_shm_pkt){.kind = CV_PKT_STREAM, .slot = a.port.slot, .msg.epoch = ++sent}, fd), 0);
	order = order * 31 + sent;
	close(fd);
	fake_turn();
	assert_int_equal(told.messages, sent);
	assert_true(told.order == order);
	assert_int_equal(told.fd_size, 4096);
	assert_int_equal(p.a->queued, 0);
	assert_int_equal(open_fds(), fds - 1);
	/* nobody reads at all: bounded */
	for (sent = 0; sent < 100000; sent++)
		if (ops->msg(&a.s, &(struct cv_msg){.type = CV_MSG_SWITCH}))
			break;
	assert_true(sent < 100000);
	assert_int_equal(p.a->queued, 1024);
	assert_int_equal(ops->msg(&a.s, &(struct cv_msg){.type = CV_MSG_SWITCH}), -EPIPE);
	/* and one that is lost ends the link: its stream would wait for ever */
	assert_true(p.a->link.up);
	fake_turn();
	assert_false(p.a->link.up);
	cv_shm_detach(&a.s);
	cv_shm_detach(&b.s);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		T(test_packet),	       T(test_packet_hostile), T(test_bad_packets_end_the_link), T(test_odd_packets),
		T(test_memfd),	       T(test_offer_accepted), T(test_offer_declined),		 T(test_offer_waits),
		T(test_slot_lives_twice), T(test_no_slot),     T(test_grow),			 T(test_grow_hostile),
		T(test_full_channel),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
