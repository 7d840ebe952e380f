#include "cli/support/remote.h"

#include <gtest/gtest.h>

namespace stag::cli {
namespace {

TEST(RemoteOptions,
     that_are_hard_wait_for_a_server_that_is_not_ready_as_for_one_that_does_not_answer) {
  const nfs::client::Url url = *nfs::client::Url::parse("nfs://server/data");
  const auto calls_of = [&](const RemoteOptions& options) {
    return file_system_options(url, options).calls;
  };
  const auto hard = calls_of({.timeout = 1u << 20, .hard = true});
  EXPECT_EQ(hard.timeout, std::chrono::seconds(1u << 20));
  EXPECT_EQ(hard.jukebox_for, hard.timeout);
  const auto soft = calls_of({.timeout = 1u << 20});
  EXPECT_EQ(soft.jukebox_for, nfs::client::ProtocolOptions{}.jukebox_for);
}

}  // namespace
}  // namespace stag::cli
