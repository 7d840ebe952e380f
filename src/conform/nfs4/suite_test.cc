// Our server against all cases, in one process.
#include "conform/nfs4/suite.h"

#include <gmock/gmock.h>

#include "nfs/v4/administration.h"
#include "testing/nfs/conform_fixture.h"

namespace stag::conform::nfs4 {
namespace {

struct Counts final : Observer {
  void on_begin(const Title&) override {}
  void on_result(Result result) override {
    EXPECT_NE(result.verdict.outcome, Outcome::Fail)
        << result.title.full() << ": " << result.verdict.detail;
    // What a server may leave out it says; nothing else keeps a case from being asked.
    if (result.verdict.outcome == Outcome::Skipped) {
      EXPECT_THAT(result.verdict.detail, ::testing::StartsWith("the server does not offer"))
          << result.title.full();
    }
    ++of[result.verdict.outcome];
  }
  std::map<Outcome, int> of{};
};

class ConformNfs4 : public stag::testing::ConformServed,
                    public ::testing::WithParamInterface<std::uint32_t> {
 protected:
  std::unique_ptr<conform::Suite> suite() { return ConformServed::suite(GetParam(), channel_); }
  // Of the server, those that it keeps longer than their lease.
  std::vector<std::string> confirmed_clients() {
    std::vector<std::string> names;
    for (std::uint32_t i = 0; i < nfs::state::Clients::kShards; ++i)
      for (const auto& client : nfs4_.administration().clients(i, loop_.now()))
        if (client.info.confirmed) names.push_back(client.info.co_ownerid);
    return names;
  }

  // Those with something open or locked.
  std::vector<std::string> holders() {
    std::vector<std::string> names;
    for (std::uint32_t i = 0; i < nfs::state::Clients::kShards; ++i)
      for (const auto& client : nfs4_.administration().clients(i, loop_.now()))
        if (client.held.opens + client.held.locks != 0) names.push_back(client.info.co_ownerid);
    return names;
  }
};

TEST_P(ConformNfs4, every_case_passes) {
  const auto all = suite();
  Counts counts;
  const auto trouble =
      loop_.run(conform::run(*all, {.dangerous = true, .slow = true}, loop_, {}, counts));
  ASSERT_TRUE(trouble.has_value());
  EXPECT_EQ(*trouble, "");
  EXPECT_GT(counts.of[Outcome::Pass], 380);
  EXPECT_THAT(holders(), ::testing::IsEmpty()) << "they would stay when their lease is over";
  // A client of version 4.0 cannot say that it ends.
  if (GetParam() > 0) {
    EXPECT_THAT(confirmed_clients(), ::testing::IsEmpty());
  }
}

TEST_P(ConformNfs4, cases_that_wait_for_a_lease_are_left_out_unless_they_are_wanted) {
  const auto all = suite();
  struct Skipped final : Observer {
    void on_begin(const Title&) override { ++begun; }
    void on_result(Result result) override {
      EXPECT_EQ(result.verdict.outcome, Outcome::Skipped) << result.title.full();
      EXPECT_THAT(result.verdict.detail, ::testing::HasSubstr("--slow-cases"));
      ++skipped;
    }
    int begun = 0, skipped = 0;
  } seen;
  const TimePoint before = loop_.now();
  loop_.run(conform::run(*all, {.pattern = "*.READ.NFS4ERR_EXPIRED*"}, loop_, {}, seen));
  EXPECT_EQ(seen.begun, 0);
  EXPECT_EQ(seen.skipped, 1);
  EXPECT_EQ(loop_.now(), before);
}

TEST_P(ConformNfs4, cases_of_what_a_lease_has_ended_wait_once_for_all) {
  const auto all = suite();
  Counts counts;
  const TimePoint before = loop_.now();
  loop_.run(
      conform::run(*all, {.pattern = "*.NFS4ERR_EXPIRED, by a*", .slow = true}, loop_, {}, counts));
  EXPECT_GT(counts.of[Outcome::Pass], 7);
  EXPECT_LT(loop_.now() - before, std::chrono::seconds(2 * nfs::nfs4::Nfs4Options().lease_seconds));
}

TEST_P(ConformNfs4, every_error_of_the_tables_is_a_case_or_has_a_reason) {
  const auto all = suite();
  for (const Case& one : all->cases())
    EXPECT_NE(one.listed, "no case asks for it") << one.title.full();
}

TEST_P(ConformNfs4, no_two_cases_have_the_same_name) {
  const auto all = suite();
  std::set<std::string> names;
  for (const Case& one : all->cases())
    EXPECT_TRUE(names.insert(one.title.full() + one.title.section).second) << one.title.full();
}

// A server that ends a client with its lease, and is slow: each case takes a while.
class ConformNfs4Slowly : public stag::testing::ConformServed {
 protected:
  static nfs::nfs4::Nfs4Options without_courtesy() {
    nfs::nfs4::Nfs4Options options;
    options.courtesy_seconds = 0;
    return options;
  }
  ConformNfs4Slowly() : ConformServed(without_courtesy()) {}

  struct Passes final : Observer {
    Passes(stag::testing::ManualLoop& on, Duration of_each) : loop(on), each(of_each) {}
    void on_begin(const Title&) override {}
    void on_result(Result result) override {
      if (result.verdict.outcome == Outcome::Listed) return;
      EXPECT_EQ(result.verdict.outcome, Outcome::Pass)
          << result.title.full() << ": " << result.verdict.detail;
      ++count;
      loop.pass(each);
    }
    stag::testing::ManualLoop& loop;
    const Duration each;
    int count = 0;
  };
  const std::chrono::seconds lease_{nfs::nfs4::Nfs4Options().lease_seconds};
};

TEST_F(ConformNfs4Slowly, who_has_lost_a_delegation_loses_nothing_else_while_cases_go_on) {
  const auto all = suite(1, channel_);
  Passes passes(loop_, lease_ / 4);
  const TimePoint before = loop_.now();
  const Selection selection{.pattern = "nfs4.1.[RW][ER][AI]*", .dangerous = true, .slow = true};
  EXPECT_EQ(loop_.run(conform::run(*all, selection, loop_, {}, passes)), "");
  EXPECT_GT(passes.count, 10);
  const Duration waited = loop_.now() - before - passes.count * passes.each;
  EXPECT_LT(2 * waited, 5 * lease_) << "once for a lease, and once for a delegation";
}

TEST_F(ConformNfs4Slowly, whose_lease_has_run_out_is_not_asked_for_what_it_has_lost) {
  const auto all = suite(1, channel_);
  Passes passes(loop_, 2 * lease_);
  const Selection selection{.pattern = "nfs4.1.*recalled a lease ago", .slow = true};
  EXPECT_EQ(loop_.run(conform::run(*all, selection, loop_, {}, passes)), "");
  EXPECT_GT(passes.count, 3);
}

INSTANTIATE_TEST_SUITE_P(Minor, ConformNfs4, ::testing::Values(0u, 1u, 2u));

}  // namespace
}  // namespace stag::conform::nfs4
