#include "cli/commands/top_rates.h"

#include <gtest/gtest.h>

namespace stag::cli {
namespace {

using namespace std::chrono_literals;

// Two looks, two seconds apart.
class TopRatesTest : public ::testing::Test {
 protected:
  TopRatesTest() { now_.at = before_.at + 2s; }
  TopRates rates() const { return rates_between(before_, now_); }

  TopSample before_, now_;
};

TEST_F(TopRatesTest, are_not_lowered_for_a_client_by_a_connection_that_has_ended) {
  before_.connections = {{{"a", 1, 1}, {.calls = 100}}, {{"a", 2, 2}, {.calls = 9000}}};
  now_.connections = {{{"a", 1, 1}, {.calls = 1300}}};
  ASSERT_EQ(rates().clients.size(), 1u);
  EXPECT_EQ(rates().clients[0].calls, 600);
  EXPECT_EQ(rates().clients[0].connections, 1u);
}

TEST_F(TopRatesTest, have_all_of_a_connection_that_uses_the_port_of_one_that_has_ended) {
  before_.connections = {{{"a", 1, 1}, {.calls = 100, .errors = 1, .bytes_in = 2, .bytes_out = 3}}};
  now_.connections = {{{"a", 1, 2}, {.calls = 200, .errors = 4, .bytes_in = 6, .bytes_out = 8}}};
  ASSERT_EQ(rates().clients.size(), 1u);
  const TopRates::Client client = rates().clients[0];
  EXPECT_EQ(client.calls, 100);
  EXPECT_EQ(client.errors, 2);
  EXPECT_EQ(client.bytes_in, 3);
  EXPECT_EQ(client.bytes_out, 4);
}

TEST_F(TopRatesTest, add_up_the_connections_of_each_address_and_begin_with_the_busiest) {
  before_.connections = {{{"a", 1, 1}, {.calls = 100}}};
  now_.connections = {{{"a", 1, 1}, {.calls = 110}},
                      {{"b", 1, 2}, {.calls = 10, .bytes_out = 2048}},
                      {{"b", 2, 3}, {.calls = 20}},
                      {{"c", 1, 4}, {}}};
  const TopRates found = rates();
  ASSERT_EQ(found.clients.size(), 3u);
  EXPECT_EQ(found.clients[0].address, "b");
  EXPECT_EQ(found.clients[0].connections, 2u);
  EXPECT_EQ(found.clients[0].calls, 15);
  EXPECT_EQ(found.clients[0].bytes_out, 1024);
  EXPECT_EQ(found.clients[1].address, "a");
  EXPECT_EQ(found.clients[1].calls, 5);
  EXPECT_EQ(found.clients[2].calls, 0);
}

TEST_F(TopRatesTest, count_calls_of_connections_that_have_ended_in_the_sum) {
  before_.calls = 5000;
  now_.calls = 5400;
  EXPECT_EQ(rates().calls, 200);
  EXPECT_TRUE(rates().clients.empty());
}

TEST_F(TopRatesTest, leave_out_procedures_that_nobody_called) {
  before_.procedures = {{"nfs 3 READ", {.calls = 10, .timed = 10, .microseconds = 100}},
                        {"nfs 3 NULL", {.calls = 7, .timed = 7, .microseconds = 7}}};
  now_.procedures = {{"nfs 3 READ", {.calls = 14, .timed = 12, .microseconds = 160}},
                     {"nfs 3 NULL", {.calls = 7, .timed = 7, .microseconds = 7}},
                     {"nfs operation 4 PUTFH", {.calls = 20}}};
  const TopRates found = rates();
  ASSERT_EQ(found.procedures.size(), 2u);
  EXPECT_EQ(found.procedures[0].name, "nfs operation 4 PUTFH");
  EXPECT_EQ(found.procedures[0].calls, 10);
  EXPECT_EQ(found.procedures[0].microseconds, 0);
  EXPECT_EQ(found.procedures[1].calls, 2);
  EXPECT_EQ(found.procedures[1].microseconds, 30);
}

TEST_F(TopRatesTest, are_none_for_a_server_that_was_started_meanwhile) {
  before_.calls = 5000;
  before_.procedures = {{"nfs 3 READ", {.calls = 5000}}};
  now_.calls = 3;
  now_.procedures = {{"nfs 3 READ", {.calls = 3}}};
  EXPECT_EQ(rates().calls, 0);
  EXPECT_TRUE(rates().procedures.empty());
}

}  // namespace
}  // namespace stag::cli
