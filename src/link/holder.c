/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who holds the other end of a local TCP connection, by the kernel's word: by netlink, or where a sandbox forbids that, by /proc/net.
 *
 * Whoever answers a rendezvous can lead us as far as our fence, before its own proves anything, and the fence lies in the TCP stream: were it
 * written for a stranger, the true peer would read it. So the stranger is turned away first, by what it cannot choose.
 */
#include "holder.h"
#include "../base/sys.h"
#include <errno.h>
#include <fcntl.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>

static bool v4_mapped(const uint8_t a[16])
{
	static const uint8_t prefix[12] = {[10] = 0xff, [11] = 0xff};

	return memcmp(a, prefix, sizeof(prefix)) == 0;
}

/* The end that is asked about: its own address and its peer's. */
struct end {
	const uint8_t *own, *peer;
	uint16_t own_port, peer_port;
	bool v4;
};

static struct end end_of(const struct cv_tuple *t, bool server)
{
	struct end e = {.own = t->client, .peer = t->server, .own_port = t->client_port, .peer_port = t->server_port};

	if (server)
		e = (struct end){.own = t->server, .peer = t->client, .own_port = t->server_port, .peer_port = t->client_port};
	e.v4 = v4_mapped(e.own) && v4_mapped(e.peer);
	return e;
}

/* ---- netlink --------------------------------------------------------------------------------------------------------------------- */

static int by_netlink(const struct end *e, uint32_t *uid)
{
	struct {
		struct nlmsghdr h;
		struct inet_diag_req_v2 r;
	} ask = {
		.h = {.nlmsg_len = sizeof(ask), .nlmsg_type = SOCK_DIAG_BY_FAMILY, .nlmsg_flags = NLM_F_REQUEST},
		.r = {.sdiag_family = e->v4 ? AF_INET : AF_INET6, .sdiag_protocol = IPPROTO_TCP, .idiag_states = ~0u},
	};
	union {
		struct nlmsghdr h;
		char bytes[1024];
	} got;
	const struct inet_diag_msg *m = NLMSG_DATA(&got.h);
	size_t skip = e->v4 ? 12 : 0;
	int fd = cv_fd_new(SYS_socket, AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_SOCK_DIAG, 0);
	long n;

	if (fd < 0)
		return fd;
	ask.r.id.idiag_sport = e->own_port;
	ask.r.id.idiag_dport = e->peer_port;
	memcpy(ask.r.id.idiag_src, e->own + skip, 16 - skip);
	memcpy(ask.r.id.idiag_dst, e->peer + skip, 16 - skip);
	ask.r.id.idiag_cookie[0] = ask.r.id.idiag_cookie[1] = INET_DIAG_NOCOOKIE;
	n = cv_sys6(SYS_sendto, fd, (long)&ask, sizeof(ask), MSG_DONTWAIT | MSG_NOSIGNAL, 0, 0);
	/* Answered within the call. */
	if (n >= 0)
		n = cv_sys6(SYS_recvfrom, fd, (long)&got, sizeof(got), MSG_DONTWAIT, 0, 0);
	cv_fd_close(fd);
	if (n < 0)
		return (int)n;
	if (n < (long)(NLMSG_LENGTH(sizeof(*m))) || got.h.nlmsg_type != SOCK_DIAG_BY_FAMILY)
		return -ENOENT;
	/* It falls back to a listener: that one has no peer. And one that nobody has accepted yet is nobody's. */
	if (m->id.idiag_dport != e->peer_port || !m->idiag_inode)
		return -ENOENT;
	*uid = m->idiag_uid;
	return 0;
}

/* ---- /proc/net ------------------------------------------------------------------------------------------------------------------- */

static char *hex(char *p, uint32_t v, int digits)
{
	for (int i = digits - 1; i >= 0; i--)
		*p++ = "0123456789ABCDEF"[v >> (4 * i) & 15];
	return p;
}

static char *hex_addr(char *p, const uint8_t *a, size_t len, uint16_t port)
{
	for (size_t i = 0; i < len; i += 4) {
		uint32_t word;

		memcpy(&word, a + i, 4); /* as the kernel prints it: words of the host's order */
		p = hex(p, word, 8);
	}
	*p++ = ':';
	return hex(p, ntohs(port), 4);
}

/* "  12: 0100007F:1A2B 0100007F:C3D4 01 00000000:00000000 02:000A7214 00000000  1000        0 123456 ...": the uid is the eighth field, the inode the tenth. */
static bool line_uid(const char *line, const char *want, uint32_t *uid)
{
	const char *p = strchr(line, ':');
	uint64_t value[2] = {0, 0};

	if (!p || !p[1] || strncmp(p + 2, want, strlen(want)) != 0)
		return false;
	p++;
	for (int field = 2; field <= 10; field++) {
		while (*p == ' ')
			p++;
		if (field == 8 || field == 10)
			for (const char *d = p; *d >= '0' && *d <= '9'; d++)
				value[field == 10] = value[field == 10] * 10 + (uint64_t)(*d - '0');
		while (*p && *p != ' ')
			p++;
	}
	*uid = (uint32_t)value[0];
	return value[1] != 0;
}

static int by_table(const char *path, const char *want, uint32_t *uid)
{
	char buf[4096];
	size_t have = 0;
	int err = -ENOENT, fd = cv_fd_new(SYS_openat, AT_FDCWD, (long)path, O_RDONLY | O_CLOEXEC, 0);

	if (fd < 0)
		return fd;
	while (err) {
		long n = cv_sys3(SYS_read, fd, buf + have, sizeof(buf) - 1 - have);
		char *line = buf, *end;

		if (n <= 0)
			break;
		have += (size_t)n;
		buf[have] = '\0';
		for (; err && (end = strchr(line, '\n')); line = end + 1) {
			*end = '\0';
			if (line_uid(line, want, uid))
				err = 0;
		}
		have -= (size_t)(line - buf);
		memmove(buf, line, have);
		if (have == sizeof(buf) - 1) /* no line is that long */
			break;
	}
	cv_fd_close(fd);
	return err;
}

static int by_proc(const struct end *e, uint32_t *uid)
{
	char want[80], *p;
	int err = -ENOENT;

	if (e->v4) {
		p = hex_addr(want, e->own + 12, 4, e->own_port);
		*p++ = ' ';
		*hex_addr(p, e->peer + 12, 4, e->peer_port) = '\0';
		err = by_table("/proc/net/tcp", want, uid);
	}
	if (err) { /* or a socket of IPv6 that speaks IPv4 */
		p = hex_addr(want, e->own, 16, e->own_port);
		*p++ = ' ';
		*hex_addr(p, e->peer, 16, e->peer_port) = '\0';
		err = by_table("/proc/net/tcp6", want, uid);
	}
	return err;
}

int cv_holder_uid(const struct cv_tuple *t, bool server, uint32_t *uid)
{
	struct end e = end_of(t, server);

	return by_netlink(&e, uid) && by_proc(&e, uid) ? -ENOENT : 0;
}

bool cv_holder_is(const struct cv_tuple *t, bool server, uint32_t uid)
{
	uint32_t holder;

	/* root could be anyone */
	return uid == 0 || (cv_holder_uid(t, server, &holder) == 0 && holder == uid);
}
