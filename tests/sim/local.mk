# SPDX-License-Identifier: Apache-2.0
# The engine is compiled into sim (and, by mutants, once per deliberate fault). A long run is: tests/sim/sim --seconds 3600
check_PROGRAMS += tests/sim/sim
tests_sim_sim_SOURCES = tests/sim/sim.c tests/sim/world.h tests/sim/tcp.h tests/sim/link.h tests/sim/ghost.h tests/sim/app.h
tests_sim_sim_LDADD = -l:libmd.a
dist_check_SCRIPTS += tests/sim/run tests/sim/mutants
TESTS += tests/sim/run tests/sim/mutants
