// Leases that run out while no client of version 4 calls.
#include "testing/nfs/nfs40_fixture.h"
#include "testing/nfs/outside_table.h"

namespace stag::nfs::nfs4 {
namespace {

using namespace stag::testing;
using namespace std::chrono_literals;

constexpr Duration kLease = 90s;

template <class Fixture>
class Watched : public Fixture {
 protected:
  void SetUp() override {
    this->nfs4_.watch_leases(this->loop_);
    Fixture::SetUp();
  }
  ~Watched() override { this->nfs4_.stop_callbacks(); }
  state::Files& files() { return *this->context_.gate->files(); }
};

class Nfs4Leases : public Watched<Nfs4Served> {};

TEST_F(Nfs4Leases, that_run_out_are_told_to_waiters_outside_version_4) {
  state::testing::OutsideTable elsewhere(files());
  create("file");
  loop_.pass(kLease + 2s);
  EXPECT_EQ(elsewhere.told, 0) << "nobody waits";
  EXPECT_EQ(compound({sequence()}).status, v4::NFS4_OK) << "nobody wanted what it holds";
  elsewhere.waits = true;
  loop_.pass(kLease + 2s);
  EXPECT_EQ(elsewhere.told, 1);
  loop_.pass(kLease);
  EXPECT_EQ(elsewhere.told, 1);
}

TEST_F(Nfs4Leases, are_not_looked_at_while_there_is_no_client) {
  loop_.pass(kLease + 3s);
  EXPECT_FALSE(loop_.advance()) << "no timer is left";
  set_up_session("a later one");
  create("file");
  loop_.drain();
  EXPECT_TRUE(loop_.advance());
  loop_.pass(kLease + 2s);
  EXPECT_EQ(files().states(), 1u);
  EXPECT_EQ(run({putrootfh()}).status, v4::NFS4_OK) << "it had its courtesy";
}

class Nfs40Leases : public Watched<Nfs40Served> {};

TEST_F(Nfs40Leases, run_out_in_version_4_0_too) {
  loop_.pass(kLease - 2s);
  EXPECT_EQ(renew(client_), v4::NFS4_OK);
  loop_.pass(kLease + 2s);
  EXPECT_FALSE(loop_.advance()) << "the client is gone, and with it the timer";
  EXPECT_EQ(renew(client_), v4::NFS4ERR_EXPIRED);
}

}  // namespace
}  // namespace stag::nfs::nfs4
