# SPDX-License-Identifier: Apache-2.0
#
# Benchmarks: bench/compare, bench/cost, bench/idle (drivers, Python 3) and the load programs that they run. The programs are plain socket programs;
# they are built with the rest and never installed.

noinst_PROGRAMS += bench/pingpong bench/stream bench/connect bench/idlers bench/floor

bench_pingpong_SOURCES = bench/pingpong.c bench/common.c bench/common.h
bench_pingpong_LDADD = -lpthread
bench_stream_SOURCES = bench/stream.c bench/common.c bench/common.h
bench_stream_LDADD = -lpthread
bench_connect_SOURCES = bench/connect.c bench/common.c bench/common.h
bench_connect_LDADD = -lpthread
bench_idlers_SOURCES = bench/idlers.c bench/common.c bench/common.h
bench_idlers_LDADD = -lpthread
bench_floor_SOURCES = bench/floor.c bench/common.c bench/common.h
bench_floor_LDADD = -lpthread

dist_noinst_SCRIPTS += bench/compare bench/cost bench/idle
EXTRA_DIST += \
	bench/README.md \
	bench/benchlib/__init__.py \
	bench/benchlib/apps.py \
	bench/benchlib/memcached.py \
	bench/benchlib/proc.py \
	bench/benchlib/redis.py \
	bench/benchlib/report.py \
	bench/benchlib/sides.py \
	bench/benchlib/svg.py
