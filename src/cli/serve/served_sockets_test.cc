#include "cli/serve/served_sockets.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include "net/listener.h"
#include "net/socket_address.h"

namespace stag::cli {
namespace {

// The next descriptor there is room for is the last one.
class RoomForOneDescriptor {
 public:
  RoomForOneDescriptor() {
    getrlimit(RLIMIT_NOFILE, &before_);
    const net::UniqueFd next(fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 0));
    rlimit less = before_;
    less.rlim_cur = static_cast<rlim_t>(next.fd()) + 1;
    setrlimit(RLIMIT_NOFILE, &less);
  }
  ~RoomForOneDescriptor() { setrlimit(RLIMIT_NOFILE, &before_); }
  RoomForOneDescriptor(const RoomForOneDescriptor&) = delete;
  RoomForOneDescriptor& operator=(const RoomForOneDescriptor&) = delete;

 private:
  rlimit before_{};
};

TEST(ServedSockets, are_copied_all_or_not_at_all) {
  ServedSockets sockets;
  for (int i = 0; i < 2; ++i)
    ASSERT_TRUE(sockets.open(net::SocketUse::Stream, {"127.0.0.1", 0}).ok());
  EXPECT_EQ(sockets.copies().size(), 2u);
  const RoomForOneDescriptor little;
  EXPECT_TRUE(sockets.copies().empty());
}

TEST(ServedSockets, are_made_before_they_are_wanted_where_none_is_inherited) {
  const auto use = net::SocketUse::Stream;
  auto other = net::listening_socket({"127.0.0.1", 0});
  ASSERT_TRUE(other.ok());
  const Address taken = net::SocketAddress::local_of(other->fd()).address();
  ServedSockets sockets;
  EXPECT_FALSE(sockets.reserve(use, taken).ok()) << "somebody else listens there";
  std::vector<net::UniqueFd> inherited;
  inherited.push_back(*std::move(other));
  sockets.inherit(std::move(inherited));
  EXPECT_TRUE(sockets.reserve(use, taken).ok());
  EXPECT_TRUE(sockets.reserve(use, {"127.0.0.1", 0}).ok());
  EXPECT_TRUE(sockets.open(use, taken).ok());
  EXPECT_TRUE(sockets.drop_unused().empty());
}

TEST(ServedSockets, are_made_for_datagrams_at_a_name_as_for_streams) {
  ServedSockets sockets;
  EXPECT_TRUE(sockets.open(net::SocketUse::Stream, {"localhost", 0}).ok());
  EXPECT_TRUE(sockets.open(net::SocketUse::Datagram, {"localhost", 0}).ok());
}

}  // namespace
}  // namespace stag::cli
