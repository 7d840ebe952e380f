#include "cli/serve/served_sockets.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

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

}  // namespace
}  // namespace stag::cli
