// Queue pairs, receives, completions and their notification, against the manual pages.
#include "fabric/verbs/stub/stub_pair_test.h"

namespace stag::fabric::stub {
namespace {

TEST_F(StubTest, a_send_fills_the_first_receive_and_completes_on_both_sides) {
  connect();
  ASSERT_EQ(receive(b, 7, 0, 100), 0);
  std::memcpy(a.memory.data(), "hello", 5);
  ASSERT_EQ(post(a, IBV_WR_SEND, piece(a, 0, 5)), 0);
  const ibv_wc arrived = poll(b), sent = poll(a);
  EXPECT_EQ(arrived.wr_id, 7u);
  EXPECT_EQ(arrived.status, IBV_WC_SUCCESS);
  EXPECT_EQ(arrived.opcode, IBV_WC_RECV);
  EXPECT_EQ(arrived.byte_len, 5u);
  EXPECT_EQ(arrived.qp_num, b.id->qp->qp_num);
  EXPECT_EQ(std::memcmp(b.memory.data(), "hello", 5), 0);
  EXPECT_EQ(sent.status, IBV_WC_SUCCESS);
  EXPECT_EQ(sent.opcode, IBV_WC_SEND);
}

TEST_F(StubTest, a_send_queue_takes_no_more_than_its_slots_and_a_polled_completion_returns_them) {
  slots = 4;
  connect();
  const auto write = [&](unsigned flags) {
    return post(a, IBV_WR_RDMA_WRITE, piece(a, 0, 1), {b.at(0), b.region->rkey}, flags);
  };
  for (int i = 0; i < 3; ++i) ASSERT_EQ(write(0), 0);
  ASSERT_EQ(write(IBV_SEND_SIGNALED), 0);
  // All four have been performed; only a poll returns their slots.
  EXPECT_EQ(write(0), ENOMEM);
  EXPECT_EQ(poll(a).status, IBV_WC_SUCCESS);
  EXPECT_EQ(poll(a).status, IBV_WC_TM_ERR) << "requests that are not signalled complete silently";
  for (int i = 0; i < 4; ++i) ASSERT_EQ(write(0), 0);
}

TEST_F(StubTest, a_send_waits_for_a_receive_as_long_as_the_peer_allows) {
  connect(false, 7);
  ASSERT_EQ(post(a, IBV_WR_SEND, piece(a, 0, 5)), 0);
  EXPECT_EQ(poll(a).status, IBV_WC_TM_ERR);
  ASSERT_EQ(receive(b, 1, 0, 100), 0);
  EXPECT_EQ(poll(a).status, IBV_WC_SUCCESS);
  EXPECT_EQ(poll(b).status, IBV_WC_SUCCESS);
}

TEST_F(StubTest, a_send_without_a_receive_fails_where_the_peer_allows_no_other_try) {
  connect(false, 0);
  ASSERT_EQ(post(a, IBV_WR_SEND, piece(a, 0, 5)), 0);
  EXPECT_EQ(poll(a).status, IBV_WC_RNR_RETRY_EXC_ERR);
}

TEST_F(StubTest, a_message_longer_than_its_receive_fails_both_sides) {
  connect();
  ASSERT_EQ(receive(b, 1, 0, 4), 0);
  ASSERT_EQ(post(a, IBV_WR_SEND, piece(a, 0, 5)), 0);
  EXPECT_EQ(poll(b).status, IBV_WC_LOC_LEN_ERR);
  EXPECT_EQ(poll(a).status, IBV_WC_REM_INV_REQ_ERR);
}

TEST_F(StubTest, a_failed_queue_pair_flushes_what_is_and_what_will_be_posted) {
  connect();
  ASSERT_EQ(receive(b, 1, 0, 4), 0);
  ASSERT_EQ(receive(b, 2, 0, 4), 0);
  ibv_qp_attr state{};
  state.qp_state = IBV_QPS_ERR;
  ASSERT_EQ(verbs->modify_qp(b.id->qp, &state, IBV_QP_STATE), 0);
  for (const std::uint64_t id : {1, 2}) {
    const ibv_wc flushed = poll(b);
    EXPECT_EQ(flushed.wr_id, id);
    EXPECT_EQ(flushed.status, IBV_WC_WR_FLUSH_ERR);
  }
  // Requests that are not signalled are reported when they fail.
  ASSERT_EQ(post(b, IBV_WR_SEND, piece(b, 0, 1), {}, 0), 0);
  EXPECT_EQ(poll(b).status, IBV_WC_WR_FLUSH_ERR);
}

TEST_F(StubTest, a_shared_receive_queue_serves_its_queue_pairs_and_is_not_flushed_with_one) {
  connect(true);
  ASSERT_EQ(receive(b, 1, 0, 100), 0);
  ASSERT_EQ(receive(b, 2, 0, 100), 0);
  ASSERT_EQ(post(a, IBV_WR_SEND, piece(a, 0, 5)), 0);
  EXPECT_EQ(poll(b).wr_id, 1u);
  ibv_qp_attr state{};
  state.qp_state = IBV_QPS_ERR;
  ASSERT_EQ(verbs->modify_qp(b.id->qp, &state, IBV_QP_STATE), 0);
  EXPECT_EQ(poll(b).status, IBV_WC_TM_ERR);
  ibv_async_event event{};
  ASSERT_EQ(verbs->get_async_event(b.id->verbs, &event), 0);
  EXPECT_EQ(event.event_type, IBV_EVENT_QP_LAST_WQE_REACHED);
  EXPECT_EQ(event.element.qp, b.id->qp);
  verbs->ack_async_event(&event);
}

TEST_F(StubTest, a_receive_queue_takes_no_more_than_it_has_room_for) {
  connect();
  for (std::uint64_t i = 0; i < 8; ++i) ASSERT_EQ(receive(b, i, 0, 8), 0);
  EXPECT_EQ(receive(b, 8, 0, 8), ENOMEM);
}

TEST_F(StubTest, notification_is_one_shot_and_comes_through_a_descriptor) {
  connect();
  const auto write = [&] {
    ASSERT_EQ(post(a, IBV_WR_RDMA_WRITE, piece(a, 0, 1), {b.at(0), b.region->rkey}), 0);
  };
  write();
  EXPECT_FALSE(readable(a.channel->fd)) << "nobody has asked";
  ASSERT_EQ(ibv_req_notify_cq(a.cq, 0), 0);
  EXPECT_FALSE(readable(a.channel->fd)) << "only of what comes later";
  write();
  write();
  ASSERT_TRUE(readable(a.channel->fd));
  ibv_cq* cq = nullptr;
  void* user = nullptr;
  ASSERT_EQ(verbs->get_cq_event(a.channel, &cq, &user), 0);
  EXPECT_EQ(cq, a.cq);
  EXPECT_EQ(user, &a);
  EXPECT_FALSE(readable(a.channel->fd));
  EXPECT_EQ(verbs->get_cq_event(a.channel, &cq, &user), -1);
  EXPECT_EQ(errno, EAGAIN);
  verbs->ack_cq_events(a.cq, 1);
}

TEST_F(StubTest, a_solicited_notification_is_for_solicited_messages_and_errors) {
  connect();
  for (std::uint64_t i = 0; i < 2; ++i) ASSERT_EQ(receive(b, i, 0, 8), 0);
  ASSERT_EQ(ibv_req_notify_cq(b.cq, 1), 0);
  ASSERT_EQ(post(a, IBV_WR_SEND, piece(a, 0, 1)), 0);
  EXPECT_FALSE(readable(b.channel->fd));
  ASSERT_EQ(post(a, IBV_WR_SEND, piece(a, 0, 1), {}, IBV_SEND_SIGNALED | IBV_SEND_SOLICITED), 0);
  EXPECT_TRUE(readable(b.channel->fd));
}

TEST_F(StubTest, inline_bytes_are_the_callers_again_at_once_and_need_no_region) {
  connect();
  network->hold();
  ASSERT_EQ(receive(b, 1, 0, 100), 0);
  ibv_sge memory{a.at(0), 5, 0};
  std::memcpy(a.memory.data(), "hello", 5);
  ASSERT_EQ(post(a, IBV_WR_SEND, memory, {}, IBV_SEND_INLINE), 0);
  std::memcpy(a.memory.data(), "wrong", 5);
  network->release();
  EXPECT_EQ(std::memcmp(b.memory.data(), "hello", 5), 0);
  EXPECT_EQ(post(a, IBV_WR_SEND, {a.at(0), 65, 0}, {}, IBV_SEND_INLINE), EINVAL);
}

TEST_F(StubTest, work_is_done_in_order_when_the_network_is_released) {
  connect();
  network->hold();
  ASSERT_EQ(post(a, IBV_WR_RDMA_WRITE, piece(a, 0, 8), {b.at(0), b.region->rkey}), 0);
  EXPECT_EQ(poll(a).status, IBV_WC_TM_ERR);
  network->release();
  EXPECT_EQ(poll(a).status, IBV_WC_SUCCESS);
}

TEST_F(StubTest, requests_to_a_peer_that_is_not_there_end_when_retries_are_exhausted) {
  connect();
  network->lose_packets(true);
  ASSERT_EQ(post(a, IBV_WR_RDMA_WRITE, piece(a, 0, 8), {b.at(0), b.region->rkey}), 0);
  EXPECT_EQ(poll(a).status, IBV_WC_RETRY_EXC_ERR);
}

TEST_F(StubTest, what_is_still_used_is_not_destroyed) {
  connect();
  EXPECT_EQ(verbs->destroy_cq(a.cq), EBUSY);
  EXPECT_EQ(verbs->dealloc_pd(a.pd), EBUSY);
  EXPECT_EQ(verbs->destroy_comp_channel(a.channel), EBUSY);
}

TEST_F(StubTest, one_call_can_be_made_to_fail) {
  connect();
  network->fail_call(1);
  EXPECT_EQ(verbs->alloc_pd(a.id->verbs), nullptr);
  EXPECT_EQ(network->failed_call(), "ibv_alloc_pd");
  ibv_pd* pd = verbs->alloc_pd(a.id->verbs);
  ASSERT_NE(pd, nullptr);
  EXPECT_EQ(verbs->dealloc_pd(pd), 0);
}

TEST_F(SiwTest, a_read_ends_after_what_was_posted_behind_it) {
  connect();
  network->hold_reads(true);
  b.memory[0] = std::byte{7};
  ASSERT_EQ(post(a, IBV_WR_RDMA_READ, piece(a, 0, 8), {b.at(0), b.region->rkey}), 0);
  ASSERT_EQ(post(a, IBV_WR_RDMA_WRITE, piece(a, 8, 8), {b.at(8), b.region->rkey}), 0);
  EXPECT_EQ(poll(a).opcode, IBV_WC_RDMA_WRITE);
  EXPECT_EQ(poll(a).status, IBV_WC_TM_ERR);
  EXPECT_EQ(a.memory[0], std::byte{0});
  network->hold_reads(false);
  EXPECT_EQ(poll(a).opcode, IBV_WC_RDMA_READ);
  EXPECT_EQ(a.memory[0], std::byte{7});
}

TEST_F(SiwTest, a_read_without_an_answer_is_flushed_when_the_queue_pair_fails) {
  connect();
  network->hold_reads(true);
  ASSERT_EQ(post(a, IBV_WR_RDMA_READ, piece(a, 0, 8), {b.at(0), b.region->rkey}), 0);
  ibv_qp_attr state{};
  state.qp_state = IBV_QPS_ERR;
  ASSERT_EQ(verbs->modify_qp(a.id->qp, &state, IBV_QP_STATE), 0);
  EXPECT_EQ(poll(a).status, IBV_WC_WR_FLUSH_ERR);
}

TEST_F(SiwTest, a_send_without_a_receive_breaks_the_connection) {
  connect();
  ASSERT_EQ(post(a, IBV_WR_SEND, piece(a, 0, 5)), 0);
  EXPECT_NE(poll(a).status, IBV_WC_SUCCESS);
  EXPECT_EQ(next_event(), RDMA_CM_EVENT_DISCONNECTED);
  EXPECT_EQ(next_event(), RDMA_CM_EVENT_DISCONNECTED);
}

}  // namespace
}  // namespace stag::fabric::stub
