#include "bench/report/row.h"

#include <gtest/gtest.h>

namespace stag::bench {
namespace {

Row rate(const std::string& name, double value) {
  return {name, "calls/s", Measured::of({value})};
}

Row with_goal(Row row, const std::string& other, double bound) {
  row.goal = {Goal::Of::Row, false, bound, other};
  return row;
}

TEST(Judgement, is_by_the_value_of_the_row_that_the_goal_names) {
  const std::vector<Row> rows{rate("nfs3", 100), with_goal(rate("nfs4", 60), "nfs3", 0.7)};
  const auto judgement = judge(rows[1], rows);
  ASSERT_TRUE(judgement.has_value());
  EXPECT_DOUBLE_EQ(judgement->found, 0.6);
  EXPECT_FALSE(judgement->met);
}

TEST(Judgement, is_by_what_was_measured_in_turn_where_it_was) {
  Row measured_in_turn = with_goal(rate("nfs4", 60), "nfs3", 0.7);
  measured_in_turn.to_goal_row = 0.8;
  for (const std::vector<Row>& rows : {std::vector<Row>{}, std::vector<Row>{rate("nfs3", 100)}}) {
    const auto judgement = judge(measured_in_turn, rows);
    ASSERT_TRUE(judgement.has_value());
    EXPECT_DOUBLE_EQ(judgement->found, 0.8);
    EXPECT_TRUE(judgement->met);
  }
}

TEST(Judgement, is_none_without_the_row_that_the_goal_names) {
  EXPECT_FALSE(judge(with_goal(rate("nfs4", 60), "nfs3", 0.7), {}).has_value());
}

TEST(CpuRows, have_the_least_and_the_most_of_the_samples) {
  std::vector<Row> rows{{"null_rtt", "us", Measured::of({10}), Measured::of({10}), 3}};
  rows[0].ours.add_cpu({4, 2, 9});
  rows[0].reference->add_cpu({3, 3, 5});
  add_cpu_rows(rows);
  ASSERT_EQ(rows.size(), 2u);
  const Row& row = rows[1];
  EXPECT_EQ(row.name, "cpu_per_null");
  EXPECT_EQ(std::tuple(row.ours.least, row.ours.value, row.ours.most), std::tuple(2., 4., 9.));
  EXPECT_EQ(row.reference->most, 5.);
}

}  // namespace
}  // namespace stag::bench
