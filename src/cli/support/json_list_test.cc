#include "cli/support/json_list.h"

#include <gtest/gtest.h>

#include "cli/support/output.h"

namespace stag::cli {
namespace {

Json object_of(std::uint64_t number) {
  Json object;
  Json names = Json::array();
  names.add("a\nb").add("c");
  object.set("number", number).set("names", std::move(names));
  return object;
}

std::string written(std::uint64_t count) {
  ::testing::internal::CaptureStdout();
  JsonList list;
  for (std::uint64_t i = 0; i < count; ++i) list.add(object_of(i));
  list.end();
  flush_out();
  return ::testing::internal::GetCapturedStdout();
}

TEST(JsonList, writes_what_an_array_in_memory_would_be) {
  for (const std::uint64_t count : {0, 1, 3}) {
    Json array = Json::array();
    for (std::uint64_t i = 0; i < count; ++i) array.add(object_of(i));
    EXPECT_EQ(written(count), array.text() + "\n");
  }
}

}  // namespace
}  // namespace stag::cli
