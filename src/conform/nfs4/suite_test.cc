// Our server against all cases, in one process.
#include "conform/nfs4/suite.h"

#include <gmock/gmock.h>

#include "nfs/v4/administration.h"
#include "testing/nfs/nfs4_fixture.h"

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

class ConformNfs4 : public stag::testing::Nfs4Served,
                    public ::testing::WithParamInterface<std::uint32_t> {
 protected:
  void SetUp() override {
    nfs4_.start_callbacks(loop_);
    channel_.origin().reverse = reverse_;
    channel_.origin().connection = connection_;
  }
  ~ConformNfs4() override { nfs4_.stop_callbacks(); }
  std::unique_ptr<conform::Suite> suite() {
    SuiteOptions options;
    options.minor = GetParam();
    options.path = {"data"};
    options.credentials = rpc::Credentials::sys("tests", 0, 0, {});
    options.label = "conform";
    options.callbacks = &callbacks_;
    return make_suite(&channel_, std::move(options), CancelToken(cancel_));
  }
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

  CancelSource cancel_;
  Callbacks callbacks_{loop_, {}};
  const std::shared_ptr<stag::testing::LoopbackChannel> reverse_ =
      std::make_shared<stag::testing::LoopbackChannel>(loop_, callbacks_.service());
  const std::shared_ptr<rpc::Connection> connection_ = std::make_shared<rpc::Connection>();
};

TEST_P(ConformNfs4, every_case_passes) {
  const auto all = suite();
  Counts counts;
  const auto trouble = loop_.run(conform::run(*all, {}, loop_, {}, counts));
  ASSERT_TRUE(trouble.has_value());
  EXPECT_EQ(*trouble, "");
  EXPECT_GT(counts.of[Outcome::Pass], 380);
  EXPECT_THAT(holders(), ::testing::IsEmpty()) << "they would stay when their lease is over";
  // A client of version 4.0 cannot say that it ends.
  if (GetParam() > 0) {
    EXPECT_THAT(confirmed_clients(), ::testing::IsEmpty());
  }
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

INSTANTIATE_TEST_SUITE_P(Minor, ConformNfs4, ::testing::Values(0u, 1u, 2u));

}  // namespace
}  // namespace stag::conform::nfs4
