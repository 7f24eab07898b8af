# SPDX-License-Identifier: Apache-2.0
TESTS += tests/elf/hygiene tests/elf/selftest
EXTRA_DIST += tests/elf/hygiene tests/elf/selftest
