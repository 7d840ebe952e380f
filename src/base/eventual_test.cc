#include "base/eventual.h"

#include <gtest/gtest.h>

#include <stdexcept>
#include <string>

#include "base/completion.h"

namespace stag {
namespace {

Eventual<std::string> at_once(std::string value) {
  return value;
}

Eventual<std::string> when(Completion<int>& completion) {
  co_return std::to_string(co_await completion);
}

Eventual<int> never() {
  throw std::runtime_error("never");
  co_return 0;
}

Task<void> store_eventual(Eventual<std::string> from, std::string* to) {
  *to = co_await std::move(from);
}

TEST(Eventual, holds_a_value_that_is_there_already) {
  Eventual<std::string> value = at_once("now");
  ASSERT_TRUE(value.ready());
  EXPECT_EQ(value.value(), "now");
  std::string result;
  detach(store_eventual(std::move(value), &result));
  EXPECT_EQ(result, "now");
}

TEST(Eventual, yields_later_what_has_to_be_waited_for) {
  Completion<int> completion;
  Eventual<std::string> value = when(completion);
  EXPECT_FALSE(value.ready());
  std::string result;
  detach(store_eventual(std::move(value), &result));
  EXPECT_EQ(result, "");
  completion.complete(7);
  EXPECT_EQ(result, "7");
}

TEST(Eventual, begins_what_is_not_ready_only_when_it_is_awaited) {
  Completion<int> completion;
  { const Eventual<std::string> dropped = when(completion); }
  completion.complete(1);
}

Task<int> number_of(Completion<int>& completion) {
  co_return co_await completion;
}
std::string with_suffix(int number, const std::string& suffix) {
  return std::to_string(number) + suffix;
}

TEST(Eventual, converts_what_a_Task_yields_when_it_is_there) {
  Completion<int> completion;
  std::string suffix = "th";
  auto value = Eventual<std::string>::converted<with_suffix>(number_of(completion), suffix);
  EXPECT_FALSE(value.ready());
  std::string result;
  detach(store_eventual(std::move(value), &result));
  EXPECT_EQ(result, "");
  completion.complete(7);
  EXPECT_EQ(result, "7th");
}

TEST(Eventual, begins_what_it_converts_only_when_it_is_awaited) {
  Completion<int> completion;
  std::string suffix;
  { auto dropped = Eventual<std::string>::converted<with_suffix>(number_of(completion), suffix); }
  completion.complete(1);
}

TEST(Eventual, throws_where_it_is_awaited_what_the_Task_threw_that_it_converts) {
  const auto fails = []() -> Task<int> {
    throw std::runtime_error("never");
    co_return 0;
  };
  std::string suffix;
  const auto caught = [](Eventual<std::string> from, bool* thrown) -> Task<void> {
    try {
      static_cast<void>(co_await std::move(from));
    } catch (const std::runtime_error&) {
      *thrown = true;
    }
  };
  bool thrown = false;
  detach(caught(Eventual<std::string>::converted<with_suffix>(fails(), suffix), &thrown));
  EXPECT_TRUE(thrown);
}

TEST(Eventual, throws_where_it_is_awaited_what_its_coroutine_threw) {
  const auto caught = [](bool* thrown) -> Task<void> {
    try {
      static_cast<void>(co_await never());
    } catch (const std::runtime_error&) {
      *thrown = true;
    }
  };
  bool thrown = false;
  detach(caught(&thrown));
  EXPECT_TRUE(thrown);
}

}  // namespace
}  // namespace stag
