// SEQUENCE, and the checks of stateids and shares, take nothing from the heap; an open takes
// little.
#include <gtest/gtest.h>
#include <malloc.h>

#include <string>

#include "testing/counted_new.h"
#include "testing/nfs/state_world.h"

namespace stag::nfs::state {
namespace {

using testing::World;

TEST(Nfs4StateMemory, a_request_in_steady_state_allocates_nothing) {
  World world;
  const testing::Client client = world.client("client");
  const Stateid stateid = world.open(client, 1, kShareBoth, kShareWrite).stateid;
  const Stateid lock = world.lock(client, 1, stateid, {0, 9}, true).stateid;
  const FileKey file = World::file(1), other = World::file(2);
  const ReplyPtr reply = std::make_shared<testing::StoredReply>(1);
  const std::size_t before = stag::testing::heap_allocations;
  int good = 0;
  for (SequenceId number = 1; number <= 1000; ++number) {
    const Sequenced running = world.sequence(client.session, 5, number);
    good += running.kind == Sequenced::Kind::Run;
    good += world.files.check(file, stateid, *client.life, Touch::Read).granted();
    good += world.files.check(file, lock, *client.life, Touch::Write).granted();
    good += world.files.access(other, Touch::Write).granted();
    good += !world.files.access(file, Touch::Write).granted();
    world.finish(running, reply);
    good += world.sequence(client.session, 5, number).kind == Sequenced::Kind::Replay;
  }
  EXPECT_EQ(stag::testing::heap_allocations, before);
  EXPECT_EQ(good, 6000);
}

TEST(Nfs4StateMemory, an_open_of_a_file_takes_a_KiB_at_most_with_its_owner) {
  World world;
  const testing::Client client = world.client("client");
  const std::string owner(64, 'o');
  constexpr std::uint64_t kOpens = 20'000;
  const std::size_t before = ::mallinfo2().uordblks;
  for (std::uint64_t i = 0; i < kOpens; ++i)
    ASSERT_TRUE(world.open(client, i, kShareBoth, 0, owner).verdict.granted());
  EXPECT_LE((::mallinfo2().uordblks - before) / kOpens, 1024u);
  RecordProperty("bytes", static_cast<int>((::mallinfo2().uordblks - before) / kOpens));
}

}  // namespace
}  // namespace stag::nfs::state
