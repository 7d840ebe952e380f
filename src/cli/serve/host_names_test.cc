#include "cli/serve/host_names.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <future>
#include <memory>

namespace stag::cli {
namespace {

using Checked = Result<std::string, std::string>;

// The rest is not asked for, since each question would take as long again.
TEST(NetgroupCheck, asks_nobody_any_more_once_nobody_has_answered) {
  struct Source {
    std::promise<void> end_of_test;
    std::shared_future<void> ended = end_of_test.get_future().share();
    std::atomic<int> asked{0};
  };
  const auto source = std::make_shared<Source>();
  NetgroupCheck netgroups(
      [source](const std::string&) -> std::optional<Checked> {
        ++source->asked;
        source->ended.wait();
        return Checked(std::string());
      },
      std::chrono::milliseconds(1));
  for (const char* netgroup : {"one", "two", "three"}) {
    const Checked checked = netgroups.check(netgroup);
    ASSERT_TRUE(checked.ok());
    EXPECT_NE(checked->find("does not answer"), std::string::npos) << netgroup;
  }
  source->end_of_test.set_value();
  EXPECT_LE(source->asked, 1) << "its thread may not have begun";
}

TEST(NetgroupCheck, asks_nobody_any_more_once_another_question_is_in_the_way) {
  const auto asked = std::make_shared<std::atomic<int>>(0);
  NetgroupCheck netgroups(
      [asked](const std::string& netgroup) -> std::optional<Checked> {
        ++*asked;
        if (netgroup == "behind") return std::nullopt;
        return Checked(std::string("there is no such netgroup"));
      },
      std::chrono::minutes(1));
  EXPECT_EQ(*netgroups.check("first"), "there is no such netgroup");
  for (const char* netgroup : {"behind", "first"})
    EXPECT_NE(netgroups.check(netgroup)->find("does not answer"), std::string::npos) << netgroup;
  EXPECT_EQ(*asked, 2);
}

}  // namespace
}  // namespace stag::cli
