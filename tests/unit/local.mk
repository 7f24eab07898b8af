# SPDX-License-Identifier: Apache-2.0
#
# cmocka programs, one per source file. Each links what it tests directly, and stands in both lists:
#
#   check_PROGRAMS += tests/unit/test_x
#   TESTS += tests/unit/test_x
#   tests_unit_test_x_SOURCES = tests/unit/test_x.c src/MODULE/x.c
#   tests_unit_test_x_LDADD = $(CMOCKA_LIBS)

# base
check_PROGRAMS += tests/unit/base/test_lock tests/unit/base/test_clock
TESTS += tests/unit/base/test_lock tests/unit/base/test_clock
tests_unit_base_test_lock_SOURCES = tests/unit/base/test_lock.c src/base/lock.c
tests_unit_base_test_lock_LDADD = $(CMOCKA_LIBS)
tests_unit_base_test_clock_SOURCES = tests/unit/base/test_clock.c src/base/clock.c
tests_unit_base_test_clock_LDADD = $(CMOCKA_LIBS)

# observe
check_PROGRAMS += tests/unit/observe/test_log tests/unit/observe/test_reason tests/unit/observe/test_stats
TESTS += tests/unit/observe/test_log tests/unit/observe/test_reason tests/unit/observe/test_stats
tests_unit_observe_test_log_SOURCES = tests/unit/observe/test_log.c src/observe/log.c
tests_unit_observe_test_log_LDADD = $(CMOCKA_LIBS)
tests_unit_observe_test_reason_SOURCES = tests/unit/observe/test_reason.c src/observe/reason.c
tests_unit_observe_test_reason_LDADD = $(CMOCKA_LIBS)
tests_unit_observe_test_stats_SOURCES = tests/unit/observe/test_stats.c src/observe/stats.c src/observe/stats_file.c src/observe/log.c \
	src/base/lock.c
tests_unit_observe_test_stats_LDADD = $(CMOCKA_LIBS) -lpthread

# policy
policy_test_sources = $(policy_sources) src/observe/log.c tests/unit/policy/test.h
policy_test_ldadd = $(CMOCKA_LIBS) $(INIH_LIBS)
check_PROGRAMS += tests/unit/policy/test_words tests/unit/policy/test_match tests/unit/policy/test_value tests/unit/policy/test_parse \
	tests/unit/policy/test_policy tests/unit/policy/test_hostile
TESTS += tests/unit/policy/test_words tests/unit/policy/test_match tests/unit/policy/test_value tests/unit/policy/test_parse \
	tests/unit/policy/test_policy tests/unit/policy/test_hostile
tests_unit_policy_test_words_SOURCES = tests/unit/policy/test_words.c $(policy_test_sources)
tests_unit_policy_test_words_LDADD = $(policy_test_ldadd)
tests_unit_policy_test_match_SOURCES = tests/unit/policy/test_match.c $(policy_test_sources)
tests_unit_policy_test_match_LDADD = $(policy_test_ldadd)
tests_unit_policy_test_value_SOURCES = tests/unit/policy/test_value.c $(policy_test_sources)
tests_unit_policy_test_value_LDADD = $(policy_test_ldadd)
tests_unit_policy_test_parse_SOURCES = tests/unit/policy/test_parse.c $(policy_test_sources)
tests_unit_policy_test_parse_LDADD = $(policy_test_ldadd)
tests_unit_policy_test_policy_SOURCES = tests/unit/policy/test_policy.c $(policy_test_sources)
tests_unit_policy_test_policy_LDADD = $(policy_test_ldadd)
tests_unit_policy_test_hostile_SOURCES = tests/unit/policy/test_hostile.c $(policy_test_sources)
tests_unit_policy_test_hostile_LDADD = $(policy_test_ldadd)

# cli
check_PROGRAMS += tests/unit/cli/test_format tests/unit/cli/test_launch tests/unit/cli/test_man tests/unit/cli/test_proc \
	tests/unit/cli/test_segment
TESTS += tests/unit/cli/test_format tests/unit/cli/test_launch tests/unit/cli/test_man tests/unit/cli/test_proc tests/unit/cli/test_segment
cli_test_sources = src/cli/check.c src/cli/elf.c src/cli/format.c src/cli/launch.c src/cli/options.c src/cli/proc.c src/cli/reasons.c \
	src/cli/run.c src/cli/segment.c src/cli/segments.c src/cli/ss.c src/cli/stat.c src/base/lock.c src/observe/log.c \
	src/observe/reason.c src/observe/stats.c src/observe/stats_file.c $(policy_sources)
cli_test_ldadd = $(CMOCKA_LIBS) $(INIH_LIBS)
tests_unit_cli_test_format_SOURCES = tests/unit/cli/test_format.c $(cli_test_sources)
tests_unit_cli_test_format_LDADD = $(cli_test_ldadd)
tests_unit_cli_test_launch_SOURCES = tests/unit/cli/test_launch.c $(cli_test_sources)
tests_unit_cli_test_launch_LDADD = $(cli_test_ldadd)
tests_unit_cli_test_man_SOURCES = tests/unit/cli/test_man.c $(cli_test_sources)
tests_unit_cli_test_man_LDADD = $(cli_test_ldadd)
tests_unit_cli_test_proc_SOURCES = tests/unit/cli/test_proc.c $(cli_test_sources)
tests_unit_cli_test_proc_LDADD = $(cli_test_ldadd)
tests_unit_cli_test_segment_SOURCES = tests/unit/cli/test_segment.c $(cli_test_sources)
tests_unit_cli_test_segment_LDADD = $(cli_test_ldadd)

# readiness
ready_test_sources = tests/unit/preload_ready/fake.c tests/unit/preload_ready/fake.h \
	src/preload/epoll.c src/preload/epoll_bell.c src/preload/epoll_ctl.c src/preload/epoll_item.c src/preload/epoll_look.c src/preload/epoll_move.c src/preload/epoll_wait.c \
	src/preload/poll.c src/preload/poll_careful.c src/preload/select.c src/preload/spin.c src/preload/fd.c src/preload/real.c \
	src/base/clock.c src/base/lock.c src/link/internal_fd.c src/observe/log.c
ready_test_ldadd = $(CMOCKA_LIBS) -lpthread -ldl
check_PROGRAMS += tests/unit/preload_ready/test_epoll tests/unit/preload_ready/test_poll
TESTS += tests/unit/preload_ready/test_epoll tests/unit/preload_ready/test_poll
tests_unit_preload_ready_test_epoll_SOURCES = tests/unit/preload_ready/test_epoll.c $(ready_test_sources)
tests_unit_preload_ready_test_epoll_LDADD = $(ready_test_ldadd)
tests_unit_preload_ready_test_poll_SOURCES = tests/unit/preload_ready/test_poll.c $(ready_test_sources)
tests_unit_preload_ready_test_poll_LDADD = $(ready_test_ldadd)

# link: agent.c on a real thread; the rest with an agent that moves when told, both ends of each link in one process
link_test_sources = tests/unit/link/fake.c tests/unit/link/fake.h src/link/internal_fd.c src/link/rendezvous.c src/link/shm_ctl.c \
	src/link/shm_data.c src/link/shm_link.c src/stream/ring.c src/base/clock.c src/base/lock.c src/observe/log.c src/observe/reason.c \
	src/observe/stats.c src/observe/stats_file.c
link_test_ldadd = $(CMOCKA_LIBS) $(MD_LIBS) -lpthread
link_tests = tests/unit/link/test_agent tests/unit/link/test_internal_fd tests/unit/link/test_rendezvous tests/unit/link/test_shm_ctl \
	tests/unit/link/test_shm_data tests/unit/link/test_shm_link tests/unit/link/test_holder
check_PROGRAMS += $(link_tests)
TESTS += $(link_tests)
tests_unit_link_test_agent_SOURCES = tests/unit/link/test_agent.c src/link/agent.c src/link/internal_fd.c src/base/clock.c src/base/lock.c \
	src/observe/log.c
tests_unit_link_test_agent_LDADD = $(CMOCKA_LIBS) -lpthread
tests_unit_link_test_internal_fd_SOURCES = tests/unit/link/test_internal_fd.c src/link/internal_fd.c src/base/lock.c
tests_unit_link_test_internal_fd_LDADD = $(CMOCKA_LIBS)
# includes holder.c
tests_unit_link_test_holder_SOURCES = tests/unit/link/test_holder.c src/link/internal_fd.c src/base/lock.c
tests_unit_link_test_holder_LDADD = $(CMOCKA_LIBS)
tests_unit_link_test_rendezvous_SOURCES = tests/unit/link/test_rendezvous.c $(link_test_sources)
tests_unit_link_test_rendezvous_LDADD = $(link_test_ldadd)
tests_unit_link_test_shm_ctl_SOURCES = tests/unit/link/test_shm_ctl.c $(link_test_sources)
tests_unit_link_test_shm_ctl_LDADD = $(link_test_ldadd)
tests_unit_link_test_shm_data_SOURCES = tests/unit/link/test_shm_data.c $(link_test_sources)
tests_unit_link_test_shm_data_LDADD = $(link_test_ldadd)
tests_unit_link_test_shm_link_SOURCES = tests/unit/link/test_shm_link.c $(link_test_sources)
tests_unit_link_test_shm_link_LDADD = $(link_test_ldadd)

# stream
check_PROGRAMS += tests/unit/stream/test_ring tests/unit/stream/test_spill
TESTS += tests/unit/stream/test_ring tests/unit/stream/test_spill
tests_unit_stream_test_ring_SOURCES = tests/unit/stream/test_ring.c src/stream/ring.c
tests_unit_stream_test_ring_LDADD = $(CMOCKA_LIBS)
tests_unit_stream_test_spill_SOURCES = tests/unit/stream/test_spill.c src/stream/spill.c
tests_unit_stream_test_spill_LDADD = $(CMOCKA_LIBS)

# preload: the wrappers, with a mock where sockets are. They are the test program's own read(), close(), ...
wrapper_sources = src/preload/entry.c src/preload/fd.c src/preload/fdcalls.c src/preload/filecalls.c src/preload/pass.c src/preload/proc.c \
	src/preload/real.c src/preload/recvcalls.c src/preload/sendcalls.c src/preload/sockcalls.c src/preload/spawn.c src/preload/syscall.c \
	src/base/lock.c tests/unit/preload/mock.c tests/unit/preload/mock.h
wrapper_tests = tests/unit/preload/test_fd tests/unit/preload/test_sig tests/unit/preload/test_calls tests/unit/preload/test_fdcalls
check_PROGRAMS += $(wrapper_tests)
TESTS += $(wrapper_tests)
tests_unit_preload_test_fd_SOURCES = tests/unit/preload/test_fd.c src/preload/fd.c
tests_unit_preload_test_fd_LDADD = $(CMOCKA_LIBS) -lpthread
tests_unit_preload_test_sig_SOURCES = tests/unit/preload/test_sig.c src/preload/sig.c src/preload/real.c src/base/lock.c
tests_unit_preload_test_sig_LDADD = $(CMOCKA_LIBS) -lpthread -ldl
tests_unit_preload_test_calls_SOURCES = tests/unit/preload/test_calls.c $(wrapper_sources)
tests_unit_preload_test_calls_LDADD = $(CMOCKA_LIBS) -lpthread -ldl
tests_unit_preload_test_fdcalls_SOURCES = tests/unit/preload/test_fdcalls.c $(wrapper_sources)
tests_unit_preload_test_fdcalls_LDADD = $(CMOCKA_LIBS) -lpthread -ldl

# preload: the built library, from outside
TESTS += tests/preload/symbols tests/preload/passthrough
EXTRA_DIST += tests/preload/symbols tests/preload/passthrough
