#include "bench/raw/registration.h"

#include <gtest/gtest.h>

namespace stag::bench {
namespace {

std::vector<Row> rows_with(std::vector<double> registered) {
  std::vector<Row> rows;
  for (std::size_t i = 0; i < registered.size(); ++i) {
    Row row{"size" + std::to_string(i), "us", Measured::of({registered[i]})};
    row.reference = Measured::of({10});
    rows.push_back(std::move(row));
  }
  return rows;
}

TEST(Registration, has_a_row_for_each_size_next_to_a_copy) {
  std::size_t largest = 0;
  const auto rows =
      measure_registration({.samples = 1, .seconds = 0.001}, [&](MutableBytes memory) {
        largest = std::max(largest, memory.size());
        return true;
      });
  ASSERT_TRUE(rows.ok());
  EXPECT_EQ(rows->front().name, "register_4k");
  EXPECT_EQ(rows->back().name, "register_1m");
  EXPECT_EQ(largest, 1u << 20);
  for (const Row& row : *rows) EXPECT_TRUE(row.reference.has_value());
}

TEST(Registration, says_where_the_device_refuses_it) {
  EXPECT_FALSE(measure_registration({}, [](MutableBytes) { return false; }).ok());
}

TEST(Registration, costs_less_from_the_size_on_beyond_which_it_always_does) {
  EXPECT_EQ(crossover(rows_with({30, 9, 12, 5, 4})).substr(0, 5), "size3");
  EXPECT_EQ(crossover(rows_with({9, 9, 9, 5, 4})).substr(0, 5), "size0");
  EXPECT_EQ(crossover(rows_with({30, 30, 30, 30, 30})).substr(0, 10), "at no size");
}

}  // namespace
}  // namespace stag::bench
