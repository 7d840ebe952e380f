// RDMA-CM: resolving, asking, answering, ending, against the manual pages.
#include "fabric/verbs/stub/stub_pair_test.h"

namespace stag::fabric::stub {
namespace {

rdma_conn_param carrying(const char* text, std::uint8_t responder = 0, std::uint8_t initiator = 0) {
  rdma_conn_param param{};
  param.private_data = text;
  param.private_data_len = static_cast<std::uint8_t>(std::strlen(text));
  param.responder_resources = responder;
  param.initiator_depth = initiator;
  return param;
}

TEST_F(StubTest, a_request_carries_private_data_padded_with_zeros_and_depths_of_the_other_view) {
  listen();
  ask(carrying("asks", 3, 9));
  ASSERT_EQ(next_event(), RDMA_CM_EVENT_CONNECT_REQUEST);
  EXPECT_EQ(private_data.size(), 56u);
  EXPECT_EQ(std::memcmp(private_data.data(), "asks\0\0", 6), 0);
  EXPECT_EQ(depths, std::pair(9, 3));
  b.id = told;
  make_queues(b);
  rdma_conn_param answer = carrying("answers", 5, 2);
  ASSERT_EQ(verbs->accept(b.id, &answer), 0);
  ASSERT_EQ(next_event(), RDMA_CM_EVENT_ESTABLISHED);
  EXPECT_EQ(told, a.id);
  EXPECT_EQ(private_data.size(), 196u);
  EXPECT_EQ(depths, std::pair(2, 5));
  EXPECT_EQ(next_event(), RDMA_CM_EVENT_ESTABLISHED);
}

TEST_F(SiwTest, private_data_of_iwarp_has_its_own_length) {
  listen();
  ask(carrying("asks"));
  ASSERT_EQ(next_event(), RDMA_CM_EVENT_CONNECT_REQUEST);
  EXPECT_EQ(private_data.size(), 4u);
  b.id = told;
}

TEST_F(StubTest, more_private_data_than_a_request_has_room_for_is_refused) {
  listen();
  ask();
  const std::string long_data(57, 'x');
  rdma_conn_param wishes = carrying(long_data.c_str());
  EXPECT_EQ(verbs->connect(a.id, &wishes), -1);
  EXPECT_EQ(errno, EINVAL);
}

TEST_F(StubTest, a_listener_may_reject) {
  listen();
  ask();
  ASSERT_EQ(next_event(), RDMA_CM_EVENT_CONNECT_REQUEST);
  b.id = told;
  ASSERT_EQ(verbs->reject(b.id, "no", 2), 0);
  EXPECT_EQ(next_event(), RDMA_CM_EVENT_REJECTED);
  EXPECT_EQ(status, 28);
}

TEST_F(StubTest, a_request_without_a_listener_is_rejected) {
  listen();
  verbs->destroy_id(std::exchange(listener, nullptr));
  ask();
  EXPECT_EQ(next_event(), RDMA_CM_EVENT_REJECTED);
  EXPECT_EQ(status, 8);
}

TEST_F(StubTest, a_listener_that_goes_rejects_what_it_was_asked) {
  listen();
  ask();
  verbs->destroy_id(std::exchange(listener, nullptr));
  EXPECT_EQ(next_event(), RDMA_CM_EVENT_REJECTED);
}

TEST_F(StubTest, two_listeners_do_not_share_a_port) {
  listen();
  rdma_cm_id* other = nullptr;
  auto here = loopback(port);
  ASSERT_EQ(verbs->create_id(events, &other, nullptr, RDMA_PS_TCP), 0);
  EXPECT_EQ(verbs->bind_addr(other, reinterpret_cast<sockaddr*>(&here)), -1);
  EXPECT_EQ(errno, EADDRINUSE);
  verbs->destroy_id(other);
}

TEST_F(StubTest, an_address_of_no_device_cannot_be_bound_nor_resolved) {
  rdma_cm_id* id = nullptr;
  auto far = loopback(1, "192.0.2.1");
  ASSERT_EQ(verbs->create_id(events, &id, nullptr, RDMA_PS_TCP), 0);
  EXPECT_EQ(verbs->bind_addr(id, reinterpret_cast<sockaddr*>(&far)), -1);
  EXPECT_EQ(errno, ENODEV);
  ASSERT_EQ(verbs->resolve_addr(id, nullptr, reinterpret_cast<sockaddr*>(&far), 1000), 0);
  EXPECT_EQ(next_event(), RDMA_CM_EVENT_ADDR_ERROR);
  EXPECT_EQ(status, -ENETUNREACH);
  verbs->destroy_id(id);
}

TEST_F(StubTest, a_port_that_is_down_resolves_nothing_and_says_so) {
  network->set_port(false);
  rdma_cm_id* id = nullptr;
  auto there = loopback(1);
  ASSERT_EQ(verbs->create_id(events, &id, nullptr, RDMA_PS_TCP), 0);
  ASSERT_EQ(verbs->resolve_addr(id, nullptr, reinterpret_cast<sockaddr*>(&there), 1000), 0);
  EXPECT_EQ(next_event(), RDMA_CM_EVENT_ADDR_ERROR);
  verbs->destroy_id(id);
}

TEST_F(StubTest, disconnecting_tells_both_sides_and_flushes) {
  connect();
  ASSERT_EQ(receive(a, 1, 0, 8), 0);
  ASSERT_EQ(verbs->disconnect(a.id), 0);
  EXPECT_EQ(poll(a).status, IBV_WC_WR_FLUSH_ERR);
  std::vector<rdma_cm_id*> ended;
  for (int type = next_event(); type != -1; type = next_event())
    if (type == RDMA_CM_EVENT_DISCONNECTED) ended.push_back(told);
  EXPECT_EQ(ended, (std::vector{a.id, b.id}));
}

TEST_F(StubTest, a_side_that_goes_without_a_word_disconnects_its_peer) {
  connect();
  drop(a);
  EXPECT_EQ(next_event(), RDMA_CM_EVENT_DISCONNECTED);
  EXPECT_EQ(told, b.id);
}

TEST_F(StubTest, events_follow_an_id_to_its_new_channel) {
  connect();
  rdma_event_channel* other = verbs->create_event_channel();
  ::fcntl(other->fd, F_SETFL, O_NONBLOCK);
  drop(a);
  ASSERT_EQ(verbs->migrate_id(b.id, other), 0);
  EXPECT_EQ(next_event(), -1);
  rdma_cm_event* event = nullptr;
  ASSERT_EQ(verbs->get_cm_event(other, &event), 0);
  EXPECT_EQ(event->event, RDMA_CM_EVENT_DISCONNECTED);
  verbs->ack_cm_event(event);
  drop(b);
  verbs->destroy_event_channel(other);
}

TEST_F(StubTest, a_device_that_is_removed_fails_its_queue_pairs_and_tells_its_ids) {
  connect();
  ASSERT_EQ(receive(a, 1, 0, 8), 0);
  network->remove_devices();
  EXPECT_EQ(poll(a).status, IBV_WC_WR_FLUSH_ERR);
  int told_removal = 0;
  for (int type = next_event(); type != -1; type = next_event())
    told_removal += type == RDMA_CM_EVENT_DEVICE_REMOVAL ? 1 : 0;
  EXPECT_GE(told_removal, 2);
  ibv_async_event event{};
  ASSERT_EQ(verbs->get_async_event(a.id->verbs, &event), 0);
  EXPECT_EQ(event.event_type, IBV_EVENT_DEVICE_FATAL);
}

TEST_F(StubTest, a_device_that_comes_back_is_another_one_and_its_listeners_hear_nothing) {
  connect();
  ibv_context* const before = a.id->verbs;
  network->remove_devices();
  while (next_event() != -1) continue;
  drop(a);
  drop(b);
  network->restore_devices();
  ask();
  EXPECT_NE(a.id->verbs, before);
  EXPECT_EQ(next_event(), RDMA_CM_EVENT_REJECTED);
  verbs->destroy_id(std::exchange(listener, nullptr));
  drop(a);
  connect();
}

TEST(StubMisuse, using_a_removed_device_after_its_last_id_is_noticed) {
  StubNetwork network({rxe_like()});
  const auto verbs = network.functions();
  rdma_event_channel* events = verbs->create_event_channel();
  rdma_cm_id* id = nullptr;
  auto here = loopback(0);
  ASSERT_EQ(verbs->create_id(events, &id, nullptr, RDMA_PS_TCP), 0);
  ASSERT_EQ(verbs->bind_addr(id, reinterpret_cast<sockaddr*>(&here)), 0);
  ibv_pd* domain = verbs->alloc_pd(id->verbs);
  network.remove_devices();
  verbs->destroy_id(id);
  verbs->dealloc_pd(domain);
  EXPECT_EQ(network.misuses().size(), 1u);
  verbs->destroy_event_channel(events);
}

TEST(StubDevices, that_may_not_be_opened_say_so) {
  StubNetwork network({rxe_like()});
  network.forbid(true);
  EXPECT_EQ(network.functions()->create_event_channel(), nullptr);
  EXPECT_EQ(errno, EACCES);
}

TEST(StubDevices, that_are_not_there_say_so) {
  StubNetwork network(std::vector<StubOptions>{});
  EXPECT_EQ(network.functions()->create_event_channel(), nullptr);
  EXPECT_EQ(errno, ENODEV);
}

TEST(StubMisuse, destroying_an_id_whose_event_is_not_acknowledged_is_noticed) {
  StubNetwork network({rxe_like()});
  const auto verbs = network.functions();
  rdma_event_channel* events = verbs->create_event_channel();
  rdma_cm_id* id = nullptr;
  ASSERT_EQ(verbs->create_id(events, &id, nullptr, RDMA_PS_TCP), 0);
  auto there = loopback(1);
  ASSERT_EQ(verbs->resolve_addr(id, nullptr, reinterpret_cast<sockaddr*>(&there), 1000), 0);
  rdma_cm_event* event = nullptr;
  ASSERT_EQ(verbs->get_cm_event(events, &event), 0);
  EXPECT_EQ(verbs->destroy_id(id), -1);
  EXPECT_EQ(network.misuses().size(), 1u);
  verbs->ack_cm_event(event);
  EXPECT_EQ(verbs->destroy_id(id), 0);
  verbs->destroy_event_channel(events);
}

}  // namespace
}  // namespace stag::fabric::stub
