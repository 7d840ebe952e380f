// No holder gets what is in the way of another's, whichever of them is faster: clients of version 4
// with opens, locks and delegations, and holders of locks by other means (NLM).
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <optional>
#include <random>
#include <thread>
#include <utility>
#include <vector>

#include "testing/nfs/outside_table.h"
#include "testing/nfs/state_world.h"

namespace stag::nfs::state {
namespace {

using testing::OutsideTable;
using testing::World;

constexpr std::uint64_t kFilesHeld = 2, kBytesHeld = 4;
constexpr int kHolders = 3, kHolderSteps = 10'000;

// RFC 8881 10.4: a client that has a file delegated keeps its locks to itself, so no lock kept
// outside may exist then. The outside holder locks between the look at its locks and the
// delegation: if it is refused, the delegation does not wait for it.
// `looks`: the look of the delegation's at which the outside holder comes; what it locked elsewhere
// before makes the delegation look a second time.
void expect_one_of_both(bool reclaim, bool elsewhere, int looks) {
  SCOPED_TRACE(std::to_string(reclaim) + std::to_string(elsewhere) + std::to_string(looks));
  World world;
  const testing::Client client = world.client("client");
  if (reclaim) world.grace->begin(world.now + std::chrono::hours(1), true);
  OutsideTable outside(world.files);
  if (elsewhere) {
    ASSERT_TRUE(outside.add(World::file(2), {0, 9}).granted());
  }
  std::optional<std::thread> other;
  std::atomic<bool> locked{false}, answered{false};
  outside.after_each_look([&] {
    if (--looks != 0) return;
    other.emplace([&] {
      locked = outside.add(World::file(1), {0, 9}).granted();
      answered = true;
    });
    for (int i = 0; i < 10'000 && !answered; ++i) std::this_thread::yield();
  });
  const Status given =
      world.files.delegate({World::file(1), DelegationType::Read, {}, 0, reclaim}, client.life)
          .status;
  ASSERT_TRUE(other.has_value());
  other->join();
  EXPECT_NE(given == Status::Ok, locked) << "one of them, and not both";
}

TEST(Nfs4StateHolders, a_lock_kept_outside_and_a_delegation_are_never_given_at_the_same_time) {
  for (const bool reclaim : {false, true}) {
    expect_one_of_both(reclaim, false, 1);
    expect_one_of_both(reclaim, true, 1);
  }
  expect_one_of_both(false, true, 2);
}

// What the holders have recorded: each records a lock after it got it and takes the record back
// before it gives the lock up. Of two that hold what conflicts, the second to record finds the
// first.
struct Said {
  std::array<std::atomic<int>, kBytesHeld> locks{};
  std::atomic<int> outside{0};
  // Bits of clients.
  std::atomic<unsigned> reading{0}, writing{0}, read_delegated{0}, write_delegated{0};
};

struct Sharers {
  World world;
  OutsideTable outside{world.files};
  std::array<Said, kFilesHeld> said;
  std::array<std::array<std::atomic<bool>, kFilesHeld>, kHolders> recalled{};
  std::array<ClientId, kHolders> ids{};
  std::array<std::vector<Waiting>, kHolders> waiting;  // until all are told
  std::atomic<int> conflicts{0}, waits{0}, told{0}, recalls{0};

  void never(bool both) { conflicts += both; }
};

// A client of version 4: each file open once, a lock of one byte, a delegation.
class Holder {
 public:
  Holder(Sharers& shared, int number, const testing::Client& client)
      : shared_(shared), number_(number), bit_(1u << number), client_(client), random_(bit_) {}

  void step() {
    const std::uint64_t file = random_() % kFilesHeld;
    Holding& held = held_[file];
    if (shared_.recalled[index()][file] || random_() % 16 == 0) give_back(file, held);
    switch (random_() % 6) {
      case 0:
        return open(file, held, random_() % 3 == 0 ? kShareBoth : kShareRead);
      case 1:
        return close(file, held);
      case 2:
      case 3:
        return lock(file, held);
      case 4:
        return unlock(file, held);
      default:
        return delegate(file, held, random_() % 2 ? DelegationType::Write : DelegationType::Read);
    }
  }
  void finish() {
    for (std::uint64_t file = 0; file < kFilesHeld; ++file) {
      close(file, held_[file]);
      give_back(file, held_[file]);
    }
  }

 private:
  struct Holding {
    std::optional<Stateid> open, lock, delegation;
    std::uint32_t access = 0;
    std::uint64_t byte = 0;
  };
  std::size_t index() const { return static_cast<std::size_t>(number_); }
  Said& said(std::uint64_t file) { return shared_.said[file]; }
  Files& files() { return shared_.world.files; }

  void open(std::uint64_t file, Holding& held, std::uint32_t access) {
    const OpenResult opened = shared_.world.open(client_, file, access);
    if (opened.verdict.kind == Verdict::Kind::Recall) {
      Waiting waiting = files().wait(World::file(file), [this] { ++shared_.told; });
      if (waiting.how == Wait::Begun) ++shared_.waits;
      shared_.waiting[index()].push_back(std::move(waiting));
    }
    if (!opened.verdict.granted()) return;
    held.open = opened.stateid;
    held.access |= access;
    Said& said = this->said(file);
    said.reading |= bit_;
    if ((held.access & kShareWrite) != 0) {
      said.writing |= bit_;
      shared_.never((said.read_delegated & ~bit_) != 0);
    }
    shared_.never((said.write_delegated & ~bit_) != 0);
  }
  void close(std::uint64_t file, Holding& held) {
    if (!held.open) return;
    if (held.lock) said(file).locks[held.byte] = 0;
    said(file).reading &= ~bit_;
    said(file).writing &= ~bit_;
    EXPECT_EQ(files().close(World::file(file), *held.open, *client_.life).status, Status::Ok);
    held.open = held.lock = std::nullopt;
    held.access = 0;
  }
  void lock(std::uint64_t file, Holding& held) {
    if (!held.open || held.lock || (held.access & kShareWrite) == 0) return;
    const std::uint64_t byte = random_() % kBytesHeld;
    const LockResult locked =
        shared_.world.lock(client_, file, {0, held.open->other}, {byte, byte}, true);
    if (!locked.verdict.granted()) return;
    held.lock = locked.stateid;
    held.byte = byte;
    shared_.never(said(file).locks[byte].exchange(number_ + 1) != 0);
  }
  void unlock(std::uint64_t file, Holding& held) {
    if (!held.lock) return;
    said(file).locks[held.byte] = 0;
    EXPECT_EQ(
        files().unlock(World::file(file), *held.lock, {held.byte, held.byte}, *client_.life).status,
        Status::Ok);
    held.lock.reset();
  }
  void delegate(std::uint64_t file, Holding& held, DelegationType type) {
    if (held.delegation) return;
    shared_.recalled[index()][file] = false;
    const StateidResult given = files().delegate({World::file(file), type, {}}, client_.life);
    if (given.status != Status::Ok) return;
    held.delegation = given.stateid;
    Said& said = this->said(file);
    const bool writes = type == DelegationType::Write;
    (writes ? said.write_delegated : said.read_delegated) |= bit_;
    shared_.never((said.writing & ~bit_) != 0 || (said.write_delegated & ~bit_) != 0);
    shared_.never(writes && ((said.reading | said.read_delegated) & ~bit_) != 0);
    shared_.never(said.outside != 0);
  }
  void give_back(std::uint64_t file, Holding& held) {
    if (!held.delegation) return;
    said(file).read_delegated &= ~bit_;
    said(file).write_delegated &= ~bit_;
    EXPECT_EQ(files().return_delegation(World::file(file), *held.delegation, *client_.life),
              Status::Ok);
    held.delegation.reset();
  }

  Sharers& shared_;
  const int number_;
  const unsigned bit_;
  const testing::Client client_;
  std::mt19937 random_;
  std::array<Holding, kFilesHeld> held_;
};

void lock_outside(Sharers& shared) {
  std::mt19937 random(99);
  for (int i = 0; i < kHolderSteps; ++i) {
    const std::uint64_t file = random() % kFilesHeld, byte = random() % kBytesHeld;
    if (!shared.outside.add(World::file(file), {byte, byte}).granted()) continue;
    Said& said = shared.said[file];
    ++said.outside;
    shared.never(said.locks[byte].exchange(kHolders + 1) != 0);
    shared.never((said.read_delegated | said.write_delegated) != 0);
    for (std::uint64_t other = random() % 8; other > 0; --other) std::this_thread::yield();
    shared.never((said.read_delegated | said.write_delegated) != 0);
    said.locks[byte] = 0;
    --said.outside;
    shared.outside.remove(World::file(file), {byte, byte});
  }
}

// `elsewhere`: another has locked a file all the time that none of them opens.
void expect_no_conflicts(bool elsewhere) {
  SCOPED_TRACE(elsewhere);
  Sharers shared;
  const FileKey another = World::file(kFilesHeld);
  if (elsewhere) {
    ASSERT_TRUE(shared.outside.add(another, {0, 9}).granted());
  }
  shared.outside.after_each_look([] { std::this_thread::yield(); });
  std::vector<Holder> holders;
  for (int i = 0; i < kHolders; ++i) {
    const testing::Client client = shared.world.client("client " + std::to_string(i));
    shared.ids[static_cast<std::size_t>(i)] = client.id;
    holders.emplace_back(shared, i, client);
  }
  shared.world.files.on_recall([&](const Recall& recall) {
    ++shared.recalls;
    for (std::size_t i = 0; i < kHolders; ++i)
      for (std::uint64_t file = 0; file < kFilesHeld; ++file)
        if (shared.ids[i] == recall.clientid && World::file(file) == recall.file)
          shared.recalled[i][file] = true;
  });
  std::vector<std::thread> threads;
  for (Holder& holder : holders)
    threads.emplace_back([&holder] {
      for (int i = 0; i < kHolderSteps; ++i) holder.step();
      holder.finish();
    });
  threads.emplace_back([&shared] { lock_outside(shared); });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(shared.conflicts, 0);
  EXPECT_GT(shared.recalls, 0);
  EXPECT_EQ(shared.told, shared.waits);
  EXPECT_EQ(shared.world.files.states(), 0u);
  EXPECT_FALSE(shared.world.files.guarded());
  shared.outside.remove(another, {0, 9});
  EXPECT_FALSE(shared.outside.any());
}

TEST(Nfs4StateHolders, never_hold_what_conflicts_on_four_threads) {
  for (const bool elsewhere : {false, true}) expect_no_conflicts(elsewhere);
}

struct ToldOfRelease final : OutsideLocks, RangeMirror {
  explicit ToldOfRelease(World& world) {
    world.files.share_with(this);
    world.files.mirror_to(this);
  }
  bool any() const override { return false; }
  bool waiting() const override { return true; }
  void lock() override {}
  void unlock() override {}
  std::optional<ConflictingLock> conflict(const FileKey&, const Range&, bool) const override {
    return std::nullopt;
  }
  bool share_conflict(const FileKey&, std::uint32_t, std::uint32_t) const override { return false; }
  bool concerns(const FileKey&) const override { return false; }
  void freed(const FileKey* file) override {
    file == nullptr ? ++all : (files.push_back(*file), 0);
  }
  void freed(const FileKey* file, const Range& range) override {
    file == nullptr ? ++all_unlocked : (unlocked.emplace_back(*file, range), 0);
  }
  bool mirrors(const FileKey& file) const override { return file == mirrored; }
  FileKey mirrored;
  std::vector<FileKey> files;
  std::vector<std::pair<FileKey, Range>> unlocked;
  int all = 0, all_unlocked = 0;
};
using Unlocked = std::vector<std::pair<FileKey, Range>>;

// Files of others are not looked at for a client that had nothing on them.
TEST(Nfs4StateRelease, names_the_files_on_which_others_can_go_on) {
  World world;
  ToldOfRelease told(world);
  const auto holder = world.client("holder"), other = world.client("other"),
             idle = world.client("idle");
  world.lock(holder, 1, world.open(holder, 1).stateid, {0, 9}, true);
  world.lock(holder, 1, world.open(holder, 1).stateid, {20, 29}, true, "another locker");
  world.open(holder, 2);
  ASSERT_EQ(world.files.delegate({World::file(3), DelegationType::Read, {}}, holder.life).status,
            Status::Ok);
  world.lock(other, 4, world.open(other, 4).stateid, {0, 9}, true);
  world.files.release(*world.clients.end(idle.id, false));
  EXPECT_TRUE(told.files.empty());
  world.files.release(*world.clients.end(holder.id, false));
  ASSERT_EQ(told.files.size(), 2u);
  for (const std::uint64_t number : {1u, 3u})
    EXPECT_NE(std::find(told.files.begin(), told.files.end(), World::file(number)),
              told.files.end());
  EXPECT_EQ(told.all, 0);
}

TEST(Nfs4StateRelease, tells_of_any_file_when_others_took_something_from_the_client) {
  World world;
  ToldOfRelease told(world);
  const auto holder = world.client("holder"), other = world.client("other");
  world.lock(holder, 1, world.open(holder, 1).stateid, {0, 99}, true);
  const LifePtr ended = world.clients.end(holder.id, false);
  const Stateid open = world.open(other, 1).stateid;
  ASSERT_TRUE(world.lock(other, 1, open, {10, 19}, true).verdict.granted());
  world.files.release(*ended);
  EXPECT_EQ(told.all, 1);
  EXPECT_EQ(told.all_unlocked, 1);
}

TEST(Nfs4StateRelease, names_the_file_of_what_is_revoked) {
  World world;
  ToldOfRelease told(world);
  const auto holder = world.client("holder");
  ASSERT_EQ(world.files.revoke(world.open(holder, 1).stateid), Status::Ok);
  world.files.revoke_delegation(
      world.files.delegate({World::file(2), DelegationType::Read, {}}, holder.life).stateid);
  EXPECT_EQ(told.files, (std::vector{World::file(1), World::file(2)}));
  EXPECT_EQ(told.all, 0);
}

// A mirror of the locks looks at all that is locked in such a range.
TEST(Nfs4StateRelease, tells_of_bytes_only_where_some_were_locked) {
  World world;
  ToldOfRelease told(world);
  const auto locker = world.client("locker"), other = world.client("other");
  const FileKey file = World::file(1);
  const Stateid open = world.open(locker, 1).stateid;
  const Stateid lock = world.lock(locker, 1, open, {10, 19}, true).stateid;
  world.lock_more(locker, 1, lock, {50, 59}, true);
  const Stateid second = world.open(locker, 1, kShareBoth, 0, "second").stateid;
  world.lock(locker, 1, second, {30, 39}, true);
  world.lock(locker, 1, second, {100, 199}, false, "another locker");
  world.files.close(file, world.open(other, 1).stateid, *other.life);
  world.files.revoke(world.open(other, 1).stateid);
  EXPECT_EQ(told.files.size(), 2u) << "who waits may go on";
  EXPECT_EQ(told.unlocked, Unlocked()) << "nothing was locked through it";
  world.files.close(file, open, *locker.life);
  EXPECT_EQ(told.unlocked, (Unlocked{{file, {10, 59}}}));
  world.files.revoke(second);
  EXPECT_EQ(told.unlocked, (Unlocked{{file, {10, 59}}, {file, {30, 199}}}));
}

TEST(Nfs4StateRelease, tells_of_the_bytes_that_a_client_had_locked) {
  World world;
  ToldOfRelease told(world);
  const auto holder = world.client("holder"), other = world.client("other");
  const Stateid open = world.open(holder, 1).stateid;
  world.lock(holder, 1, open, {10, 19}, true);
  world.lock(holder, 1, open, {40, 49}, true, "another locker");
  world.lock(holder, 2, world.open(holder, 2).stateid, {5, 5}, true);
  world.lock(other, 1, world.open(other, 1).stateid, {100, 199}, true);
  ASSERT_EQ(world.files.delegate({World::file(3), DelegationType::Read, {}}, holder.life).status,
            Status::Ok);
  world.files.release(*world.clients.end(holder.id, false));
  EXPECT_EQ(told.files.size(), 3u);
  std::ranges::sort(told.unlocked, {}, [](const auto& one) { return one.second; });
  EXPECT_EQ(told.unlocked, (Unlocked{{World::file(2), {5, 5}}, {World::file(1), {10, 49}}}));
}

// A mirror of the locks looks through all that is locked in such a range.
TEST(Nfs4StateUnlock, tells_what_went_and_nothing_of_what_lies_between) {
  World world;
  ToldOfRelease told(world);
  const auto client = world.client("a");
  const FileKey file = World::file(1);
  const Stateid open = world.open(client, 1).stateid;
  const auto lock = [&](const Range& range) {
    return world.lock(client, 1, open, range, true).stateid;
  };
  const auto unlock = [&](Stateid& stateid, const Range& range) {
    const StateidResult result = world.files.unlock(file, stateid, range, *client.life);
    EXPECT_EQ(result.status, Status::Ok);
    stateid = result.stateid;
  };
  lock({0, 9});
  Stateid stateid = lock({1000, Range::kEnd});
  unlock(stateid, {50, 999});
  EXPECT_EQ(told.unlocked, Unlocked()) << "nothing went";
  EXPECT_TRUE(told.files.empty());
  unlock(stateid, {5, 1009});
  EXPECT_EQ(told.unlocked, (Unlocked{{file, {5, 9}}, {file, {1000, 1009}}}));
  EXPECT_EQ(told.files.size(), 1u) << "who waits is told once";
}

TEST(Nfs4StateLocks, that_are_held_already_are_granted_to_who_only_asks) {
  World world;
  const auto client = world.client("a");
  const FileKey file = World::file(1);
  const Stateid open = world.open(client, 1).stateid;
  const auto ask = [&](const Range& range, bool exclusive, std::string_view owner = "locker") {
    return world.files.lock({.file = file,
                             .range = range,
                             .exclusive = exclusive,
                             .new_lock_owner = true,
                             .stateid = open,
                             .lock_owner = bytes_of(owner),
                             .only_asks = true},
                            client.life);
  };
  EXPECT_FALSE(ask({0, 9}, false).held);
  const Stateid stateid = world.lock(client, 1, open, {0, 9}, false).stateid;
  for (const auto& [range, exclusive] : {std::pair{Range{0, 9}, true}, {Range{5, 10}, false}}) {
    const LockResult asked = ask(range, exclusive);
    EXPECT_TRUE(asked.verdict.granted());
    EXPECT_FALSE(asked.held);
  }
  EXPECT_FALSE(ask({0, 9}, false, "another").held);
  const LockResult again = ask({2, 5}, false);
  EXPECT_TRUE(again.held);
  EXPECT_EQ(again.stateid.other, stateid.other);
  EXPECT_EQ(again.stateid.seqid, stateid.seqid + 1) << "as any LOCK that is granted";
}

TEST(Nfs4StateLocks, are_limited_for_a_file_where_they_are_mirrored) {
  StateLimits limits;
  limits.ranges_of_mirrored = 8;
  World world(1, {}, limits);
  ToldOfRelease told(world);
  told.mirrored = World::file(1);
  const auto client = world.client("a"), other = world.client("b");
  const auto fill = [&](std::uint64_t file, std::uint64_t most) {
    const Stateid open = world.open(client, file).stateid;
    LockResult locked = world.lock(client, file, open, {0, 9}, false);
    std::uint64_t count = 0;
    for (; locked.verdict.granted() && count < most; ++count)
      locked = world.lock(client, file, open, {20 * count, 20 * count + 9}, false);
    return locked;
  };
  EXPECT_TRUE(fill(2, 100).verdict.granted()) << "nobody mirrors it";
  const LockResult beyond = fill(1, 100);
  EXPECT_EQ(beyond.verdict.status, Status::Delay);
  EXPECT_EQ(beyond.limit, Limit::File);
  const Stateid open = world.open(other, 1).stateid;
  EXPECT_EQ(world.lock(other, 1, open, {0, 9}, false).limit, Limit::File) << "of all clients";
  const Stateid held = world.lock(client, 1, world.open(client, 1).stateid, {0, 9}, false).stateid;
  const FileKey file = World::file(1);
  const StateidResult two_of_one = world.files.unlock(file, held, {5, 5}, *client.life);
  EXPECT_EQ(two_of_one.limit, Limit::File);
  EXPECT_EQ(two_of_one.status, Status::Serverfault) << "it does not pass with time";
  EXPECT_EQ(world.files.unlock(file, held, {0, 9}, *client.life).status, Status::Ok);
  EXPECT_TRUE(world.lock(other, 1, open, {0, 9}, false).verdict.granted());
}

}  // namespace
}  // namespace stag::nfs::state
