// What the provider posts: which requests say when they have ended, what goes inline, and receives
// that are shared.
#include <gtest/gtest.h>

#include "testing/verbs_fixture.h"

namespace stag::testing {
namespace {

using fabric::kNoToken;

struct Posted {
  int send_calls = 0, sends = 0, signalled = 0, inlined = 0;
  int receive_calls = 0, receives = 0;
  int shared_queues = 0;
};
Posted posted;
decltype(fabric::VerbsFunctions::query_device) query_device;
decltype(fabric::VerbsFunctions::create_srq) create_srq;
decltype(ibv_context_ops::post_send) post_send;
decltype(ibv_context_ops::post_srq_recv) post_srq_recv;

int noted_post_send(ibv_qp* qp, ibv_send_wr* work, ibv_send_wr** bad) {
  ++posted.send_calls;
  for (const ibv_send_wr* each = work; each != nullptr; each = each->next) {
    ++posted.sends;
    posted.signalled += (each->send_flags & IBV_SEND_SIGNALED) != 0;
    posted.inlined += (each->send_flags & IBV_SEND_INLINE) != 0;
  }
  return post_send(qp, work, bad);
}
int noted_post_srq_recv(ibv_srq* queue, ibv_recv_wr* work, ibv_recv_wr** bad) {
  ++posted.receive_calls;
  for (const ibv_recv_wr* each = work; each != nullptr; each = each->next) ++posted.receives;
  return post_srq_recv(queue, work, bad);
}
ibv_srq* noted_create_srq(ibv_pd* pd, ibv_srq_init_attr* wishes) {
  ++posted.shared_queues;
  return create_srq(pd, wishes);
}
// Called for each device before it is used.
int noting_query_device(ibv_context* context, ibv_device_attr* attributes) {
  if (context->ops.post_send != noted_post_send) {
    post_send = std::exchange(context->ops.post_send, noted_post_send);
    post_srq_recv = std::exchange(context->ops.post_srq_recv, noted_post_srq_recv);
  }
  return query_device(context, attributes);
}
void note_posts(fabric::VerbsFunctions& functions) {
  query_device = std::exchange(functions.query_device, noting_query_device);
  create_srq = std::exchange(functions.create_srq, noted_create_srq);
}

class Posting : public FabricTest {
 protected:
  explicit Posting(const fabric::stub::StubOptions& device = fabric::stub::rxe_like())
      : FabricTest(std::make_unique<VerbsHarness>(device, "127.0.0.1", note_posts)) {
    options.receive = acceptor.answer.receive = {100, 4096};
    options.receives_max = acceptor.answer.receives_max = 100;
    posted = {};
  }
  void send(std::size_t size, fabric::Token token = kNoToken) {
    active->send(Rope::copy_of(pattern(size, 1)), std::nullopt, 0, token);
  }
};
struct PostingUnshared : Posting {
  PostingUnshared() : Posting(fabric::stub::siw_like()) {}
};

TEST_F(Posting, has_one_request_in_sixteen_say_that_it_has_ended) {
  join_and_greet();
  posted = {};
  for (int i = 0; i < 64; ++i) send(10);
  ASSERT_TRUE(run_until([&] { return passive.messages.size() == 64; }));
  EXPECT_EQ(posted.sends, 64);
  EXPECT_EQ(posted.signalled, 4);
}

TEST_F(Posting, has_a_request_say_so_that_somebody_waits_for) {
  join_and_greet();
  posted = {};
  for (fabric::Token token = 1; token <= 5; ++token) send(10, token);
  ASSERT_TRUE(done(active, 5));
  EXPECT_EQ(posted.signalled, 5);
}

TEST_F(Posting, puts_short_messages_into_the_request) {
  join_and_greet();
  posted = {};
  send(256);
  EXPECT_EQ(posted.inlined, 1);
  send(257);
  EXPECT_EQ(posted.inlined, 1);
  ASSERT_TRUE(run_until([&] { return passive.messages.size() == 2; }));
}

fabric::stub::StubOptions with_one_piece_inline() {
  fabric::stub::StubOptions device = fabric::stub::siw_like();
  device.max_inline = 256;
  device.inline_first_sge = true;
  device.attributes.vendor_id = 0x8086;
  return device;
}
struct PostingOnePiece : Posting {
  PostingOnePiece() : Posting(with_one_piece_inline()) {}
};

TEST_F(PostingOnePiece, puts_all_parts_of_a_short_message_or_Write_into_the_request) {
  join_and_greet();
  std::vector<std::byte> memory(9);
  const auto sink = passive->expose_sink(memory);
  const std::array parts{bytes_of("head"), Bytes(), bytes_of("body"), bytes_of("s")};
  posted = {};
  active->send_copy(parts, std::nullopt, 0, kNoToken);
  Rope data = Rope::borrow(bytes_of("data"));
  data.append(Buffer::borrow(bytes_of("there")));
  active->write(std::move(data), *sink, 0, 1);
  ASSERT_TRUE(done(active, 1));
  EXPECT_EQ(posted.inlined, 2);
  ASSERT_TRUE(run_until([&] { return passive.messages.size() == 1; }));
  EXPECT_EQ(passive.messages[0].text, "headbodys");
  EXPECT_EQ(text_of(memory), "datathere");
}

// As a server answers a READ.
TEST_F(Posting, lets_data_leave_with_the_message_that_tells_of_it) {
  join_and_greet();
  std::vector<std::byte> memory(5000);
  const std::vector<std::byte> data = pattern(5000, 2);
  const auto sink = active->expose_sink(memory);
  passive.when_received = [&] {
    posted = {};
    passive->write(Rope::borrow(data), *sink, 0, kNoToken);
    EXPECT_EQ(posted.send_calls, 0);
    passive->send(Rope::borrow(bytes_of("there")), std::nullopt, 0, kNoToken);
    EXPECT_EQ(posted.sends, 2);
    EXPECT_EQ(posted.send_calls, 1);
  };
  active.when_received = [&] { EXPECT_EQ(memory, data); };
  send(10);
  ASSERT_TRUE(run_until([&] { return active.messages.size() == 1; }));
}

// As a client does that makes the next call when it has heard of the last one.
TEST_F(Posting, lets_memory_be_exposed_and_taken_back_with_the_message_that_follows) {
  join_and_greet();
  std::vector<std::byte> memory(5000), next(5000);
  const std::vector<std::byte> data = pattern(5000, 2);
  const auto before = active->expose_sink(memory);
  std::optional<fabric::RemoteMemory> sink;
  active.when_received = [&] {
    posted = {};
    active->revoke(before->handle);
    sink = *active->expose_sink(next);
    send(10);
    EXPECT_EQ(posted.sends, 3);
    EXPECT_EQ(posted.send_calls, 1);
  };
  passive->send(Rope::borrow(bytes_of("answer")), std::nullopt, 0, kNoToken);
  ASSERT_TRUE(
      run_until([&] { return passive.messages.size() == 1 && active.revoked.size() == 1; }));
  passive->write(Rope::borrow(data), *sink, 0, 1);
  ASSERT_TRUE(done(passive, 1));
  EXPECT_EQ(next, data);
}

TEST_F(Posting, lets_all_leave_that_was_posted_while_a_message_was_delivered) {
  join_and_greet();
  std::vector<std::byte> memory(5000);
  const auto sink = active->expose_sink(memory);
  constexpr fabric::Token kMany = 40;
  passive.when_received = [&] {
    posted = {};
    for (fabric::Token token = 1; token <= kMany; ++token)
      passive->write(Rope::copy_of(pattern(5000, 2)), *sink, 0, token);
  };
  send(10);
  ASSERT_TRUE(done(passive, kMany));
  EXPECT_EQ(memory, pattern(5000, 2));
  EXPECT_LE(posted.send_calls, 4);
}

TEST_F(Posting, is_not_held_up_by_a_message_for_another_connection) {
  join_and_greet();
  Side other_active, other_passive;
  auto outcome = connect(listener->local_address());
  ASSERT_TRUE(outcome && outcome->ok());
  ASSERT_TRUE(run_until([&] { return !acceptor.arrived.empty(); }));
  other_active.take(std::move(**outcome));
  other_passive.take(std::move(acceptor.arrived.front()));
  acceptor.arrived.clear();
  other_active.start();
  other_passive.start();
  std::vector<std::byte> memory(5000);
  passive.when_received = [&] {
    posted = {};
    EXPECT_TRUE(other_active->expose_sink(memory).ok());
    EXPECT_EQ(posted.send_calls, 1);
  };
  send(10);
  ASSERT_TRUE(run_until([&] { return passive.messages.size() == 1; }));
  other_active.destroy();
  other_passive.destroy();
}

TEST_F(Posting, is_told_once_for_a_connection_that_ends_meanwhile) {
  join_and_greet();
  std::vector<std::byte> memory(5000);
  const auto sink = active->expose_sink(memory);
  passive.when_received = [&] {
    passive->write(Rope::copy_of(pattern(5000, 2)), *sink, 0, 1);
    throw std::bad_alloc();
  };
  send(10);
  ASSERT_TRUE(ended());
  EXPECT_EQ(passive.outcomes.size(), 1u);
}

struct PostingCramped : Posting {
  PostingCramped() { options.sends_max = 8; }
};

TEST_F(PostingCramped, lets_what_waited_for_the_queue_leave_several_at_a_time) {
  join_and_greet();
  posted = {};
  for (int i = 0; i < 80; ++i) send(1000);
  ASSERT_TRUE(run_until([&] { return passive.messages.size() == 80; }));
  EXPECT_EQ(posted.sends, 80);
  EXPECT_LE(posted.send_calls, 8 + 72 / 4);
}

TEST_F(Posting, shares_receives_between_the_connections_of_a_loop) {
  std::vector<std::unique_ptr<Side>> sides;
  for (int i = 0; i < 3; ++i) {
    join();
    sides.push_back(std::make_unique<Side>(std::move(active)));
    sides.push_back(std::make_unique<Side>(std::move(passive)));
  }
  EXPECT_EQ(posted.shared_queues, 1);
  for (const auto& side : sides) side->destroy();
}

TEST_F(Posting, gives_used_receives_back_several_at_a_time) {
  join_and_greet();
  posted = {};
  for (int i = 0; i < 64; ++i) send(10);
  ASSERT_TRUE(run_until([&] { return passive.messages.size() == 64; }));
  EXPECT_GE(posted.receives, 48);
  EXPECT_LE(posted.receive_calls, 5);
}

TEST_F(PostingUnshared, shares_nothing_where_a_message_without_a_receive_ends_its_connection) {
  join_and_greet();
  EXPECT_EQ(posted.shared_queues, 0);
  EXPECT_EQ(posted.receive_calls, 0);
}

}  // namespace
}  // namespace stag::testing
