#include "cli/commands/top_screen.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>
#include <utility>
#include <vector>

namespace stag::cli {
namespace {

using ::testing::Contains;
using ::testing::Each;
using ::testing::EndsWith;
using ::testing::Not;
using ::testing::SizeIs;
using ::testing::StartsWith;

TopRates busy(std::size_t clients, std::size_t procedures) {
  TopRates rates;
  rates.calls = 600;
  for (std::size_t i = 0; i < clients; ++i)
    rates.clients.push_back({.address = fmt::format("192.0.2.{}", i),
                             .connections = 1,
                             .calls = 123456.7,
                             .errors = 12345.6,
                             .bytes_in = 1023.9 * 1024,
                             .bytes_out = 1023.9 * 1024});
  for (std::size_t i = 0; i < procedures; ++i)
    rates.procedures.push_back({fmt::format("nfs operation 4 OPERATION_{}", i), 99.5, 12});
  return rates;
}

std::vector<std::string> lines_of(const TopRates& rates, WindowSize window) {
  std::istringstream text(top_text(rates, 60, window));
  std::vector<std::string> lines;
  for (std::string line; std::getline(text, line);) lines.push_back(line);
  return lines;
}

std::size_t rows_of(const std::vector<std::string>& lines, const char* beginning) {
  return static_cast<std::size_t>(std::ranges::count_if(
      lines, [&](const std::string& line) { return line.starts_with(beginning); }));
}

MATCHER_P(fits, columns, "") {
  return arg.size() <= columns;
}

TEST(TopScreen, fits_into_a_terminal_of_24_by_80_whoever_is_busy) {
  for (const std::size_t clients : {0, 1, 9, 10, 18, 19, 500})
    for (const std::size_t procedures : {0, 1, 8, 9, 10, 18, 60}) {
      const auto lines = lines_of(busy(clients, procedures), {24, 80});
      EXPECT_LE(lines.size(), 23u);
      EXPECT_THAT(lines, Each(fits(80u)));
      EXPECT_THAT(lines[0], StartsWith("600 calls/s of "));
      EXPECT_THAT(lines, Contains(StartsWith("CLIENT ")));
      EXPECT_THAT(lines, Contains(StartsWith("PROCEDURE ")));
    }
}

TEST(TopScreen, gives_each_table_half_and_what_the_other_does_not_need) {
  using Rows = std::pair<std::size_t, std::size_t>;
  const auto shown = [](std::size_t clients, std::size_t procedures) {
    const auto lines = lines_of(busy(clients, procedures), {24, 80});
    return Rows(rows_of(lines, "192.0.2."), rows_of(lines, "nfs operation"));
  };
  EXPECT_EQ(shown(9, 9), Rows(9, 9));
  EXPECT_EQ(shown(500, 500), Rows(8, 8));
  EXPECT_EQ(shown(1, 500), Rows(1, 16));
  EXPECT_EQ(shown(500, 2), Rows(15, 2));
  EXPECT_EQ(shown(18, 0), Rows(18, 0));
}

TEST(TopScreen, says_how_many_rows_it_leaves_out) {
  const auto lines = lines_of(busy(30, 40), {24, 80});
  EXPECT_THAT(lines, Contains("... 22 more"));
  EXPECT_THAT(lines, Contains("... 32 more"));
  EXPECT_THAT(lines_of(busy(9, 9), {24, 80}), Not(Contains(EndsWith(" more"))));
}

TEST(TopScreen, leaves_out_nothing_without_a_window) {
  EXPECT_THAT(lines_of(busy(100, 200), kNoWindow), SizeIs(305));
}

TEST(TopScreen, shows_the_end_of_an_address_that_is_too_long) {
  TopRates rates = busy(1, 0);
  rates.clients[0].address = "2001:db8:aaaa:bbbb:1234:5678:9abc:def0";
  EXPECT_THAT(lines_of(rates, {24, 80}), Contains(StartsWith("..:aaaa:bbbb:1234:5678:9abc:def0 ")));
  EXPECT_THAT(lines_of(rates, {24, 92}), Contains(StartsWith(rates.clients[0].address + " ")));
}

TEST(TopScreen, never_scrolls_in_the_smallest_windows) {
  for (std::size_t rows = 1; rows < 10; ++rows)
    for (std::size_t columns = 1; columns < 100; ++columns) {
      const auto lines = lines_of(busy(20, 20), {rows, columns});
      EXPECT_LE(lines.size(), std::max<std::size_t>(rows, 2) - 1);
      EXPECT_THAT(lines, Each(fits(columns)));
    }
}

}  // namespace
}  // namespace stag::cli
