// Which handle a Responder invalidates with its Reply (RFC 8797 4.1).
#include <gtest/gtest.h>

#include "rpcrdma/recorder_test.h"
#include "testing/proves.h"

namespace stag::rpcrdma {
namespace {

using namespace testing;

TEST(Responder, invalidates_the_handle_of_the_Call_only_when_it_is_the_only_one) {
  PROVES("R8797-4.1-b");
  Settings settings = server_settings();
  settings.thresholds.may_invalidate = true;
  Endpoint server(settings);
  const auto invalidated = [&](const Message& message) {
    server.receive(message);
    server.core.on_reply(server.sink.delivered.back().call, plain_reply(40));
    return server.sink.sent.back().invalidate;
  };
  EXPECT_EQ(invalidated(call_with_write(1, {segment(7, 64)})), std::optional(7u));
  EXPECT_EQ(invalidated(call_with_write(2, {segment(8, 64), segment(8, 4)})), std::optional(8u));
  EXPECT_EQ(invalidated(call_with_write(3, {segment(9, 64), segment(10, 4)})), std::nullopt);
  EXPECT_EQ(invalidated(short_call(4)), std::nullopt);
  Header header = header_of(5, 8);
  header.write_list.push_back({{segment(9, 64)}});
  header.reply_chunk = WriteChunk{{segment(10, 64)}};
  EXPECT_EQ(invalidated(with_stream(header, rpc_stream(5, CALL, 80))), std::nullopt);
}

// The handle of a Call with one that another Call in progress has too, in any list, alone or beside
// others.
TEST(Responder, invalidates_no_handle_that_another_Call_in_progress_has) {
  PROVES("R8797-4.1-b");
  Settings settings = server_settings(16);
  settings.thresholds.may_invalidate = true;
  for (const bool several : {false, true}) {
    for (const int list : {0, 1, 2}) {
      Endpoint server(settings);
      const Segments shared =
          several ? Segments{segment(12, 8), segment(11, 8)} : Segments{segment(11, 8)};
      Header other = header_of(1, 8);
      if (list == 0) other.read_list.push_back({112, shared});
      if (list == 1) other.write_list.push_back({shared});
      if (list == 2) other.reply_chunk = WriteChunk{shared};
      server.receive(with_stream(other, rpc_stream(1, CALL, 160)));
      for (const ReadAction& read : std::vector(server.sink.reads))
        server.core.on_read_done(read.call, Reason::None);
      ASSERT_EQ(server.sink.delivered.size(), 1u);
      const auto invalidated = [&](std::uint32_t xid) {
        server.receive(call_with_write(xid, {segment(11, 64)}));
        IncomingCall& call = server.sink.delivered.back().call;
        server.core.on_reply(call, plain_reply(40));
        server.core.on_sent(call);
        return server.sink.sent.back().invalidate;
      };
      EXPECT_EQ(invalidated(2), std::nullopt) << several << list;
      IncomingCall& first = server.sink.delivered[0].call;
      server.core.on_reply(first, plain_reply(40));
      server.core.on_sent(first);
      EXPECT_EQ(server.sink.sent.back().invalidate, several ? std::nullopt : std::optional(11u));
      EXPECT_EQ(invalidated(3), std::optional(11u)) << "it is alone with it again";
    }
  }
}

TEST(Responder, invalidates_nothing_unless_both_sides_agreed) {
  PROVES("R8797-4.1-c");
  Endpoint server(server_settings());
  server.receive(call_with_write(1, {segment(7, 64)}));
  server.core.on_reply(server.sink.delivered[0].call, plain_reply(40));
  EXPECT_EQ(server.sink.sent[0].invalidate, std::nullopt);
}

}  // namespace
}  // namespace stag::rpcrdma
