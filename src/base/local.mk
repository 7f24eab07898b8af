# SPDX-License-Identifier: Apache-2.0
libculvert_la_SOURCES += \
	src/base/base.h \
	src/base/clock.c \
	src/base/clock.h \
	src/base/lock.c \
	src/base/lock.h \
	src/base/sys.h
