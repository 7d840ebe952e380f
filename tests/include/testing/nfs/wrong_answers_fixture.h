// Cases of `stag conform nfs4` against our server behind one that changes its results, or says that
// an operation was done of which our server never hears.
#pragma once

#include <gmock/gmock.h>

#include <algorithm>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "testing/nfs/conform_fixture.h"

namespace stag::testing {

// A way to a server that answers no more.
class FallingSilent final : public rpc::Channel {
 public:
  explicit FallingSilent(rpc::Channel& way) : Channel(1), way_(way) {}
  Task<Result<rpc::ReplyMessage, rpc::CallError>> call(rpc::CallMessage& message) override {
    if (silent) {
      ++unanswered;
      co_return Failure{rpc::CallError::transport(Reason::TimedOut, where())};
    }
    co_return co_await way_.call(message);
  }
  Task<void> close() override { co_return; }
  void serve_reverse(rpc::Service&) override {}
  std::uint64_t connections_lost() const override { return 0; }
  Loop& loop() override { return way_.loop(); }
  rpc::TransportKind kind() const override { return way_.kind(); }
  std::string where() const override { return way_.where(); }

  bool silent = false;
  int unanswered = 0;  // Calls, each of which would wait for its timeout

 private:
  rpc::Channel& way_;
};

class WrongAnswers : public ConformServed {
 protected:
  using Args = nfs::v4::COMPOUND4args;
  using Results = nfs::v4::COMPOUND4res;
  using Change = std::function<void(const Args&, Results&)>;
  // The first `times` operations that `is_it` knows are answered with `result`, and not done.
  struct LeftOut {
    std::function<bool(const nfs::v4::nfs_argop4&)> is_it;
    nfs::v4::nfs_resop4 result;
    int times = 1;
  };

  WrongAnswers() {
    changer_.add<nfs::v4::NFSPROC4_COMPOUND>(
        [this](rpc::CallContext&, Args args) { return changed(std::move(args)); });
  }
  struct Ran {
    std::vector<conform::Verdict> verdicts;
    std::string trouble;
  };
  Ran run(std::uint32_t minor, std::string pattern) {
    const auto all = suite(minor, way_);
    Verdicts verdicts;
    const conform::Selection selection{
        .pattern = std::move(pattern), .dangerous = true, .slow = true};
    const auto trouble = loop_.run(conform::run(*all, selection, loop_, {}, verdicts));
    return {std::move(verdicts.all), trouble.value_or("the run does not end")};
  }
  // Of the only case with such a name.
  conform::Verdict verdict_on(std::uint32_t minor, std::string pattern) {
    Ran ran = run(minor, std::move(pattern));
    EXPECT_EQ(ran.trouble, "");
    EXPECT_EQ(ran.verdicts.size(), 1u);
    return ran.verdicts.empty() ? conform::Verdict::skip("no case") : ran.verdicts.front();
  }
  // With what is set as `when_wrong` or `left_out_when_wrong`, and not without.
  void expect_failure(std::uint32_t minor, std::string pattern, const std::string& why) {
    change = nullptr;
    const conform::Verdict right = verdict_on(minor, pattern);
    EXPECT_EQ(right.outcome, conform::Outcome::Pass) << right.detail;
    change = std::exchange(when_wrong, nullptr);
    left_out = std::exchange(left_out_when_wrong, std::nullopt);
    const conform::Verdict verdict = verdict_on(minor, std::move(pattern));
    EXPECT_EQ(verdict.outcome, conform::Outcome::Fail);
    EXPECT_THAT(verdict.detail, ::testing::HasSubstr(why));
  }

  Change change, when_wrong;
  std::optional<LeftOut> left_out, left_out_when_wrong;
  // The first COMPOUND that it knows is the last one to be answered.
  std::function<bool(const Args&)> falls_silent;
  int unanswered() const { return way_.unanswered; }

 private:
  struct Verdicts final : conform::Observer {
    void on_begin(const conform::Title&) override {}
    void on_result(conform::Result result) override { all.push_back(std::move(result.verdict)); }
    std::vector<conform::Verdict> all;
  };

  Task<Results> changed(Args args) {
    way_.silent = falls_silent && falls_silent(args);
    std::optional<std::size_t> place;
    if (left_out) {
      const auto found = std::ranges::find_if(args.argarray, left_out->is_it);
      if (found != args.argarray.end()) {
        place = static_cast<std::size_t>(found - args.argarray.begin());
        args.argarray.erase(found);
      }
    }
    rpc::Client client(channel_, {}, rpc::Credentials::sys("tests", 0, 0, {}));
    auto results = co_await client.call<nfs::v4::NFSPROC4_COMPOUND>(args);
    EXPECT_TRUE(results.ok());
    if (place && results->resarray.size() >= *place) {
      results->resarray.insert(results->resarray.begin() + static_cast<std::ptrdiff_t>(*place),
                               left_out->result);
      if (--left_out->times == 0) left_out.reset();
    }
    if (change) change(args, *results);
    co_return *std::move(results);
  }

  rpc::Server changer_;
  LoopbackChannel answering_{loop_, changer_};
  FallingSilent way_{answering_};
};

}  // namespace stag::testing
