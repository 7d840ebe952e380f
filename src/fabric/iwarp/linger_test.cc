// The owner that waited on a socket before it lingers may be gone: none of its callbacks is called
// any more.
#include "fabric/iwarp/linger.h"

#include "base/check.h"
#include "fabric/iwarp/raw_peer_test.h"
#include "testing/iwarp_harness.h"

namespace stag::fabric::testing {
namespace {

constexpr std::string_view kRest = "the rest";

struct Former final : net::Reader {
  void on_readable() override { ++called; }
  int called = 0;
};

class LingerTest : public ::testing::Test {
 protected:
  LingerTest() : harness(IwarpOptions(), "127.0.0.1") {
    int ends[2];
    STAG_CHECK(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0);
    peer.emplace(UniqueFd(ends[0]));
    socket = *net::TcpSocket::adopt(harness.loop(), {UniqueFd(ends[1]), {}});
    // The peer takes nothing, until the socket takes nothing.
    const std::vector<std::byte> bytes(64 << 10);
    for (net::Transfer transfer; !transfer.drained; written += transfer.bytes)
      transfer = socket.try_write({const_cast<std::byte*>(bytes.data()), bytes.size()});
    socket.when_readable(reader);
    socket.when_writable([this] { ++writer; });
  }
  void begin_lingering() {
    iwarp::Batch rest;
    rest.append(Buffer::copy_of(bytes_of(kRest)));
    linger(std::exchange(socket, {}), std::move(rest));
  }
  void expect_rest_and_end() {
    EXPECT_TRUE(harness.run_until([this] { return peer->has_bytes(); }));
    EXPECT_EQ(hex(peer->receive(kRest.size())), hex(bytes_of(kRest)));
    EXPECT_TRUE(peer->at_end());
  }
  void expect_no_former() {
    harness.settle();
    EXPECT_EQ(reader.called, 0);
    EXPECT_EQ(writer, 0);
  }

  stag::testing::IwarpHarness harness;
  std::optional<RawPeer> peer;
  net::TcpSocket socket;
  std::size_t written = 0;
  Former reader;
  int writer = 0;
};

TEST_F(LingerTest, tells_no_former_reader_where_it_waits_to_write) {
  begin_lingering();
  peer->send(bytes_of("more"));
  expect_no_former();
  EXPECT_EQ(peer->receive(written).size(), written);
  expect_rest_and_end();
  expect_no_former();
}

TEST_F(LingerTest, tells_no_former_writer_where_all_leaves_at_once) {
  EXPECT_EQ(peer->receive(written).size(), written);
  begin_lingering();
  expect_no_former();
  expect_rest_and_end();
}

}  // namespace
}  // namespace stag::fabric::testing
