#include "cli/support/remote.h"

#include <gtest/gtest.h>

#include <CLI/CLI.hpp>

namespace stag::cli {
namespace {

using namespace std::chrono_literals;

RemoteOptions given(RemoteOptions options, const std::string& line) {
  CLI::App app;
  Arguments arguments(app, {});
  options.declare(arguments);
  app.parse(line);
  return options;
}

TEST(RemoteOptions,
     that_are_hard_wait_for_a_server_that_is_not_ready_as_for_one_that_does_not_answer) {
  const nfs::client::Url url = *nfs::client::Url::parse("nfs://server/data");
  const auto calls_of = [&](const RemoteOptions& options) {
    return file_system_options(url, options).calls;
  };
  const auto hard = calls_of({.timeout = 1u << 20, .hard = true});
  EXPECT_EQ(hard.timeout, std::chrono::seconds(1u << 20));
  EXPECT_EQ(hard.jukebox_for, hard.timeout);
  const auto told = calls_of(given({}, "--timeout 60"));
  EXPECT_EQ(told.jukebox_for, 60s) << "no longer, though it would be by default";
  const auto soft = calls_of({.timeout = 1u << 20});
  EXPECT_EQ(soft.jukebox_for, nfs::client::ProtocolOptions{}.jukebox_for);
}

TEST(RemoteOptions, hold_as_they_are_given_also_where_it_is_the_usual_value) {
  EXPECT_EQ(begin_patience(given({}, "")), (BeginPatience{60s, 0s}));
  EXPECT_EQ(begin_patience(given({}, "--timeout 60")), (BeginPatience{60s, 60s}));
  EXPECT_EQ(begin_patience(given({}, "--timeout 5")), (BeginPatience{5s, 5s}));
}

TEST(RemoteOptions, that_are_hard_give_a_server_ten_seconds_to_begin_with) {
  const RemoteOptions hard{.timeout = 1u << 20, .hard = true};
  EXPECT_EQ(begin_patience(given(hard, "")), (BeginPatience{10s, 0s}));
  EXPECT_EQ(begin_patience(given(hard, "--timeout 1048576")), (BeginPatience{1048576s, 1048576s}));
}

}  // namespace
}  // namespace stag::cli
