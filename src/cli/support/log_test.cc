#include "cli/support/log.h"

#include <gtest/gtest.h>
#include <spdlog/spdlog.h>

#include <nlohmann/json.hpp>
#include <utility>

#include "base/reason.h"

namespace stag::cli {
namespace {

using namespace std::string_view_literals;

constexpr auto kHostile = "na\x1b[2Jme\n2024 forged\u009b\u202e\xff\x7f"sv;

// What is logged about something that a peer has named.
std::string logged(LogFormat format) {
  ::testing::internal::CaptureStderr();
  start_log("debug", format);
  trace(Reason::RpcPeerTooSlow, kHostile, kHostile);
  spdlog::default_logger()->flush();
  set_trace_sink(nullptr);
  return ::testing::internal::GetCapturedStderr();
}

bool is_one_plain_line(std::string line) {
  return line.ends_with('\n') && line.find_first_of("\x1b\x7f\xff\xc2\xe2\n"sv) == line.size() - 1;
}

TEST(Log, as_text_has_no_control_characters_of_a_peer) {
  const std::string line = logged(LogFormat::Text);
  EXPECT_TRUE(is_one_plain_line(line)) << line;
  EXPECT_NE(line.find("na\\033[2Jme\\0122024 forged\\302\\233\\342\\200\\256\\377\\177"), line.npos)
      << line;
}

TEST(Log, as_JSON_has_them_escaped) {
  const std::string line = logged(LogFormat::Json);
  EXPECT_TRUE(is_one_plain_line(line)) << line;
  const auto json = nlohmann::json::parse(line);
  EXPECT_EQ(json["where"], "na\x1b[2Jme\n2024 forged\u009b\u202e\ufffd\x7f");
}

}  // namespace
}  // namespace stag::cli
