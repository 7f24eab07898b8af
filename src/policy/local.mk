# SPDX-License-Identifier: Apache-2.0
# The CLI is built from the same sources.
policy_sources = \
	src/policy/arena.c \
	src/policy/arena.h \
	src/policy/match.c \
	src/policy/match.h \
	src/policy/parse.c \
	src/policy/parse.h \
	src/policy/policy.c \
	src/policy/policy.h \
	src/policy/read.c \
	src/policy/schema.c \
	src/policy/schema.h \
	src/policy/self.c \
	src/policy/value.c \
	src/policy/value.h \
	src/policy/words.c \
	src/policy/words.h
libculvert_la_SOURCES += $(policy_sources)

# culvert.conf(5): what it says of the keys comes out of the schema.
noinst_PROGRAMS += src/policy/conf_man
src_policy_conf_man_SOURCES = \
	src/policy/conf_man.c \
	src/policy/schema.c \
	src/policy/value.c \
	src/policy/words.c \
	src/observe/log.c
nodist_man_MANS += docs/culvert.conf.5
EXTRA_DIST += docs/culvert.conf.5.in
CLEANFILES += docs/culvert.conf.5
dist_doc_DATA += conf/culvert.conf

docs/culvert.conf.5: $(top_srcdir)/docs/culvert.conf.5.in src/policy/conf_man$(EXEEXT)
	$(AM_V_GEN)$(MKDIR_P) docs && src/policy/conf_man$(EXEEXT) <$(top_srcdir)/docs/culvert.conf.5.in >$@.new && mv -f $@.new $@
