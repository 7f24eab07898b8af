/* SPDX-License-Identifier: Apache-2.0 */
#include "log.h"
#include "../base/sys.h"
#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <string.h>
#include <sys/socket.h>

enum cv_log_level cv_log_level = CV_LOG_WARN;

static _Atomic int log_fd = -1;

struct out {
	char *buf;
	size_t size, len; /* len counts what fits, without the terminator */
};

static void put_char(struct out *o, char c)
{
	if (o->len + 1 < o->size)
		o->buf[o->len++] = c;
}

/* A field of at least width characters; negative width: flush left. */
static void put_field(struct out *o, const char *s, size_t len, int width, char fill)
{
	size_t room = (size_t)(width < 0 ? -width : width);
	size_t spare = room > len ? room - len : 0;

	if (width > 0)
		for (; spare; spare--)
			put_char(o, fill);
	for (size_t i = 0; i < len; i++)
		put_char(o, s[i]);
	for (; spare; spare--)
		put_char(o, ' ');
}

static void put_number(struct out *o, unsigned long long v, unsigned base, bool negative, int width, char fill)
{
	char digits[24];
	size_t at = sizeof(digits);

	do {
		digits[--at] = "0123456789abcdef"[v % base];
		v /= base;
	} while (v);
	if (negative && fill == '0') {
		put_char(o, '-');
		width = width > 0 ? width - 1 : width;
	} else if (negative) {
		digits[--at] = '-';
	}
	put_field(o, digits + at, sizeof(digits) - at, width, fill);
}

enum length { INT, LONG, LONG_LONG };

/* All of long, long long, size_t are 64 bits wide on what we support; int must be told apart. */
static unsigned long long arg_unsigned(va_list *ap, enum length length)
{
	return length == INT ? va_arg(*ap, unsigned) : va_arg(*ap, unsigned long long);
}

static long long arg_signed(va_list *ap, enum length length)
{
	return length == INT ? va_arg(*ap, int) : va_arg(*ap, long long);
}

struct spec {
	bool left;
	char fill;
	int width, precision;
	enum length length;
};

/* Parses what stands between % and the conversion letter; returns where the letter stands. */
static const char *parse_spec(const char *f, struct spec *s, va_list *ap)
{
	*s = (struct spec){ .fill = ' ', .precision = -1 };
	for (; *f == '0' || *f == '-'; f++) {
		if (*f == '-')
			s->left = true;
		else
			s->fill = '0';
	}
	for (; *f >= '0' && *f <= '9'; f++)
		s->width = s->width < 1000 ? s->width * 10 + (*f - '0') : s->width;
	if (*f == '.' && f[1] == '*') {
		s->precision = va_arg(*ap, int);
		f += 2;
	} else if (*f == '.') {
		s->precision = 0;
		for (f++; *f >= '0' && *f <= '9'; f++)
			s->precision = s->precision < 100000 ? s->precision * 10 + (*f - '0') : s->precision;
	}
	for (; *f == 'l' || *f == 'z'; f++)
		s->length = s->length == INT ? LONG : LONG_LONG;
	if (s->left) {
		s->width = -s->width;
		s->fill = ' ';
	}
	return f;
}

static bool put_conversion(struct out *o, char c, const struct spec *s, va_list *ap)
{
	long long v;
	const char *str;

	switch (c) {
	case 'd':
	case 'i':
		v = arg_signed(ap, s->length);
		put_number(o, v < 0 ? 0 - (unsigned long long)v : (unsigned long long)v, 10, v < 0, s->width, s->fill);
		return true;
	case 'u':
		put_number(o, arg_unsigned(ap, s->length), 10, false, s->width, s->fill);
		return true;
	case 'x':
		put_number(o, arg_unsigned(ap, s->length), 16, false, s->width, s->fill);
		return true;
	case 'p':
		put_char(o, '0');
		put_char(o, 'x');
		put_number(o, (uintptr_t)va_arg(*ap, void *), 16, false, 0, ' ');
		return true;
	case 'c':
		put_char(o, (char)va_arg(*ap, int));
		return true;
	case 's':
		str = va_arg(*ap, const char *);
		str = str ? str : "(null)";
		put_field(o, str, strnlen(str, s->precision < 0 ? SIZE_MAX / 2 : (size_t)s->precision), s->width, ' ');
		return true;
	case '%':
		put_char(o, '%');
		return true;
	default:
		return false;
	}
}

static size_t vformat(char *buf, size_t size, const char *fmt, va_list ap)
{
	struct out o = { buf, size, 0 };
	va_list args;

	if (size == 0)
		return 0;
	va_copy(args, ap);
	while (*fmt) {
		struct spec spec;
		const char *f = fmt;

		if (*f != '%') {
			put_char(&o, *fmt++);
			continue;
		}
		f = parse_spec(f + 1, &spec, &args);
		if (!put_conversion(&o, *f, &spec, &args)) {
			/* The argument's size is unknown: whatever follows would be read from the wrong place. Show the rest as it stands. */
			for (; *fmt; fmt++)
				put_char(&o, *fmt);
			break;
		}
		fmt = f + 1;
	}
	va_end(args);
	buf[o.len] = '\0';
	return o.len;
}

size_t cv_format(char *buf, size_t size, const char *fmt, ...)
{
	va_list ap;
	size_t n;

	va_start(ap, fmt);
	n = vformat(buf, size, fmt, ap);
	va_end(ap);
	return n;
}

void cv_log_to(int fd)
{
	atomic_store_explicit(&log_fd, fd, memory_order_relaxed);
}

/*
 * stderr may be the connection itself (inetd, sshd), or a daemon closed it and the number is now an accepted socket: a line there would be bytes
 * that the application never sent.
 */
static bool is_internet_socket(int fd)
{
	int domain = 0;
	uint32_t len = sizeof(domain);

	if (cv_sys5(SYS_getsockopt, fd, SOL_SOCKET, SO_DOMAIN, &domain, &len) < 0)
		return false;
	return domain == AF_INET || domain == AF_INET6;
}

/*
 * One write. A reader of the log that has gone must not end the program with a SIGPIPE that it did not cause: block the signal, and take back the one
 * that our write raised, unless one was pending already (then they are one and the program's).
 */
static void write_line(int fd, const char *line, size_t len)
{
	const uint64_t pipe_bit = 1ull << (SIGPIPE - 1);
	const struct {
		long sec, nsec;
	} now = { 0, 0 };
	uint64_t old = 0, pending = 0;
	long ret;

	cv_sys4(SYS_rt_sigprocmask, SIG_BLOCK, &pipe_bit, &old, sizeof(old));
	cv_sys2(SYS_rt_sigpending, &pending, sizeof(pending));
	do {
		ret = cv_sys3(SYS_write, fd, line, len);
	} while (ret == -EINTR);
	if (ret == -EPIPE && !(pending & pipe_bit))
		cv_sys4(SYS_rt_sigtimedwait, &pipe_bit, 0, &now, sizeof(pipe_bit));
	cv_sys4(SYS_rt_sigprocmask, SIG_SETMASK, &old, 0, sizeof(old));
}

CV_COLD void cv_log_write(enum cv_log_level level, const char *fmt, ...)
{
	static const char *const names[] = { "none", "error", "warn", "info", "debug" };
	char line[1024];
	int fd = atomic_load_explicit(&log_fd, memory_order_relaxed);
	size_t head, n;
	va_list ap;

	if (fd < 0 && is_internet_socket(2))
		return;
	head = cv_format(line, sizeof(line), "culvert[%d]: %s: ", (int)cv_sys0(SYS_getpid),
			 (unsigned)level < CV_ARRAY_LEN(names) ? names[level] : "?");
	va_start(ap, fmt);
	n = head + vformat(line + head, sizeof(line) - head - 1, fmt, ap);
	va_end(ap);
	/* Text may hold what a peer or a file said: one message stays one line. */
	for (size_t i = head; i < n; i++)
		if ((unsigned char)line[i] < 0x20 || line[i] == 0x7f)
			line[i] = '?';
	line[n++] = '\n';
	write_line(fd < 0 ? 2 : fd, line, n);
}
