// Where memory runs out what is recorded is whole: the clients of another server are adopted, or
// they are not.
#include <gtest/gtest.h>

#include <string>

#include "nfs/recovery/recovery.h"
#include "testing/failing_new.h"
#include "testing/vfs/posix_backend.h"

namespace stag::nfs::recovery {
namespace {

constexpr int kClients = 20;

std::unique_ptr<Recovery> opened(const std::string& path) {
  auto recovery = Recovery::open(path, 90, nullptr);
  STAG_CHECK(recovery.ok());
  return *std::move(recovery);
}

ClientOwner owner(int number) {
  return {"a client with a name that is no short string, number " + std::to_string(number), "1:0"};
}

// Whether one of them may claim something.
bool any(const Recovery& recovery) {
  for (int i = 0; i < kClients; ++i)
    if (recovery.may_reclaim(owner(i))) return true;
  return false;
}

TEST(Nfs4AdoptionMemory, running_out_leaves_all_clients_where_they_were) {
  const vfs::testing::Folder folder("/tmp");
  const std::string there = folder.path() / "there", here = folder.path() / "here";
  for (int i = 0; i < kClients; ++i) {
    const auto id = static_cast<state::ClientId>(i + 1);
    ASSERT_TRUE(opened(there)->write({Change::Kind::Add, id, owner(i)}));
  }
  auto server = opened(here);
  auto lost = Database::open_ended(there);
  ASSERT_TRUE(lost.ok());
  state::GracePeriod period;
  std::size_t failed = 0;
  for (bool done = false; !done; ++failed) {
    bool adopted = false;
    stag::testing::allocations_until_failure = failed + 1;
    try {
      adopted = server->adopt(**lost, period, TimePoint() + std::chrono::seconds(90)).ok();
    } catch (const std::bad_alloc&) {
    }
    done = std::exchange(stag::testing::allocations_until_failure, 0) != 0;
    EXPECT_EQ(adopted, done) << failed;
    EXPECT_EQ(any(*server), done) << failed;
    EXPECT_EQ(period.active(), done) << failed;
  }
  EXPECT_GT(failed, static_cast<std::size_t>(kClients));
  server = opened(here);
  EXPECT_TRUE(any(*server)) << "it is written";
  EXPECT_FALSE(any(*opened(there)));
}

// No request waits for the end of a record, and none would ask for it again.
TEST(Nfs4RecordsMemory, running_out_at_the_end_of_a_record_has_it_written_with_the_next_change) {
  const vfs::testing::Folder folder("/tmp");
  std::size_t failed = 0, unremoved = 0;
  for (bool done = false; !done; ++failed) {
    const std::string path = folder.path() / std::to_string(failed);
    auto server = opened(path);
    ASSERT_TRUE(server->write({Change::Kind::Add, 1, owner(1)}));
    stag::testing::allocations_until_failure = failed + 1;
    server->remove_later(1);
    done = std::exchange(stag::testing::allocations_until_failure, 0) != 0;
    EXPECT_EQ(server->unremoved(), !done) << failed;
    if (server->unremoved()) ++unremoved;
    ASSERT_TRUE(server->write({Change::Kind::Add, 2, owner(2)}));
    EXPECT_FALSE(server->unremoved());
    server = opened(path);
    EXPECT_TRUE(server->may_reclaim(owner(2)));
    EXPECT_FALSE(server->may_reclaim(owner(1))) << failed;
  }
  EXPECT_GT(unremoved, 0u);
}

// A client that was not ended after all goes on, and is taken for recorded.
TEST(Nfs4RecordsMemory, that_runs_out_for_a_change_leaves_nothing_of_it_to_be_written_later) {
  const vfs::testing::Folder folder("/tmp");
  std::size_t failed = 0;
  for (bool removed = false; !removed; ++failed) {
    const std::string path = folder.path() / std::to_string(failed);
    auto server = opened(path);
    ASSERT_TRUE(server->write({Change::Kind::Add, 1, owner(1)}));
    stag::testing::allocations_until_failure = failed + 1;
    try {
      removed = server->write({Change::Kind::Remove, 1, {}});
    } catch (const std::bad_alloc&) {
    }
    stag::testing::allocations_until_failure = 0;
    ASSERT_TRUE(server->write({Change::Kind::Add, 2, owner(2)}));
    EXPECT_EQ(opened(path)->may_reclaim(owner(1)), !removed) << failed;
  }
  EXPECT_GT(failed, 2u);
}

}  // namespace
}  // namespace stag::nfs::recovery
