# SPDX-License-Identifier: Apache-2.0
# Unmodified servers under culvert, and handshakes that are struck at. What is not installed is skipped.
check_PROGRAMS += tests/apps/duplex tests/apps/threads
tests_apps_duplex_LDFLAGS = -pthread
tests_apps_threads_LDFLAGS = -pthread
dist_check_SCRIPTS += tests/apps/run
TESTS += tests/apps/run
EXTRA_DIST += tests/apps/lib.py tests/apps/client.py tests/apps/redis_tests.py tests/apps/memcached_tests.py \
	tests/apps/handshake_tests.py tests/apps/endurance_tests.py tests/apps/other_tests.py
