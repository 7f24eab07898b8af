# SPDX-License-Identifier: Apache-2.0
# One program, one behaviour: tests/diff/NAME.c, whose "diff:" comment says what tests/diff/run demands of it under culvert.
diff_programs = \
	tests/diff/accept_flags \
	tests/diff/accept_then_fork \
	tests/diff/big_write_both_ways \
	tests/diff/close_after_big_send \
	tests/diff/close_while_recv \
	tests/diff/closed_past_us \
	tests/diff/closefrom_keeps_working \
	tests/diff/connect_epoll \
	tests/diff/connect_refused \
	tests/diff/dprintf_socket \
	tests/diff/dup2_over_live \
	tests/diff/dup2_pipe_over_live \
	tests/diff/dup_before_use \
	tests/diff/dup_close_one_keeps_open \
	tests/diff/dup_shared \
	tests/diff/eintr_epoll_wait \
	tests/diff/eintr_poll \
	tests/diff/eintr_recv \
	tests/diff/epoll_add_twice_eexist \
	tests/diff/epoll_add_while_waiting \
	tests/diff/epoll_closed_gone \
	tests/diff/epoll_data_kept \
	tests/diff/epoll_del_add \
	tests/diff/epoll_dup_keeps_registration \
	tests/diff/epoll_echo_server \
	tests/diff/epoll_et_out \
	tests/diff/epoll_et_rearm \
	tests/diff/epoll_et_two_writes \
	tests/diff/epoll_exclusive_threads \
	tests/diff/epoll_fork_child \
	tests/diff/epoll_lt \
	tests/diff/epoll_nested \
	tests/diff/epoll_oneshot_mod \
	tests/diff/epoll_order \
	tests/diff/epoll_pipe_fairness \
	tests/diff/epoll_rdhup \
	tests/diff/epoll_rst \
	tests/diff/epoll_timeouts \
	tests/diff/exec_inherited \
	tests/diff/exec_self \
	tests/diff/exec_stdio \
	tests/diff/fd_numbers \
	tests/diff/fd_reused \
	tests/diff/fdopen_stdio \
	tests/diff/fionread \
	tests/diff/fork_both_use \
	tests/diff/fork_child_idle \
	tests/diff/fork_child_reads \
	tests/diff/fork_parent_exits \
	tests/diff/fortified \
	tests/diff/getsockname_getpeername \
	tests/diff/half_close_read \
	tests/diff/inprocess_pair \
	tests/diff/ipv4_mapped \
	tests/diff/ipv6_loopback \
	tests/diff/linger0_rst \
	tests/diff/linger_waits \
	tests/diff/many_short_connections \
	tests/diff/msg_more_cork \
	tests/diff/msg_oob \
	tests/diff/msg_trunc_discards \
	tests/diff/msg_waitall \
	tests/diff/nonblock_toggle \
	tests/diff/nonblocking_connect \
	tests/diff/nonblocking_full \
	tests/diff/not_connected \
	tests/diff/not_tcp \
	tests/diff/peer_killed \
	tests/diff/peer_killed_after_send \
	tests/diff/peer_killed_wakes \
	tests/diff/peer_stopped \
	tests/diff/pingpong_rising \
	tests/diff/poll_many \
	tests/diff/poll_masks \
	tests/diff/poll_timeout_zero \
	tests/diff/popen_system \
	tests/diff/prefork_accept \
	tests/diff/raw_syscall \
	tests/diff/rcvlowat \
	tests/diff/rcvtimeo \
	tests/diff/readv_writev \
	tests/diff/recv_dontwait \
	tests/diff/recv_peek \
	tests/diff/recvmsg_iov \
	tests/diff/restart_recv \
	tests/diff/rst_on_unread_close \
	tests/diff/rst_with_bytes_unread \
	tests/diff/scm_rights \
	tests/diff/select_rw \
	tests/diff/self_connect \
	tests/diff/send_after_peer_close \
	tests/diff/send_after_shut_wr_epipe \
	tests/diff/sendfile_to_socket \
	tests/diff/sendmmsg_recvmmsg \
	tests/diff/shutdown_both \
	tests/diff/shutdown_rd \
	tests/diff/shutdown_wakes_recv \
	tests/diff/signal_handler_writes \
	tests/diff/signal_nodefer \
	tests/diff/sigpipe \
	tests/diff/siocoutq \
	tests/diff/slow_reader \
	tests/diff/sndtimeo \
	tests/diff/so_error_after_rst \
	tests/diff/sockopt_kept \
	tests/diff/splice_socket \
	tests/diff/std_fds_closed \
	tests/diff/stream_random_32m \
	tests/diff/thread_to_thread \
	tests/diff/threads4_conns16 \
	tests/diff/two_epoll_sets \
	tests/diff/vfork_exec \
	tests/diff/waiter_epoll \
	tests/diff/waiter_poll \
	tests/diff/waiter_recv \
	tests/diff/waiter_select \
	tests/diff/write_before_read \
	tests/diff/writers_keep_records \
	tests/diff/writev_empty_iovec \
	tests/diff/zero_length

# They are ordinary programs: nothing of culvert is linked, and what must be reached is the kernel's behaviour, so little optimisation.
DIFF_LIBS = -lpthread
DIFF_CFLAGS = $(AM_CFLAGS) -O1 -pthread
tests_diff_accept_flags_CFLAGS = $(DIFF_CFLAGS)
tests_diff_accept_flags_LDADD = $(DIFF_LIBS)
tests_diff_accept_then_fork_CFLAGS = $(DIFF_CFLAGS)
tests_diff_accept_then_fork_LDADD = $(DIFF_LIBS)
tests_diff_big_write_both_ways_CFLAGS = $(DIFF_CFLAGS)
tests_diff_big_write_both_ways_LDADD = $(DIFF_LIBS)
tests_diff_close_after_big_send_CFLAGS = $(DIFF_CFLAGS)
tests_diff_close_after_big_send_LDADD = $(DIFF_LIBS)
tests_diff_close_while_recv_CFLAGS = $(DIFF_CFLAGS)
tests_diff_close_while_recv_LDADD = $(DIFF_LIBS)
tests_diff_closed_past_us_CFLAGS = $(DIFF_CFLAGS)
tests_diff_closed_past_us_LDADD = $(DIFF_LIBS)
tests_diff_closefrom_keeps_working_CFLAGS = $(DIFF_CFLAGS)
tests_diff_closefrom_keeps_working_LDADD = $(DIFF_LIBS)
tests_diff_connect_epoll_CFLAGS = $(DIFF_CFLAGS)
tests_diff_connect_epoll_LDADD = $(DIFF_LIBS)
tests_diff_connect_refused_CFLAGS = $(DIFF_CFLAGS)
tests_diff_connect_refused_LDADD = $(DIFF_LIBS)
tests_diff_dprintf_socket_CFLAGS = $(DIFF_CFLAGS)
tests_diff_dprintf_socket_LDADD = $(DIFF_LIBS)
tests_diff_dup2_over_live_CFLAGS = $(DIFF_CFLAGS)
tests_diff_dup2_over_live_LDADD = $(DIFF_LIBS)
tests_diff_dup2_pipe_over_live_CFLAGS = $(DIFF_CFLAGS)
tests_diff_dup2_pipe_over_live_LDADD = $(DIFF_LIBS)
tests_diff_dup_before_use_CFLAGS = $(DIFF_CFLAGS)
tests_diff_dup_before_use_LDADD = $(DIFF_LIBS)
tests_diff_dup_close_one_keeps_open_CFLAGS = $(DIFF_CFLAGS)
tests_diff_dup_close_one_keeps_open_LDADD = $(DIFF_LIBS)
tests_diff_dup_shared_CFLAGS = $(DIFF_CFLAGS)
tests_diff_dup_shared_LDADD = $(DIFF_LIBS)
tests_diff_eintr_epoll_wait_CFLAGS = $(DIFF_CFLAGS)
tests_diff_eintr_epoll_wait_LDADD = $(DIFF_LIBS)
tests_diff_eintr_poll_CFLAGS = $(DIFF_CFLAGS)
tests_diff_eintr_poll_LDADD = $(DIFF_LIBS)
tests_diff_eintr_recv_CFLAGS = $(DIFF_CFLAGS)
tests_diff_eintr_recv_LDADD = $(DIFF_LIBS)
tests_diff_epoll_add_twice_eexist_CFLAGS = $(DIFF_CFLAGS)
tests_diff_epoll_add_twice_eexist_LDADD = $(DIFF_LIBS)
tests_diff_epoll_add_while_waiting_CFLAGS = $(DIFF_CFLAGS)
tests_diff_epoll_add_while_waiting_LDADD = $(DIFF_LIBS)
tests_diff_epoll_closed_gone_CFLAGS = $(DIFF_CFLAGS)
tests_diff_epoll_closed_gone_LDADD = $(DIFF_LIBS)
tests_diff_epoll_data_kept_CFLAGS = $(DIFF_CFLAGS)
tests_diff_epoll_data_kept_LDADD = $(DIFF_LIBS)
tests_diff_epoll_del_add_CFLAGS = $(DIFF_CFLAGS)
tests_diff_epoll_del_add_LDADD = $(DIFF_LIBS)
tests_diff_epoll_dup_keeps_registration_CFLAGS = $(DIFF_CFLAGS)
tests_diff_epoll_dup_keeps_registration_LDADD = $(DIFF_LIBS)
tests_diff_epoll_echo_server_CFLAGS = $(DIFF_CFLAGS)
tests_diff_epoll_echo_server_LDADD = $(DIFF_LIBS)
tests_diff_epoll_et_out_CFLAGS = $(DIFF_CFLAGS)
tests_diff_epoll_et_out_LDADD = $(DIFF_LIBS)
tests_diff_epoll_et_rearm_CFLAGS = $(DIFF_CFLAGS)
tests_diff_epoll_et_rearm_LDADD = $(DIFF_LIBS)
tests_diff_epoll_et_two_writes_CFLAGS = $(DIFF_CFLAGS)
tests_diff_epoll_et_two_writes_LDADD = $(DIFF_LIBS)
tests_diff_epoll_exclusive_threads_CFLAGS = $(DIFF_CFLAGS)
tests_diff_epoll_exclusive_threads_LDADD = $(DIFF_LIBS)
tests_diff_epoll_fork_child_CFLAGS = $(DIFF_CFLAGS)
tests_diff_epoll_fork_child_LDADD = $(DIFF_LIBS)
tests_diff_epoll_lt_CFLAGS = $(DIFF_CFLAGS)
tests_diff_epoll_lt_LDADD = $(DIFF_LIBS)
tests_diff_epoll_nested_CFLAGS = $(DIFF_CFLAGS)
tests_diff_epoll_nested_LDADD = $(DIFF_LIBS)
tests_diff_epoll_oneshot_mod_CFLAGS = $(DIFF_CFLAGS)
tests_diff_epoll_oneshot_mod_LDADD = $(DIFF_LIBS)
tests_diff_epoll_order_CFLAGS = $(DIFF_CFLAGS)
tests_diff_epoll_order_LDADD = $(DIFF_LIBS)
tests_diff_epoll_pipe_fairness_CFLAGS = $(DIFF_CFLAGS)
tests_diff_epoll_pipe_fairness_LDADD = $(DIFF_LIBS)
tests_diff_epoll_rdhup_CFLAGS = $(DIFF_CFLAGS)
tests_diff_epoll_rdhup_LDADD = $(DIFF_LIBS)
tests_diff_epoll_rst_CFLAGS = $(DIFF_CFLAGS)
tests_diff_epoll_rst_LDADD = $(DIFF_LIBS)
tests_diff_epoll_timeouts_CFLAGS = $(DIFF_CFLAGS)
tests_diff_epoll_timeouts_LDADD = $(DIFF_LIBS)
tests_diff_exec_inherited_CFLAGS = $(DIFF_CFLAGS)
tests_diff_exec_inherited_LDADD = $(DIFF_LIBS)
tests_diff_exec_self_CFLAGS = $(DIFF_CFLAGS)
tests_diff_exec_self_LDADD = $(DIFF_LIBS)
tests_diff_exec_stdio_CFLAGS = $(DIFF_CFLAGS)
tests_diff_exec_stdio_LDADD = $(DIFF_LIBS)
tests_diff_fd_numbers_CFLAGS = $(DIFF_CFLAGS)
tests_diff_fd_numbers_LDADD = $(DIFF_LIBS)
tests_diff_fd_reused_CFLAGS = $(DIFF_CFLAGS)
tests_diff_fd_reused_LDADD = $(DIFF_LIBS)
tests_diff_fdopen_stdio_CFLAGS = $(DIFF_CFLAGS)
tests_diff_fdopen_stdio_LDADD = $(DIFF_LIBS)
tests_diff_fionread_CFLAGS = $(DIFF_CFLAGS)
tests_diff_fionread_LDADD = $(DIFF_LIBS)
tests_diff_fork_both_use_CFLAGS = $(DIFF_CFLAGS)
tests_diff_fork_both_use_LDADD = $(DIFF_LIBS)
tests_diff_fork_child_idle_CFLAGS = $(DIFF_CFLAGS)
tests_diff_fork_child_idle_LDADD = $(DIFF_LIBS)
tests_diff_fork_child_reads_CFLAGS = $(DIFF_CFLAGS)
tests_diff_fork_child_reads_LDADD = $(DIFF_LIBS)
tests_diff_fork_parent_exits_CFLAGS = $(DIFF_CFLAGS)
tests_diff_fork_parent_exits_LDADD = $(DIFF_LIBS)
tests_diff_fortified_CFLAGS = $(DIFF_CFLAGS)
tests_diff_fortified_LDADD = $(DIFF_LIBS)
tests_diff_getsockname_getpeername_CFLAGS = $(DIFF_CFLAGS)
tests_diff_getsockname_getpeername_LDADD = $(DIFF_LIBS)
tests_diff_half_close_read_CFLAGS = $(DIFF_CFLAGS)
tests_diff_half_close_read_LDADD = $(DIFF_LIBS)
tests_diff_inprocess_pair_CFLAGS = $(DIFF_CFLAGS)
tests_diff_inprocess_pair_LDADD = $(DIFF_LIBS)
tests_diff_ipv4_mapped_CFLAGS = $(DIFF_CFLAGS)
tests_diff_ipv4_mapped_LDADD = $(DIFF_LIBS)
tests_diff_ipv6_loopback_CFLAGS = $(DIFF_CFLAGS)
tests_diff_ipv6_loopback_LDADD = $(DIFF_LIBS)
tests_diff_linger0_rst_CFLAGS = $(DIFF_CFLAGS)
tests_diff_linger0_rst_LDADD = $(DIFF_LIBS)
tests_diff_linger_waits_CFLAGS = $(DIFF_CFLAGS)
tests_diff_linger_waits_LDADD = $(DIFF_LIBS)
tests_diff_many_short_connections_CFLAGS = $(DIFF_CFLAGS)
tests_diff_many_short_connections_LDADD = $(DIFF_LIBS)
tests_diff_msg_more_cork_CFLAGS = $(DIFF_CFLAGS)
tests_diff_msg_more_cork_LDADD = $(DIFF_LIBS)
tests_diff_msg_oob_CFLAGS = $(DIFF_CFLAGS)
tests_diff_msg_oob_LDADD = $(DIFF_LIBS)
tests_diff_msg_trunc_discards_CFLAGS = $(DIFF_CFLAGS)
tests_diff_msg_trunc_discards_LDADD = $(DIFF_LIBS)
tests_diff_msg_waitall_CFLAGS = $(DIFF_CFLAGS)
tests_diff_msg_waitall_LDADD = $(DIFF_LIBS)
tests_diff_nonblock_toggle_CFLAGS = $(DIFF_CFLAGS)
tests_diff_nonblock_toggle_LDADD = $(DIFF_LIBS)
tests_diff_nonblocking_connect_CFLAGS = $(DIFF_CFLAGS)
tests_diff_nonblocking_connect_LDADD = $(DIFF_LIBS)
tests_diff_nonblocking_full_CFLAGS = $(DIFF_CFLAGS)
tests_diff_nonblocking_full_LDADD = $(DIFF_LIBS)
tests_diff_not_connected_CFLAGS = $(DIFF_CFLAGS)
tests_diff_not_connected_LDADD = $(DIFF_LIBS)
tests_diff_not_tcp_CFLAGS = $(DIFF_CFLAGS)
tests_diff_not_tcp_LDADD = $(DIFF_LIBS)
tests_diff_peer_killed_CFLAGS = $(DIFF_CFLAGS)
tests_diff_peer_killed_LDADD = $(DIFF_LIBS)
tests_diff_peer_killed_after_send_CFLAGS = $(DIFF_CFLAGS)
tests_diff_peer_killed_after_send_LDADD = $(DIFF_LIBS)
tests_diff_peer_killed_wakes_CFLAGS = $(DIFF_CFLAGS)
tests_diff_peer_killed_wakes_LDADD = $(DIFF_LIBS)
tests_diff_peer_stopped_CFLAGS = $(DIFF_CFLAGS)
tests_diff_peer_stopped_LDADD = $(DIFF_LIBS)
tests_diff_pingpong_rising_CFLAGS = $(DIFF_CFLAGS)
tests_diff_pingpong_rising_LDADD = $(DIFF_LIBS)
tests_diff_poll_many_CFLAGS = $(DIFF_CFLAGS)
tests_diff_poll_many_LDADD = $(DIFF_LIBS)
tests_diff_poll_masks_CFLAGS = $(DIFF_CFLAGS)
tests_diff_poll_masks_LDADD = $(DIFF_LIBS)
tests_diff_poll_timeout_zero_CFLAGS = $(DIFF_CFLAGS)
tests_diff_poll_timeout_zero_LDADD = $(DIFF_LIBS)
tests_diff_popen_system_CFLAGS = $(DIFF_CFLAGS)
tests_diff_popen_system_LDADD = $(DIFF_LIBS)
tests_diff_prefork_accept_CFLAGS = $(DIFF_CFLAGS)
tests_diff_prefork_accept_LDADD = $(DIFF_LIBS)
tests_diff_raw_syscall_CFLAGS = $(DIFF_CFLAGS)
tests_diff_raw_syscall_LDADD = $(DIFF_LIBS)
tests_diff_rcvlowat_CFLAGS = $(DIFF_CFLAGS)
tests_diff_rcvlowat_LDADD = $(DIFF_LIBS)
tests_diff_rcvtimeo_CFLAGS = $(DIFF_CFLAGS)
tests_diff_rcvtimeo_LDADD = $(DIFF_LIBS)
tests_diff_readv_writev_CFLAGS = $(DIFF_CFLAGS)
tests_diff_readv_writev_LDADD = $(DIFF_LIBS)
tests_diff_recv_dontwait_CFLAGS = $(DIFF_CFLAGS)
tests_diff_recv_dontwait_LDADD = $(DIFF_LIBS)
tests_diff_recv_peek_CFLAGS = $(DIFF_CFLAGS)
tests_diff_recv_peek_LDADD = $(DIFF_LIBS)
tests_diff_recvmsg_iov_CFLAGS = $(DIFF_CFLAGS)
tests_diff_recvmsg_iov_LDADD = $(DIFF_LIBS)
tests_diff_restart_recv_CFLAGS = $(DIFF_CFLAGS)
tests_diff_restart_recv_LDADD = $(DIFF_LIBS)
tests_diff_rst_on_unread_close_CFLAGS = $(DIFF_CFLAGS)
tests_diff_rst_on_unread_close_LDADD = $(DIFF_LIBS)
tests_diff_rst_with_bytes_unread_CFLAGS = $(DIFF_CFLAGS)
tests_diff_rst_with_bytes_unread_LDADD = $(DIFF_LIBS)
tests_diff_scm_rights_CFLAGS = $(DIFF_CFLAGS)
tests_diff_scm_rights_LDADD = $(DIFF_LIBS)
tests_diff_select_rw_CFLAGS = $(DIFF_CFLAGS)
tests_diff_select_rw_LDADD = $(DIFF_LIBS)
tests_diff_self_connect_CFLAGS = $(DIFF_CFLAGS)
tests_diff_self_connect_LDADD = $(DIFF_LIBS)
tests_diff_send_after_peer_close_CFLAGS = $(DIFF_CFLAGS)
tests_diff_send_after_peer_close_LDADD = $(DIFF_LIBS)
tests_diff_send_after_shut_wr_epipe_CFLAGS = $(DIFF_CFLAGS)
tests_diff_send_after_shut_wr_epipe_LDADD = $(DIFF_LIBS)
tests_diff_sendfile_to_socket_CFLAGS = $(DIFF_CFLAGS)
tests_diff_sendfile_to_socket_LDADD = $(DIFF_LIBS)
tests_diff_sendmmsg_recvmmsg_CFLAGS = $(DIFF_CFLAGS)
tests_diff_sendmmsg_recvmmsg_LDADD = $(DIFF_LIBS)
tests_diff_shutdown_both_CFLAGS = $(DIFF_CFLAGS)
tests_diff_shutdown_both_LDADD = $(DIFF_LIBS)
tests_diff_shutdown_rd_CFLAGS = $(DIFF_CFLAGS)
tests_diff_shutdown_rd_LDADD = $(DIFF_LIBS)
tests_diff_shutdown_wakes_recv_CFLAGS = $(DIFF_CFLAGS)
tests_diff_shutdown_wakes_recv_LDADD = $(DIFF_LIBS)
tests_diff_signal_handler_writes_CFLAGS = $(DIFF_CFLAGS)
tests_diff_signal_handler_writes_LDADD = $(DIFF_LIBS)
tests_diff_signal_nodefer_CFLAGS = $(DIFF_CFLAGS)
tests_diff_signal_nodefer_LDADD = $(DIFF_LIBS)
tests_diff_sigpipe_CFLAGS = $(DIFF_CFLAGS)
tests_diff_sigpipe_LDADD = $(DIFF_LIBS)
tests_diff_siocoutq_CFLAGS = $(DIFF_CFLAGS)
tests_diff_siocoutq_LDADD = $(DIFF_LIBS)
tests_diff_slow_reader_CFLAGS = $(DIFF_CFLAGS)
tests_diff_slow_reader_LDADD = $(DIFF_LIBS)
tests_diff_sndtimeo_CFLAGS = $(DIFF_CFLAGS)
tests_diff_sndtimeo_LDADD = $(DIFF_LIBS)
tests_diff_so_error_after_rst_CFLAGS = $(DIFF_CFLAGS)
tests_diff_so_error_after_rst_LDADD = $(DIFF_LIBS)
tests_diff_sockopt_kept_CFLAGS = $(DIFF_CFLAGS)
tests_diff_sockopt_kept_LDADD = $(DIFF_LIBS)
tests_diff_splice_socket_CFLAGS = $(DIFF_CFLAGS)
tests_diff_splice_socket_LDADD = $(DIFF_LIBS)
tests_diff_std_fds_closed_CFLAGS = $(DIFF_CFLAGS)
tests_diff_std_fds_closed_LDADD = $(DIFF_LIBS)
tests_diff_stream_random_32m_CFLAGS = $(DIFF_CFLAGS)
tests_diff_stream_random_32m_LDADD = $(DIFF_LIBS)
tests_diff_thread_to_thread_CFLAGS = $(DIFF_CFLAGS)
tests_diff_thread_to_thread_LDADD = $(DIFF_LIBS)
tests_diff_threads4_conns16_CFLAGS = $(DIFF_CFLAGS)
tests_diff_threads4_conns16_LDADD = $(DIFF_LIBS)
tests_diff_two_epoll_sets_CFLAGS = $(DIFF_CFLAGS)
tests_diff_two_epoll_sets_LDADD = $(DIFF_LIBS)
tests_diff_vfork_exec_CFLAGS = $(DIFF_CFLAGS)
tests_diff_vfork_exec_LDADD = $(DIFF_LIBS)
tests_diff_waiter_epoll_CFLAGS = $(DIFF_CFLAGS)
tests_diff_waiter_epoll_LDADD = $(DIFF_LIBS)
tests_diff_waiter_poll_CFLAGS = $(DIFF_CFLAGS)
tests_diff_waiter_poll_LDADD = $(DIFF_LIBS)
tests_diff_waiter_recv_CFLAGS = $(DIFF_CFLAGS)
tests_diff_waiter_recv_LDADD = $(DIFF_LIBS)
tests_diff_waiter_select_CFLAGS = $(DIFF_CFLAGS)
tests_diff_waiter_select_LDADD = $(DIFF_LIBS)
tests_diff_write_before_read_CFLAGS = $(DIFF_CFLAGS)
tests_diff_write_before_read_LDADD = $(DIFF_LIBS)
tests_diff_writers_keep_records_CFLAGS = $(DIFF_CFLAGS)
tests_diff_writers_keep_records_LDADD = $(DIFF_LIBS)
tests_diff_writev_empty_iovec_CFLAGS = $(DIFF_CFLAGS)
tests_diff_writev_empty_iovec_LDADD = $(DIFF_LIBS)
tests_diff_zero_length_CFLAGS = $(DIFF_CFLAGS)
tests_diff_zero_length_LDADD = $(DIFF_LIBS)

check_PROGRAMS += $(diff_programs)
dist_check_SCRIPTS += tests/diff/run
TESTS += tests/diff/run
EXTRA_DIST += tests/diff/t.h
