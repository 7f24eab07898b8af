# SPDX-License-Identifier: Apache-2.0
libculvert_la_SOURCES += \
	src/observe/log.c \
	src/observe/log.h \
	src/observe/reason.c \
	src/observe/reason.h \
	src/observe/stats.c \
	src/observe/stats.h \
	src/observe/stats_file.c \
	src/observe/stats_file.h
