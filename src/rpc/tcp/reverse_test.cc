// Calls of a server to its client on the connection that the client made: they and their Replies
// share it with those of the client, and neither direction may keep the other from going on.
#include <gtest/gtest.h>

#include <list>
#include <vector>

#include "rpc/channel.h"
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

}  // namespace
}  // namespace stag::rpc::tcp
