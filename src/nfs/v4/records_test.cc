// When records of clients are written and removed that nobody waits for.
#include <gtest/gtest.h>

#include <memory>
#include <thread>

#include "nfs/v4/compound/lease_timer.h"
#include "nfs/v4/compound/shared_state.h"
#include "testing/held_executor.h"
#include "testing/manual_loop.h"
#include "testing/vfs/posix_backend.h"

namespace stag::nfs::nfs4 {
namespace {

using namespace stag::testing;

class Nfs4Records : public ::testing::Test {
 protected:
  Nfs4Options options() const {
    Nfs4Options made;
    made.recovery = recovery_.get();
    return made;
  }
  bool write(state::ClientId client, const recovery::ClientOwner& owner) {
    return recovery_->write({recovery::Change::Kind::Add, client, owner, nullptr});
  }

  vfs::testing::Folder folder_{"/tmp"};
  ManualLoop loop_;
  const std::shared_ptr<HeldExecutor> worker_ = std::make_shared<HeldExecutor>(true);
  const std::unique_ptr<recovery::Recovery> recovery_ =
      *recovery::Recovery::open(folder_.path() / "db", 90, worker_);
  ServerContext context_{ServerState::ephemeral(7)};
  SharedState shared_{context_, options()};
  LeaseTimer timer_{shared_, loop_};
};

// The thread that ends the client sees no record, and no client is left for whose sake the timer
// runs.
TEST_F(Nfs4Records, go_when_their_client_ends_while_it_is_recorded_again_though_nobody_calls) {
  const recovery::ClientOwner anna{"anna", "1:0"};
  ASSERT_TRUE(write(6, {"bert", "1:0"}));
  const auto life = std::make_shared<state::Life>(7);
  std::thread recording;
  // Has the disk as long as it runs.
  recovery_->remove_unneeded([&](state::ClientId) {
    recording = std::thread([&] { shared_.record_again(life, anna); });
    while (recovery_->waiting() == 0) std::this_thread::yield();
    life->phase = state::Life::Phase::Ended;
    worker_->full = true;
    return true;
  });
  ASSERT_TRUE(recording.joinable());
  recording.join();
  EXPECT_TRUE(recovery_->unremoved());
  worker_->full = false;
  loop_.pass(std::chrono::seconds(2));
  EXPECT_FALSE(recovery_->unremoved());
}

}  // namespace
}  // namespace stag::nfs::nfs4
