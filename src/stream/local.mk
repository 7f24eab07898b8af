# SPDX-License-Identifier: Apache-2.0
stream_sources = \
	src/stream/ending.c \
	src/stream/engine.h \
	src/stream/fault.h \
	src/stream/iov.h \
	src/stream/resume.c \
	src/stream/ring.c \
	src/stream/ring.h \
	src/stream/spill.c \
	src/stream/spill.h \
	src/stream/stream.c \
	src/stream/stream.h \
	src/stream/switch.c \
	src/stream/wire.h
libculvert_la_SOURCES += $(stream_sources)
# SHA-256, statically: the library needs libc and nothing else when it is loaded.
libculvert_la_LDFLAGS += -Wl,-l:libmd.a
