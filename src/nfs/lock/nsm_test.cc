// What this host's own status monitor does when it is told of a crash.
#include "nfs/lock/nsm.h"

#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "nfs/proto/nsm.h"
#include "testing/nfs/lock_service_fixture.h"

namespace stag::nfs::lock {
namespace {

using SimulatedCrash = LockServiceFixture;

TEST_F(SimulatedCrash, takes_no_lock_away_before_the_grace_period_protects_it) {
  crash();
  grace_ = std::make_shared<state::GracePeriod>();
  std::vector<std::size_t> held_at_begin;
  grace_->tell([&](const state::GracePeriod::Info& info) {
    if (info.active) held_at_begin.push_back(service_->size());
  });
  begin();
  ASSERT_EQ(lock(kA), nlm::NLM4_GRANTED);
  locks_->origin().peer = {"127.0.0.1", 700};
  const auto crashed =
      loop_.run(rpc::Client(*locks_, {}, credentials_).call<nsm::SM_SIMU_CRASH>(xdr::Void{}));
  ASSERT_TRUE(crashed.has_value() && crashed->ok());
  EXPECT_EQ(held_at_begin, std::vector<std::size_t>{1});
  EXPECT_EQ(service_->size(), 0u);
  EXPECT_EQ(lock(kB), nlm::NLM4_DENIED_GRACE_PERIOD);
}

}  // namespace
}  // namespace stag::nfs::lock
