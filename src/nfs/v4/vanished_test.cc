// Many clients that make a session, open a file, and are never heard of again (RFC 8881 8.3, 8.5):
// at default limits the server tells who comes too many why, keeps so much, and no more, and other
// clients notice nothing.
#include <malloc.h>

#include <map>

#include "testing/nfs/nfs4_fixture.h"

namespace stag::nfs::nfs4 {
namespace {

using namespace stag::testing;
using namespace std::chrono_literals;

class Nfs4Vanished : public Nfs4Served {
 protected:
  static constexpr int kClients = 10'000;
  // All of them within less than two leases: so the last ones meet some whose lease has run out.
  static constexpr Duration kBetween = 15ms;

  // The first status that is not NFS4_OK, of a client of this address that is new.
  v4::nfsstat4 come_and_vanish(int number) {
    via_ = &theirs_;
    const std::string name = "vanished " + std::to_string(number);
    v4::EXCHANGE_ID4args asked;
    asked.eia_clientowner.co_ownerid = Rope::copy_of(bytes_of(name));
    const Res known = compound({op(v4::OP_EXCHANGE_ID, &Op::opexchange_id, asked)});
    if (known.status != v4::NFS4_OK) return known.status;
    const auto& client = known.resarray[0].opexchange_id().eir_resok4();
    clientid_ = client.eir_clientid;
    const Res made = compound({op(v4::OP_CREATE_SESSION, &Op::opcreate_session,
                                  session_args(clientid_, client.eir_sequenceid))});
    if (made.status != v4::NFS4_OK) return made.status;
    session_ = made.resarray[0].opcreate_session().csr_resok4().csr_sessionid;
    sequenceid_ = 0;
    const v4::nfsstat4 complete = reclaim_complete();
    return complete == v4::NFS4_OK ? create("theirs").status : complete;
  }
  std::uint32_t states() { return context_.gate->files()->states(); }

  LoopbackChannel theirs_{loop_, server_, {"192.0.2.66", 700}};
};

TEST_F(Nfs4Vanished, ten_thousand_are_told_why_they_come_in_vain_and_harm_nobody) {
  v4::OPEN4args args = open_args("file", v4::OPEN4_SHARE_ACCESS_BOTH, true);
  args.share_deny = v4::OPEN4_SHARE_DENY_BOTH;
  const Opened file = open(std::move(args));
  ASSERT_EQ(file.status, v4::NFS4_OK);
  const auto ours = std::tuple(clientid_, session_, via_);
  std::uint32_t sequenceid = sequenceid_;
  std::map<v4::nfsstat4, int> told;
  const std::size_t before = ::mallinfo2().uordblks;
  std::size_t half = 0;
  for (int number = 1; number <= kClients; ++number) {
    ++told[come_and_vanish(number)];
    loop_.pass(kBetween);
    if (number == kClients / 2) half = ::mallinfo2().uordblks - before;
    if (number % 100 != 0) continue;
    std::tie(clientid_, session_, via_) = ours;
    sequenceid_ = sequenceid;
    ASSERT_EQ(run({putfh(file.handle), write_op(file.stateid, 0, "ours")}).status, v4::NFS4_OK);
    sequenceid = sequenceid_;
  }
  const std::size_t kept = ::mallinfo2().uordblks - before;
  RecordProperty("bytes", static_cast<int>(kept));
  for (const auto& [status, times] : told) {
    RecordProperty(std::to_string(status), times);
    EXPECT_TRUE(status == v4::NFS4_OK || status == v4::NFS4ERR_DELAY || status == v4::NFS4ERR_NOSPC)
        << status;
  }
  EXPECT_GE(told[v4::NFS4_OK], 1000);
  EXPECT_LT(told[v4::NFS4_OK], kClients) << "a limit is reached";
  EXPECT_LE(states(), 1 + state::ClientLimits{}.clients_of_address);
  EXPECT_LE(kept, std::size_t{32} << 20);
  EXPECT_LE(kept, half + half / 4) << "more come, and no more is kept";
}

// Those who are gone make room for who comes after them.
TEST_F(Nfs4Vanished, nobody_is_missed_who_comes_after_their_lease) {
  for (int number = 1; number <= 5000; ++number) come_and_vanish(number);
  EXPECT_NE(come_and_vanish(5001), v4::NFS4_OK);
  loop_.pass(92s);
  for (int number = 5002; number <= 5100; ++number)
    EXPECT_EQ(come_and_vanish(number), v4::NFS4_OK) << number;
}

}  // namespace
}  // namespace stag::nfs::nfs4
