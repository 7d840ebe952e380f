// Calls of a server to its client on the connection that the client made: they and their Replies
// share it with those of the client, and neither direction may keep the other from going on.
#include <gtest/gtest.h>

#include <list>
#include <random>
#include <vector>

#include "rpc/channel.h"
#include "rpc/tcp/responder.h"
#include "testing/sim_tcp_client.h"

namespace stag::rpc::tcp {
namespace {

using testing::SimClient;

constexpr std::size_t kPlenty = 1 << 20;
constexpr std::size_t kReply = 4 + 24 + 4096;
constexpr std::size_t kQuarter = kReply / 4;
constexpr std::uint32_t kReverse = SimClient::kFirstReverseXid;

// A call to the client, which the test answers, gives up, or leaves.
struct Asked {
  std::uint32_t xid = 0;
  CancelSource cancel;
  bool ended = false;
  bool answered = false;
};

Task<> ask(std::shared_ptr<Channel> back, Asked& asked, std::size_t arguments) {
  CallMessage message;
  message.xid = asked.xid = back->next_xid();
  oncrpc::CallHeader header;
  header.xid = message.xid;
  xdr::Encoder encoder;
  oncrpc::encode(encoder, header);
  encoder.fixed_opaque(testing::store::pattern(arguments, 3).flatten().bytes());
  message.stream = std::move(encoder).finish();
  message.cancel = asked.cancel;
  const auto result = co_await back->call(message);
  asked.answered = result.ok();
  asked.ended = true;
}

class TcpReverse : public SimClient {
 public:
  explicit TcpReverse(std::size_t room = kPlenty, ServerOptions options = {})
      : SimClient(room, options) {
    wire.keep();
  }
  ~TcpReverse() override {
    for (Asked& each : asked) each.cancel.cancel();
    settle();
  }
  // The server has served a Call before, and thus knows its client.
  Asked& ask_client(std::size_t arguments = 0) {
    Asked& next = asked.emplace_back();
    tasks.add(ask(service.origin->reverse.lock(), next, arguments));
    return next;
  }
  static Rope answer_to(std::uint32_t xid) {
    oncrpc::ReplyHeader header;
    header.xid = xid;
    xdr::Encoder encoder;
    oncrpc::encode(encoder, header);
    const Rope message = std::move(encoder).finish().rope();
    Rope record = Rope::copy_of(oncrpc::record_mark(static_cast<std::uint32_t>(message.size())));
    record.append(message);
    return record;
  }
  void answer(std::uint32_t xid) { wire.arrive(answer_to(xid)); }
  // The XIDs of the records of which all has left, or `most` bytes of which have.
  std::vector<std::uint32_t> left() const {
    std::vector<std::uint32_t> xids;
    const Bytes bytes = wire.kept();
    for (std::size_t at = 0; at + 8 <= bytes.size();) {
      const std::size_t size =
          load_be<std::uint32_t>(bytes.data() + at) & (oncrpc::kLastFragment - 1);
      if (at + 4 + size > bytes.size()) break;
      xids.push_back(load_be<std::uint32_t>(bytes.data() + at + 4));
      at += 4 + size;
    }
    return xids;
  }
  void take_all() {
    while (wire.take(kPlenty) > 0) settle();
  }

  std::list<Asked> asked;
};

using Xids = std::vector<std::uint32_t>;

TEST(TcpReverseTurn, is_before_every_Reply_that_has_not_begun_to_leave) {
  TcpReverse client(kQuarter);
  client.call(3);
  client.settle();
  client.service.let_go();
  client.settle();
  client.ask_client();
  client.ask_client();
  client.take_all();
  EXPECT_EQ(client.left(), (Xids{1, kReverse, kReverse + 1, 2, 3}));
}

TEST(TcpReverseTurn, is_that_of_any_record_where_none_waits) {
  TcpReverse client(kPlenty);
  client.call(2);
  client.settle();
  client.ask_client();
  client.settle();
  client.service.let_go();
  client.settle();
  EXPECT_EQ(client.left(), (Xids{kReverse, 1, 2}));
}

TEST(TcpReverseTurn, comes_to_Replies_too_however_many_calls_there_are) {
  TcpReverse client(kQuarter);
  client.call(3);
  client.settle();
  client.service.let_go();
  client.settle();
  constexpr std::size_t kThird = RecordStream::kMostAhead / 3;
  for (int i = 0; i < 4; ++i) client.ask_client(kThird);
  while (client.left().empty() || client.left().back() != 2) {
    ASSERT_GT(client.wire.take(kPlenty), 0u);
    client.settle();
  }
  EXPECT_EQ(client.left(), (Xids{1, kReverse, kReverse + 1, 2}));
  client.ask_client(kThird);
  client.take_all();
  EXPECT_EQ(client.left(),
            (Xids{1, kReverse, kReverse + 1, 2, 3, kReverse + 4, kReverse + 2, kReverse + 3}))
      << "the turn of calls comes again";
}

// What a client on a slow link has asked for may take minutes.
TEST(TcpReverseReply, is_read_while_more_Replies_wait_than_may) {
  TcpReverse client(kQuarter, SimClient::small());
  client.call(2);
  client.settle();
  client.service.let_go();
  client.settle();
  client.call();
  client.settle();
  EXPECT_GT(client.wire.unread(), 0u) << "nothing is read";
  const Asked& asked = client.ask_client();
  client.settle();
  client.answer(asked.xid);
  client.settle();
  EXPECT_TRUE(asked.answered);
  EXPECT_EQ(client.service.started, 2u) << "no further Call is, until the client takes Replies";
  client.service.hold = false;
  client.take_all();
  EXPECT_EQ(client.service.answered, 3u);
}

TEST(TcpReverseReply, is_read_though_Replies_came_to_wait_after_the_call) {
  TcpReverse client(kQuarter, SimClient::small());
  client.call(2);
  client.settle();
  const Asked& asked = client.ask_client();
  client.service.let_go();
  client.settle();
  client.answer(asked.xid);
  client.settle();
  EXPECT_TRUE(asked.answered);
  EXPECT_EQ(client.wire.taken(), 0u);
}

TEST(TcpReverseReply, leaves_reading_stopped_where_it_was_the_last) {
  TcpReverse client(kQuarter, SimClient::small());
  client.call(2);
  client.settle();
  client.service.let_go();
  client.settle();
  const Asked& asked = client.ask_client();
  client.answer(asked.xid);
  client.settle();
  ASSERT_TRUE(asked.answered);
  client.call(10);
  client.settle();
  EXPECT_GT(client.wire.unread(), 0u);
  client.service.hold = false;
  client.take_all();
  EXPECT_EQ(client.service.answered, 12u);
}

ServerOptions few_calls(std::size_t most) {
  ServerOptions options;
  options.max_calls = most;
  return options;
}

TEST(TcpReverseReply, is_read_while_all_Calls_are_in_progress_that_may_be) {
  TcpReverse client(kPlenty, few_calls(2));
  client.call(3);
  client.settle();
  ASSERT_EQ(client.service.started, 2u);
  const Asked& asked = client.ask_client();
  client.settle();
  client.answer(asked.xid);
  client.settle();
  EXPECT_TRUE(asked.answered);
  EXPECT_EQ(client.service.started, 2u);
}

TEST(TcpReverseReply, is_read_though_the_last_Call_that_may_be_came_after_the_call) {
  TcpReverse client(kPlenty, few_calls(2));
  client.call();
  client.settle();
  const Asked& asked = client.ask_client();
  client.call(2);
  client.settle();
  ASSERT_EQ(client.service.started, 2u);
  client.answer(asked.xid);
  client.settle();
  EXPECT_TRUE(asked.answered);
}

// As many Calls again as may be in progress wait to be started; whatever is behind them is not read
// until one of them is.
TEST(TcpReverseReply, is_not_read_behind_more_Calls_than_may_wait) {
  TcpReverse client(kPlenty, few_calls(2));
  client.call(2);
  client.settle();
  const Asked& asked = client.ask_client();
  client.settle();
  client.call(2);
  client.answer(asked.xid);
  client.settle();
  EXPECT_FALSE(asked.answered);
  client.service.let_one_go();
  client.settle();
  EXPECT_TRUE(asked.answered);
  EXPECT_EQ(client.service.started, 3u);
}

TEST(TcpReverseReply, is_not_read_behind_more_bytes_of_Calls_than_may_wait) {
  constexpr std::uint32_t kArguments = Responder::kMostDeferred / 4;
  TcpReverse client(kPlenty, few_calls(8));
  client.call(8);
  client.settle();
  for (const bool read : {true, false}) {
    const Asked& asked = client.ask_client();
    client.settle();
    for (std::uint32_t i = 0; i < (read ? 3 : 1); ++i)
      client.wire.arrive(SimClient::framed_call(100 + i, kArguments));
    client.answer(asked.xid);
    client.settle();
    EXPECT_EQ(asked.answered, read);
  }
  client.service.let_one_go();
  client.settle();
  EXPECT_TRUE(client.asked.back().answered);
  client.service.let_go();
  client.settle();
  client.service.let_go();
  client.settle();
  EXPECT_EQ(client.service.answered, 12u);
}

TEST(TcpReverseReply, does_not_let_the_client_fill_memory_meanwhile) {
  TcpReverse client(kPlenty, few_calls(2));
  client.call(2);
  client.settle();
  client.ask_client();
  client.call(20'000);
  client.settle();
  constexpr std::size_t kCall = 4 + 40;
  constexpr std::size_t kReadAhead = 64 << 10;
  EXPECT_GE(client.wire.unread(), 20'000 * kCall - kReadAhead);
  EXPECT_LE(client.budget->used(), 2 * kReadAhead);
  EXPECT_EQ(client.service.started, 2u);
}

// The time in which a record is to be complete counts while it is read.
TEST(TcpReverseReply, must_come_in_time_once_it_is_begun_though_Calls_wait) {
  TcpReverse client(kPlenty, few_calls(4));
  client.call(7);
  client.settle();
  const Asked& asked = client.ask_client();
  client.settle();
  const Rope record = TcpReverse::answer_to(asked.xid);
  for (std::size_t seconds = 0; seconds < 70; seconds += 10) {
    client.wire.arrive(record.slice(seconds / 10, 1));
    if (seconds == 50) client.service.let_one_go();
    client.loop.run_for(std::chrono::seconds(10));
  }
  EXPECT_FALSE(client.open());
}

// The server reads no more when the call that it has waited for is given up.
TEST(TcpReverseReply,
     is_waited_for_by_the_server_which_then_blames_nobody_for_what_it_does_not_read) {
  TcpReverse client(kPlenty, few_calls(2));
  client.call(2);
  client.settle();
  Asked& asked = client.ask_client();
  const Rope record = SimClient::framed_call(3);
  client.wire.arrive(record.slice(0, 10));
  client.settle();
  client.wire.take(kPlenty);
  asked.cancel.cancel();
  client.wire.arrive(record.slice(10, record.size() - 10));
  client.loop.run_for(std::chrono::seconds(200));
  ASSERT_TRUE(client.open());
  client.service.let_go();
  client.settle();
  EXPECT_EQ(client.service.started, 3u);
}

// Whatever happens in whichever order: once the client has taken and answered everything, every
// call of either side was answered.
TEST(TcpReverse, calls_of_either_side_are_all_answered_whatever_the_order_of_events) {
  for (std::uint32_t seed = 0; seed < 300; ++seed) {
    std::mt19937 random(seed);
    ServerOptions options = few_calls(1 + random() % 3);
    options.stream.queued = random() % 2 == 0 ? SimClient::kLessThanAReply : 3 * kReply;
    options.stream.stall = Duration::zero();
    if (random() % 2 == 0) options.max_bytes = 10'000 << random() % 4;
    TcpReverse client(random() % 2 == 0 ? 700 : 20'000, options);
    client.call();
    client.settle();
    std::uint32_t next = kReverse;  // that the client answers
    const auto answer_one = [&] {
      if (next < kReverse + client.asked.size()) client.answer(next++);
    };
    for (int i = 0; i < 80; ++i) {
      switch (random() % 7) {
        case 0:
          client.call(1 + random() % 3);
          break;
        case 1:
          client.service.let_one_go();
          break;
        case 2:
          client.ask_client(random() % 3000);
          break;
        case 3:
          answer_one();
          break;
        case 4:
          client.wire.take(random() % 6000);
          break;
        case 5:
          client.service.let_go();
          break;
        default:
          std::uint32_t steps = random() % 4;
          client.loop.run_until([&steps] { return steps-- == 0; }, Duration::zero());
      }
    }
    const auto done = [&] {
      return client.wire.taken() + client.service.started + client.service.answered + next;
    };
    for (std::size_t before = ~std::size_t{0}; before != done();) {
      before = done();
      client.service.let_go();
      answer_one();
      client.settle();
      client.wire.take(kPlenty);
      client.settle();
    }
    ASSERT_TRUE(client.open());
    ASSERT_EQ(client.service.answered, client.calls()) << "seed " << seed;
    for (const Asked& each : client.asked) ASSERT_TRUE(each.answered) << "seed " << seed;
    ASSERT_EQ(client.budget->used(), 0u);
  }
}

}  // namespace
}  // namespace stag::rpc::tcp
