# SPDX-License-Identifier: Apache-2.0
libculvert_la_SOURCES += \
	src/preload/entry.c \
	src/preload/fd.c \
	src/preload/fd.h \
	src/preload/fdcalls.c \
	src/preload/filecalls.c \
	src/preload/pass.c \
	src/preload/proc.c \
	src/preload/real.c \
	src/preload/real.h \
	src/preload/real_table.h \
	src/preload/recvcalls.c \
	src/preload/sendcalls.c \
	src/preload/sig.c \
	src/preload/sig.h \
	src/preload/sock_life.h \
	src/preload/sockcalls.c \
	src/preload/spawn.c \
	src/preload/start.c \
	src/preload/symbols.def \
	src/preload/syscall.c \
	src/preload/wrap.h

# readiness
libculvert_la_SOURCES += \
	src/preload/epoll.c \
	src/preload/epoll.h \
	src/preload/epoll_bell.c \
	src/preload/epoll_ctl.c \
	src/preload/epoll_int.h \
	src/preload/epoll_item.c \
	src/preload/epoll_look.c \
	src/preload/epoll_move.c \
	src/preload/epoll_wait.c \
	src/preload/poll.c \
	src/preload/poll.h \
	src/preload/poll_careful.c \
	src/preload/select.c \
	src/preload/spin.c \
	src/preload/spin.h

# The fortified headers would turn calls of the wrappers into calls of their _chk forms.
libculvert_la_CFLAGS += -U_FORTIFY_SOURCE

# What tests/elf holds the built library against.
noinst_DATA += src/preload/symbols.list
CLEANFILES += src/preload/symbols.list
src/preload/symbols.list: src/preload/symbols.def
	$(AM_V_GEN)$(MKDIR_P) src/preload && \
	$(SED) -n 's/^CV_[A-Z]*(\([A-Za-z0-9_]*\)[,)].*/\1/p' $(top_srcdir)/src/preload/symbols.def | LC_ALL=C sort >$@.tmp && mv -f $@.tmp $@

# Tracked connections and their way onto a link and back.
libculvert_la_SOURCES += \
	src/preload/engine.c \
	src/preload/engine.h \
	src/preload/io.c \
	src/preload/owner.c \
	src/preload/owner.h \
	src/preload/sock.c \
	src/preload/sock.h \
	src/preload/sock_life.c \
	src/preload/upgrade.c \
	src/preload/upgrade.h
