# SPDX-License-Identifier: Apache-2.0
# Unmodified Redis and Memcached under culvert. What is not installed is skipped.
dist_check_SCRIPTS += tests/apps/run
TESTS += tests/apps/run
EXTRA_DIST += tests/apps/lib.py tests/apps/client.py tests/apps/redis_tests.py tests/apps/memcached_tests.py
