/* SPDX-License-Identifier: Apache-2.0 */
#include "fake.h"
#include "observe/stats.h"
#include <fcntl.h>

struct cv_settings fake_settings = {.spin = 0};
_Atomic unsigned fake_bells_open, fake_wakes;

static struct fake fakes[FAKES];
static struct cv_port ports[FAKES];
static unsigned used;

/* What the rest of the library has. */
__thread uint32_t cv_signals_here;
_Atomic int cv_vforks;
_Atomic uint32_t cv_fork_seq;
static struct {
	struct cv_stats_segment seg;
	struct cv_row rows[1];
} stats_memory;
struct cv_stats_segment *cv_stats = &stats_memory.seg;

bool cv_borrowed_slow(void)
{
	return false;
}

void cv_fd_stale(int fd, uintptr_t entry)
{
	(void)entry;
	cv_fd_set(fd, 0);
}

int cv_agent_post(struct cv_work *w)
{
	(void)w;
	return 0;
}

void cv_sock_left_last(struct cv_sock *s)
{
	(void)s;
}

/* ---- the link -------------------------------------------------------------------------------------------------------------------- */

struct fake_bell {
	struct cv_bell b;
	_Atomic bool pending, armed, open;
	_Atomic uint64_t board[FAKES / 64];
};

static struct fake_bell bells[CV_LINK_BELLS];

static struct fake_bell *bell_of(const struct cv_bell *b)
{
	return (struct fake_bell *)b;
}

static struct cv_link link_;

static struct cv_bell *bell_open(struct cv_link *l, void *owner)
{
	for (unsigned i = 1; i < CV_LINK_BELLS; i++) {
		struct fake_bell *b = &bells[i];

		if (b->open)
			continue;
		b->b = (struct cv_bell){.link = l, .index = i, .owner = owner, .fd = cv_fd_high((int)cv_sys2(SYS_eventfd2, 0, O_NONBLOCK))};
		b->pending = false;
		memset(b->board, 0, sizeof(b->board));
		b->armed = true;
		b->open = true;
		fake_bells_open++;
		return &b->b;
	}
	return NULL;
}

static void bell_close(struct cv_bell *b)
{
	assert_true(bell_of(b)->open);
	bell_of(b)->open = false;
	fake_bells_open--;
	cv_fd_close(b->fd);
}

static bool bell_pending(const struct cv_bell *b)
{
	return bell_of(b)->pending;
}

static unsigned bell_drain(struct cv_bell *b, cv_bell_fn fn, void *arg)
{
	unsigned n = 0;

	bell_of(b)->pending = false;
	for (unsigned w = 0; w < FAKES / 64; w++) {
		uint64_t bits = atomic_exchange(&bell_of(b)->board[w], 0);

		for (; bits; bits &= bits - 1, n++)
			fn(arg, &fakes[w * 64 + (unsigned)__builtin_ctzll(bits)].s.st);
	}
	return n;
}

static void bell_arm(struct cv_bell *b)
{
	atomic_exchange(&bell_of(b)->armed, true);
}

static void bell_disarm(struct cv_bell *b)
{
	bell_of(b)->armed = false;
}

static void want(struct cv_stream *st, unsigned bell, uint32_t set, uint32_t clear)
{
	struct fake *f = (struct fake *)cv_sock_of(st);

	f->bell = bell;
	f->want &= ~clear;
	f->want |= set;
}

static struct cv_wait wait_begin(struct cv_stream *st, bool tx)
{
	struct fake *f = (struct fake *)cv_sock_of(st);
	struct cv_wait w = {.word = &f->word, .value = f->word};

	atomic_fetch_or(&f->want, tx ? CV_WANT_TX_FUTEX : CV_WANT_RX_FUTEX);
	return w;
}

static int wait_word(const struct cv_wait *w, uint64_t ns)
{
	struct timespec ts = {.tv_sec = (time_t)(ns / 1000000000u), .tv_nsec = (long)(ns % 1000000000u)};

	return (int)cv_sys4(SYS_futex, w->word, FUTEX_WAIT, w->value, &ts);
}

static void wake(struct fake *f)
{
	f->word++;
	cv_sys3(SYS_futex, &f->word, FUTEX_WAKE, INT32_MAX);
}

static const struct cv_link_ops fake_ops = {
	.name = "fake",
	.bell_open = bell_open,
	.bell_close = bell_close,
	.bell_pending = bell_pending,
	.bell_drain = bell_drain,
	.bell_arm = bell_arm,
	.bell_disarm = bell_disarm,
	.want = want,
	.wait_begin = wait_begin,
	.wait = wait_word,
};
static struct cv_link link_ = {.ops = &fake_ops, .up = true};

void fake_ring(struct fake *f, uint32_t bits, bool tx)
{
	uint32_t need = tx ? CV_WANT_TX_BELL : CV_WANT_RX_BELL;
	unsigned i = (unsigned)(f - fakes);
	uint64_t one = 1;

	atomic_store(&f->bits, bits);
	if (f->want & (CV_WANT_RX_FUTEX | CV_WANT_TX_FUTEX)) {
		f->want &= ~(uint32_t)(CV_WANT_RX_FUTEX | CV_WANT_TX_FUTEX);
		wake(f);
	}
	if (!(f->want & need))
		return;
	if (tx)
		f->want &= ~need;
	if (f->bell == 0) { /* the agent's: it forwards */
		cv_sock_changed(&f->s);
		return;
	}
	struct fake_bell *b = &bells[f->bell];

	atomic_fetch_or(&b->board[i / 64], 1ull << (i % 64));
	b->pending = true;
	if (atomic_exchange(&b->armed, false)) {
		fake_wakes++;
		cv_sys3(SYS_write, b->b.fd, &one, sizeof(one));
	}
}

/* ---- sockets --------------------------------------------------------------------------------------------------------------------- */

struct fake *fake_new(void)
{
	struct fake *f = &fakes[used];
	int sv[2];

	assert_true(used < FAKES);
	assert_int_equal(cv_real.socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, sv), 0);
	memset(f, 0, sizeof(*f));
	f->s.fd = sv[0];
	f->peer = sv[1];
	f->s.refs = 1;
	f->s.set = &fake_settings;
	f->s.link_ops = &fake_ops;
	f->s.st.port = &ports[used++];
	f->s.st.port->link = NULL;
	assert_int_equal(cv_fd_set(sv[0], (uintptr_t)&f->s), 0);
	return f;
}

void fake_link(struct fake *f)
{
	cv_lock(&f->s.tx);
	cv_lock(&f->s.rx);
	f->s.st.port->link = &link_;
	f->want = CV_WANT_RX_BELL;
	f->bell = 0;
	atomic_store(&f->s.mode, CV_LINKED);
	cv_epoll_moved(&f->s);
	cv_sock_changed(&f->s);
	cv_unlock(&f->s.rx);
	cv_unlock(&f->s.tx);
}

void fake_unlink(struct fake *f)
{
	cv_lock(&f->s.tx);
	cv_lock(&f->s.rx);
	atomic_store(&f->s.mode, CV_CAREFUL);
	cv_epoll_moved(&f->s);
	f->s.st.port->link = NULL;
	cv_sock_changed(&f->s);
	f->bits = 0;
	atomic_store(&f->s.mode, CV_PLAIN);
	cv_unlock(&f->s.rx);
	cv_unlock(&f->s.tx);
}

void fake_close(struct fake *f)
{
	cv_fd_set(f->s.fd, 0);
	f->s.refs = 0;
	cv_epoll_sock_closed(&f->s);
	cv_sys1(SYS_close, f->s.fd);
	close(f->peer);
	f->s.fd = f->peer = -1;
}

void fake_reset(void)
{
	for (unsigned i = 0; i < used; i++) {
		if (fakes[i].s.fd >= 0)
			fake_close(&fakes[i]);
		assert_null(fakes[i].s.items);
		assert_null(fakes[i].s.waiters);
	}
	used = 0;
	memset(&fake_settings, 0, sizeof(fake_settings));
}

uint32_t cv_sock_poll(struct cv_sock *s, uint32_t *twin)
{
	struct fake *f = (struct fake *)s;

	*twin = 0;
	if (s->mode == CV_PLAIN) {
		*twin = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLPRI;
		return 0;
	}
	if (s->mode == CV_CAREFUL)
		*twin = f->twin;
	return f->bits;
}

int cv_sock_fall_back(struct cv_sock *s, enum cv_leave how, enum cv_reason why, bool stay_out)
{
	struct fake *f = (struct fake *)s;

	(void)how;
	(void)why;
	if (s->mode == CV_LINKED)
		fake_unlink(f);
	f->excluded = stay_out;
	return 0;
}

void cv_sock_changed(struct cv_sock *s)
{
	uint64_t one = 1;

	cv_lock(&s->wait_lock);
	for (struct cv_waiter *w = s->waiters; w; w = w->next)
		cv_sys3(SYS_write, w->wake_fd, &one, sizeof(one));
	cv_unlock(&s->wait_lock);
	wake((struct fake *)s);
	cv_epoll_kick(s);
}

void cv_sock_add_waiter(struct cv_sock *s, struct cv_waiter *w)
{
	cv_lock(&s->wait_lock);
	w->next = s->waiters;
	s->waiters = w;
	cv_unlock(&s->wait_lock);
}

void cv_sock_del_waiter(struct cv_sock *s, struct cv_waiter *w)
{
	cv_lock(&s->wait_lock);
	for (struct cv_waiter **p = &s->waiters; *p; p = &(*p)->next) {
		if (*p == w) {
			*p = w->next;
			break;
		}
	}
	cv_unlock(&s->wait_lock);
}

int cv_thread_wake_fd(void)
{
	static __thread int fd;

	if (!fd)
		fd = (int)cv_sys2(SYS_eventfd2, 0, O_NONBLOCK);
	return fd;
}
