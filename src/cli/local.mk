# SPDX-License-Identifier: Apache-2.0
# A plain libc program. The library's own sources, built again for it: nothing in there is interposed.
bin_PROGRAMS += culvert
culvert_SOURCES = \
	src/base/base.h \
	src/base/sys.h \
	src/cli/check.c \
	src/cli/cli.h \
	src/cli/elf.c \
	src/cli/elf.h \
	src/cli/format.c \
	src/cli/format.h \
	src/cli/launch.c \
	src/cli/launch.h \
	src/cli/main.c \
	src/cli/options.c \
	src/cli/proc.c \
	src/cli/proc.h \
	src/cli/reasons.c \
	src/cli/run.c \
	src/cli/segment.c \
	src/cli/segment.h \
	src/cli/segments.c \
	src/cli/ss.c \
	src/cli/stat.c \
	src/observe/log.c \
	src/observe/log.h \
	src/observe/reason.c \
	src/observe/reason.h \
	src/observe/stats.h \
	$(policy_sources)
culvert_CPPFLAGS = $(AM_CPPFLAGS) -DCV_LIBDIR='"$(libdir)"'
culvert_LDADD = $(INIH_LIBS)

dist_man_MANS += docs/culvert.1 docs/culvert-check.1 docs/culvert-reasons.1 docs/culvert-run.1 docs/culvert-ss.1 docs/culvert-stat.1
