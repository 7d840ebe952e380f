// Servers whose results are not what their status says. What comes of each case does not matter
// here, but that it ends.
#include <gmock/gmock.h>

#include "conform/nfs4/suite.h"
#include "testing/nfs/nfs4_fixture.h"

namespace stag::conform::nfs4 {
namespace {

using namespace nfs::v4;  // NOLINT: tables are made of its names

struct Failures final : Observer {
  void on_begin(const Title&) override {}
  void on_result(Result result) override { count += result.verdict.outcome == Outcome::Fail; }
  int count = 0;
};

enum class Fault : std::uint8_t { NoResults, OneTooFew, Failed, FailedBefore, Illegal };

// As our server's, with another status.
nfs_resop4 with_status(const nfs_resop4& result, nfsstat4 status) {
  xdr::Encoder encoder;
  encode(encoder, result);
  encoder.patch_u32(4, status);
  for (int i = 0; i < 16; ++i) encoder.u32(0);  // for the arm of errors, which may be longer
  xdr::Decoder decoder(std::move(encoder).finish().rope().flatten());
  nfs_resop4 changed;
  EXPECT_TRUE(decode(decoder, changed));
  return changed;
}

void spoil(COMPOUND4res& results, Fault fault) {
  auto& all = results.resarray;
  if (results.status != NFS4_OK || all.empty()) return;
  if (fault == Fault::NoResults) all.clear();
  if (fault == Fault::OneTooFew) all.pop_back();
  if (fault == Fault::Failed) all.back() = with_status(all.back(), NFS4ERR_SERVERFAULT);
  if (fault == Fault::FailedBefore) all.front() = with_status(all.front(), NFS4ERR_SERVERFAULT);
  if (fault == Fault::Illegal) {
    all.back() = nfs_resop4();
    all.back().resop = OP_ILLEGAL;
  }
}

// Our server behind one that spoils COMPOUNDs of more than `from` operations.
class Misbehaving : public stag::testing::Nfs4Served,
                    public ::testing::WithParamInterface<std::uint32_t> {
 protected:
  Misbehaving() {
    spoiler_.add<NFSPROC4_COMPOUND>(
        [this](rpc::CallContext&, COMPOUND4args args) { return spoiled(std::move(args)); });
  }
  Task<COMPOUND4res> spoiled(COMPOUND4args args) {
    rpc::Client client(channel_, {}, rpc::Credentials::sys("tests", 0, 0, {}));
    auto results = co_await client.call<NFSPROC4_COMPOUND>(args);
    EXPECT_TRUE(results.ok());
    if (args.argarray.size() > from_) spoil(*results, fault_);
    co_return *std::move(results);
  }

  rpc::Server spoiler_;
  stag::testing::LoopbackChannel way_{loop_, spoiler_};
  Fault fault_ = Fault::NoResults;
  std::size_t from_ = 0;
};

TEST_P(Misbehaving, servers_fail_and_end_nothing) {
  for (const std::size_t from : {0u, 1u, 2u, 3u, 4u})
    for (const Fault fault :
         {Fault::NoResults, Fault::OneTooFew, Fault::Failed, Fault::FailedBefore, Fault::Illegal}) {
      fault_ = fault;
      from_ = from;
      CancelSource cancel;
      SuiteOptions options;
      options.minor = GetParam();
      options.path = {"data"};
      options.credentials = rpc::Credentials::sys("tests", 0, 0, {});
      options.label = "conform" + std::to_string(from) + std::to_string(static_cast<int>(fault));
      const auto suite = make_suite(&way_, std::move(options), CancelToken(cancel));
      Failures failures;
      const auto trouble = loop_.run(conform::run(*suite, {}, loop_, {}, failures));
      ASSERT_TRUE(trouble.has_value());
      EXPECT_TRUE(!trouble->empty() || failures.count > 0) << options.label;
    }
}

INSTANTIATE_TEST_SUITE_P(Minor, Misbehaving, ::testing::Values(0u, 1u, 2u));

}  // namespace
}  // namespace stag::conform::nfs4
