/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "stream/ring.h"
#include <errno.h>
#include <stdlib.h>

#define SIZE 64u

/* Guards on both sides of each generation: a byte out of bounds shows. */
static uint8_t mem[CV_RING_GENS][3 * 256];
static struct cv_ring_w line_w;
static struct cv_ring_r line_r;
static struct cv_ring w, r;

static uint8_t *gen(unsigned i)
{
	return mem[i] + 256;
}

static int setup(void **state)
{
	(void)state;
	memset(mem, 0xa5, sizeof(mem));
	memset(&line_w, 0, sizeof(line_w));
	memset(&line_r, 0, sizeof(line_r));
	memset(&w, 0, sizeof(w));
	memset(&r, 0, sizeof(r));
	w.w = r.w = &line_w;
	w.r = r.r = &line_r;
	w.gen[0] = r.gen[0] = (struct cv_ring_gen){.base = gen(0), .size = SIZE};
	w.gens = r.gens = 1;
	return 0;
}

static void assert_guards(unsigned i, size_t size)
{
	for (size_t k = 0; k < 256; k++) {
		assert_int_equal(mem[i][k], 0xa5);
		assert_int_equal(mem[i][256 + size + k], 0xa5);
	}
}

static int64_t put(const void *p, size_t n)
{
	struct iovec v = {.iov_base = (void *)(uintptr_t)p, .iov_len = n};
	int64_t got = cv_ring_put(&w, &v, 1, 0, n);

	line_w.tail = w.tail;
	return got;
}

static int64_t get(void *p, size_t n, bool peek)
{
	struct iovec v = {.iov_base = p, .iov_len = n};
	int64_t got = cv_ring_get(&r, &v, 1, n, peek);

	if (got > 0 && !peek)
		line_r.head = r.head;
	return got;
}

static uint8_t byte(uint64_t off)
{
	return (uint8_t)(off * 131 + (off >> 8) * 17 + 3);
}

static void fill(uint8_t *p, uint64_t off, size_t n)
{
	for (size_t i = 0; i < n; i++)
		p[i] = byte(off + i);
}

static void assert_bytes(const uint8_t *p, uint64_t off, size_t n)
{
	for (size_t i = 0; i < n; i++)
		assert_int_equal(p[i], byte(off + i));
}

/* Every chunk size at every position of the ring: bytes, wrap, and not one more than fits. */
static void wraps_at_every_position(void **state)
{
	uint8_t in[SIZE], out[SIZE];
	uint64_t off = 0;

	(void)state;
	for (unsigned pos = 0; pos < SIZE; pos++)
		for (unsigned n = 1; n <= SIZE; n++) {
			fill(in, off, n);
			assert_int_equal(put(in, n), n);
			assert_int_equal(cv_ring_space(&w, SIZE), SIZE - n);
			assert_int_equal(cv_ring_readable(&r), n);
			assert_int_equal(get(out, SIZE, true), n);
			assert_bytes(out, off, n);
			assert_int_equal(get(out, SIZE, false), n);
			assert_bytes(out, off, n);
			off += n;
			if (n == SIZE) { /* one more, to begin the next round elsewhere */
				assert_int_equal(put(in, 1), 1);
				assert_int_equal(get(out, 1, false), 1);
				off++;
			}
		}
	assert_guards(0, SIZE);
}

static void full_takes_no_more(void **state)
{
	uint8_t in[SIZE + 1] = {0}, out[SIZE];

	(void)state;
	assert_int_equal(put(in, SIZE + 1), SIZE);
	assert_int_equal(put(in, 1), 0);
	assert_int_equal(get(out, 3, false), 3);
	assert_int_equal(put(in, 9), 3);
	assert_guards(0, SIZE);
}

static void iovec_pieces_and_skip(void **state)
{
	uint8_t a[5], b[7], c[11], out[23], x[4], y[40];
	struct iovec in[] = {{a, 5}, {NULL, 0}, {b, 7}, {c, 11}}, to[] = {{x, 4}, {y, 40}};

	(void)state;
	fill(a, 0, 5);
	fill(b, 5, 7);
	fill(c, 12, 11);
	assert_int_equal(cv_ring_put(&w, in, 4, 3, 20), 20);
	line_w.tail = w.tail;
	assert_int_equal(cv_ring_get_at(&r, to, 2, 2, 100, true), 20);
	assert_bytes(x + 2, 3, 2);
	assert_bytes(y, 5, 18);
	assert_int_equal(cv_ring_get(&r, to, 2, 9, false), 9);
	assert_bytes(x, 3, 4);
	assert_bytes(y, 7, 5);
	assert_int_equal(get(out, 23, false), 11);
	assert_bytes(out, 12, 11);
}

/* The hot paths do what the general ones do. */
static void flat_paths_agree(void **state)
{
	uint8_t in[SIZE], out[SIZE];
	uint64_t off = 0, held;

	(void)state;
	for (unsigned n = 1; n < 500; n++) {
		size_t len = 1 + n % SIZE;

		cv_ring_space(&w, len);
		assert_true(cv_ring_room(&w) >= len);
		fill(in, off, len);
		cv_ring_put_flat(&w, in, len);
		line_w.tail = w.tail;
		assert_int_equal(cv_ring_get_flat(&r, out, len, &held), len);
		assert_int_equal(held, len);
		assert_bytes(out, off, len);
		line_r.head = r.head;
		off += len;
	}
	assert_int_equal(cv_ring_get_flat(&r, out, 1, &held), 0);
	assert_guards(0, SIZE);
}

static void grows_through_all_generations(void **state)
{
	static const unsigned sizes[] = {64, 128, 128, 256};
	uint8_t in[600], out[600];
	uint64_t off = 0, starts[CV_RING_GENS] = {0};
	const uint8_t *p;
	unsigned n = 0;

	(void)state;
	fill(in, 0, sizeof(in));
	assert_int_equal(cv_ring_open_gen(&w, gen(1), 128), -EINVAL); /* not at offset 0: that means "not opened" */
	off = (uint64_t)put(in, 50);
	for (unsigned i = 1; i < CV_RING_GENS; i++) {
		off += (uint64_t)put(in + off, 600 - off < sizes[i - 1] - 8 ? 600 - off : sizes[i - 1] - 8);
		assert_int_equal(cv_ring_open_gen(&w, gen(i), sizes[i]), 0);
		starts[i] = off;
	}
	off += (uint64_t)put(in + off, 600 - off);
	assert_int_equal(cv_ring_open_gen(&w, gen(0), 64), -ENOSPC);
	assert_true(off > 300);
	/* The writer can read all of it back. */
	for (uint64_t at = 0; at < off; at += n) {
		n = (unsigned)cv_ring_peek_back(&w, at, &p);
		assert_true(n > 0);
		assert_bytes(p, at, n);
	}
	assert_int_equal(cv_ring_peek_back(&w, off, &p), 0);
	/* The reader stops where a generation is not mapped. */
	for (unsigned i = 1; i < CV_RING_GENS; i++) {
		assert_int_equal(cv_ring_readable(&r), starts[i] - r.head);
		if (i & 1)
			assert_int_equal(get(out, 7, false), 7);
		assert_int_equal(cv_ring_add_gen(&r, i, gen(i), sizes[i], starts[i]), 0);
	}
	assert_int_equal(cv_ring_readable(&r), off - r.head);
	n = (unsigned)r.head;
	assert_int_equal(get(out, sizeof(out), true), off - n);
	assert_bytes(out, n, off - n);
	assert_int_equal(get(out, sizeof(out), false), off - n);
	assert_bytes(out, n, off - n);
	assert_int_equal(cv_ring_space(&w, 256), 256);
	for (unsigned i = 0; i < CV_RING_GENS; i++)
		assert_guards(i, sizes[i]);
}

static void growth_at_a_boundary_that_was_reached(void **state)
{
	uint8_t in[64], out[64];
	uint64_t held;

	(void)state;
	fill(in, 0, 64);
	put(in, 40);
	assert_int_equal(get(out, 40, false), 40);
	assert_int_equal(cv_ring_open_gen(&w, gen(1), 128), 0);
	fill(in, 40, 24);
	put(in, 24);
	assert_int_equal(cv_ring_get_flat(&r, out, 64, &held), 0);
	assert_int_equal(get(out, 64, false), 0);
	assert_int_equal(cv_ring_add_gen(&r, 1, gen(1), 128, 40), 0);
	assert_int_equal(get(out, 64, false), 24);
	assert_bytes(out, 40, 24);
	put(in, 1);
	assert_int_equal(cv_ring_get_flat(&r, out, 64, &held), 1);
}

/* The announcement may overtake the line. */
static void announcement_before_the_line(void **state)
{
	uint8_t in[64] = {0}, out[64];

	(void)state;
	put(in, 30);
	assert_int_equal(cv_ring_add_gen(&r, 1, gen(1), 128, 30), 0);
	assert_int_equal(cv_ring_readable(&r), 30);
	assert_int_equal(get(out, 64, false), 30);
	assert_int_equal(get(out, 64, false), 0);
}

/* ---- a hostile peer ------------------------------------------------------------------------------------------------------------ */

static void writer_rejects_bad_credit(void **state)
{
	static const uint64_t bad[] = {61, 64, 1000, UINT64_MAX, UINT64_MAX / 2, 9};
	uint8_t in[SIZE] = {0};

	(void)state;
	put(in, SIZE - 4);
	line_r.head = 10;
	assert_int_equal(cv_ring_space(&w, SIZE), 14);
	for (size_t i = 0; i < CV_ARRAY_LEN(bad); i++) {
		line_r.head = bad[i];
		assert_int_equal(cv_ring_space(&w, SIZE), -EPROTO);
		assert_int_equal(put(in, SIZE), -EPROTO);
		assert_true(cv_ring_room_hint(&w) <= SIZE);
	}
	assert_guards(0, SIZE);
}

static void reader_rejects_bad_tail(void **state)
{
	static const uint64_t bad[] = {19, 0, 9, 10 + SIZE + 1, 1000, UINT64_MAX, UINT64_MAX - 5, 1ull << 63};
	uint8_t in[SIZE] = {0}, out[4 * SIZE];
	uint64_t held;

	(void)state;
	put(in, 20);
	assert_int_equal(get(out, 10, false), 10);
	for (size_t i = 0; i < CV_ARRAY_LEN(bad); i++) {
		line_w.tail = bad[i];
		assert_int_equal(cv_ring_readable(&r), -EPROTO);
		assert_int_equal(get(out, sizeof(out), false), -EPROTO);
		assert_int_equal(get(out, sizeof(out), true), -EPROTO);
		assert_int_equal(cv_ring_get_flat(&r, out, sizeof(out), &held), 0);
		assert_int_equal(cv_ring_readable_hint(&r), 0);
		assert_int_equal(r.head, 10);
	}
}

static void reader_rejects_bad_starts(void **state)
{
	uint8_t in[SIZE] = {0}, out[4 * SIZE];

	(void)state;
	put(in, 20);
	assert_int_equal(get(out, 10, false), 10);
	line_w.starts[0] = 5; /* before what was read */
	assert_int_equal(cv_ring_readable(&r), -EPROTO);
	line_w.starts[0] = UINT64_MAX; /* never reached: harmless */
	assert_int_equal(cv_ring_readable(&r), 10);
	line_w.starts[0] = 15;
	assert_int_equal(cv_ring_readable(&r), 5);
	assert_int_equal(cv_ring_add_gen(&r, 1, gen(1), 128, 16), 0);
	assert_int_equal(cv_ring_readable(&r), -EPROTO); /* line and message differ */
	line_w.starts[0] = 16;
	line_w.tail = 16 + 129; /* more than the generation holds */
	assert_int_equal(cv_ring_readable(&r), -EPROTO);
	line_w.tail = 16 + 128;
	assert_int_equal(cv_ring_readable(&r), 6 + 128);
}

static void reader_rejects_bad_generations(void **state)
{
	uint8_t in[SIZE] = {0}, out[SIZE];

	(void)state;
	put(in, 20);
	assert_int_equal(get(out, 10, false), 10);
	assert_int_equal(cv_ring_add_gen(&r, 0, gen(1), 128, 20), -EPROTO);
	assert_int_equal(cv_ring_add_gen(&r, 2, gen(1), 128, 20), -EPROTO);
	assert_int_equal(cv_ring_add_gen(&r, 4, gen(1), 128, 20), -EPROTO);
	assert_int_equal(cv_ring_add_gen(&r, 1, NULL, 128, 20), -EPROTO);
	assert_int_equal(cv_ring_add_gen(&r, 1, gen(1), 0, 20), -EPROTO);
	assert_int_equal(cv_ring_add_gen(&r, 1, gen(1), 100, 20), -EPROTO);
	assert_int_equal(cv_ring_add_gen(&r, 1, gen(1), 128, 0), -EPROTO);
	assert_int_equal(cv_ring_add_gen(&r, 1, gen(1), 128, 9), -EPROTO);
	assert_int_equal(cv_ring_add_gen(&r, 1, gen(1), 128, 20), 0);
	assert_int_equal(cv_ring_add_gen(&r, 2, gen(2), 128, 19), -EPROTO);
}

/* Random lines, always: never a byte out of bounds (the guards, and ASan where it is on), never more than the generations hold. */
static void random_lines_stay_in_bounds(void **state)
{
	static const unsigned sizes[] = {64, 128, 128, 256};
	uint8_t out[1024], in[1024] = {0};
	uint64_t held;

	srand(20240607);
	for (int round = 0; round < 200000; round++) {
		uint64_t base = (uint64_t)(rand() % 300);
		int64_t n;

		if (round % 50 == 0) {
			setup(state);
			for (unsigned i = 1; i < CV_RING_GENS; i++) {
				uint64_t start = r.gen[i - 1].start + 1 + (uint64_t)rand() % 60;

				if (rand() % 2 && cv_ring_add_gen(&r, i, gen(i), sizes[i], start) == 0)
					line_w.starts[i - 1] = start;
			}
			put(in, (size_t)rand() % SIZE);
		}
		line_w.tail = rand() % 4 ? base : (uint64_t)rand() << (rand() % 34);
		if (rand() % 16 == 0)
			line_w.starts[rand() % 3] = rand() % 2 ? base : (uint64_t)rand() << (rand() % 34);
		line_r.head = rand() % 2 ? w.head + (uint64_t)rand() % 70 : (uint64_t)rand() << (rand() % 34);
		n = rand() % 2 ? get(out, 1 + (size_t)rand() % sizeof(out), rand() % 2) : cv_ring_readable(&r);
		assert_true(n <= 64 + 128 + 128 + 256);
		if (rand() % 2)
			assert_true(cv_ring_get_flat(&r, out, sizeof(out), &held) <= 256);
		assert_true(cv_ring_readable_hint(&r) <= 64 + 128 + 128 + 256);
		assert_true(cv_ring_room_hint(&w) <= SIZE);
		n = cv_ring_space(&w, SIZE);
		assert_true(n <= (int64_t)SIZE);
		if (n > 0)
			cv_ring_put_flat(&w, in, (uint64_t)n);
	}
	for (unsigned i = 0; i < CV_RING_GENS; i++)
		assert_guards(i, sizes[i]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(wraps_at_every_position, setup),
		cmocka_unit_test_setup(full_takes_no_more, setup),
		cmocka_unit_test_setup(iovec_pieces_and_skip, setup),
		cmocka_unit_test_setup(flat_paths_agree, setup),
		cmocka_unit_test_setup(grows_through_all_generations, setup),
		cmocka_unit_test_setup(growth_at_a_boundary_that_was_reached, setup),
		cmocka_unit_test_setup(announcement_before_the_line, setup),
		cmocka_unit_test_setup(writer_rejects_bad_credit, setup),
		cmocka_unit_test_setup(reader_rejects_bad_tail, setup),
		cmocka_unit_test_setup(reader_rejects_bad_starts, setup),
		cmocka_unit_test_setup(reader_rejects_bad_generations, setup),
		cmocka_unit_test_setup(random_lines_stay_in_bounds, setup),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
