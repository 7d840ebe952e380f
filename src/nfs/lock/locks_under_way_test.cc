// What a client has asked for and has not got yet when it takes it back, or loses all it has: a
// store does not answer.
#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>

#include "testing/nfs/lock_hosts.h"
#include "testing/vfs/stepped_store.h"

namespace stag::nfs::lock {
namespace {

class LocksUnderWay : public Locks {
 protected:
  LocksUnderWay() {
    ExportOptions open;
    open.root_squash = false;
    const auto slow = std::make_shared<vfs::testing::SteppedStore>(store_, held_);
    STAG_CHECK(nfs_.replace_exports({{"/data", slow, open}}).ok());
  }
  template <class P>
  static Task<void> keep_answer(rpc::Channel& channel, rpc::Credentials credentials,
                                typename P::Args args, std::optional<typename P::Results>& answer) {
    rpc::Client client(channel, {}, credentials);
    auto result = co_await client.call<P>(args);
    if (result) answer = *result;
  }
  // Does `meanwhile` while the store has this call of kA.
  template <class P, class Meanwhile>
  typename P::Results answer_to(const typename P::Args& args, Meanwhile meanwhile) {
    from(kA);
    std::optional<typename P::Results> answer;
    detach(keep_answer<P>(channel_, credentials_, args, answer));
    loop_.drain();
    EXPECT_EQ(held_->waiting.size(), 1u);
    meanwhile();
    while (!held_->waiting.empty()) {
      held_->release_all();
      loop_.drain();
    }
    STAG_CHECK(answer.has_value());
    return *answer;
  }
  template <class Meanwhile>
  nlm4_stats lock_while(Meanwhile meanwhile) {
    const nlm4_lockargs args{object("c"), false, true, lock_of(kA, 0, 10), false, 5};
    return answer_to<NLMPROC4_LOCK>(args, meanwhile).stat.stat;
  }

  std::shared_ptr<vfs::testing::HeldSteps> held_ = std::make_shared<vfs::testing::HeldSteps>();
  const std::string name_ = std::string("host-") + kA;
};

TEST_F(LocksUnderWay, are_nobodys_when_SM_NOTIFY_tells_that_their_host_restarted) {
  EXPECT_EQ(lock_while([&] { notify(kA, name_, 7); }), NLM4_DENIED);
  EXPECT_EQ(service_->size(), 0u);
}

TEST_F(LocksUnderWay, are_withdrawn_by_FREE_ALL_and_by_an_administrator) {
  EXPECT_EQ(lock_while([&] {
              from(kA);
              ask<NLMPROC4_FREE_ALL>({name_, 7});
            }),
            NLM4_DENIED);
  EXPECT_EQ(lock_while([&] { service_->release(Client{kA, name_}); }), NLM4_DENIED);
  EXPECT_EQ(service_->size(), 0u);
}

TEST_F(LocksUnderWay, withdraw_a_SHARE_by_UNSHARE_alone) {
  const nlm_share one{name_, handle(), object("1"), fsm_DRW, fsa_RW};
  const auto share_while = [&](auto meanwhile) {
    return answer_to<NLMPROC4_SHARE>({object("c"), one, false}, meanwhile).stat;
  };
  EXPECT_EQ(share_while([&] { ask<NLMPROC4_UNSHARE>({object("c"), one, false}); }), NLM4_DENIED);
  EXPECT_EQ(service_->size(), 0u);
  const nlm4_lock all{name_, handle(), object("1"), 0, 0, 0};
  EXPECT_EQ(share_while([&] { ask<NLMPROC4_UNLOCK>({object("c"), all}); }), NLM4_GRANTED);
}

}  // namespace
}  // namespace stag::nfs::lock
