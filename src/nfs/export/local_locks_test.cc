#include "nfs/export/local_locks.h"

#include <gtest/gtest.h>

#include <optional>
#include <set>
#include <string>

#include "testing/manual_loop.h"
#include "testing/nfs/store_with_programs.h"
#include "vfs/memory/memory.h"

namespace stag::nfs {
namespace {

using state::FileKey;
using state::Range;
using state::RangeModes;
using Mode = state::RangeMode;

class LocalLocks : public ::testing::Test {
 protected:
  LocalLocks() {
    store_.has_locks = true;
    for (int i = 0; i < 2; ++i)
      table_.add({[this, i](const FileKey&, const Range& range, RangeModes& to) {
                    for (const RangeModes::Piece& piece : given_[i].within(range))
                      to.raise(piece.range, piece.mode);
                  },
                  [this, i](const FileKey&, const std::string& preferred) {
                    const auto& all = lockers_[i];
                    if (all.empty() || all.contains(preferred))
                      return all.empty() ? std::nullopt : std::optional(preferred);
                    return std::optional(*all.begin());
                  }});
    pin_ = open();
  }
  LocalLockTable::Pin open() {
    auto opened = open(key_, kHere);
    STAG_CHECK(opened.ok());
    return *std::move(opened);
  }
  Result<LocalLockTable::Pin, vfs::Status> open(const FileKey& key, const std::string& address) {
    auto opened = loop_.run(table_.open(key, store_, {loop_, root_}, address));
    STAG_CHECK(opened.has_value());
    return *std::move(opened);
  }
  // As one of the two tables gives a lock out.
  bool give(RangeModes& to, const Range& range, Mode mode) {
    const auto held = table_.hold(key_, range, mode == Mode::Exclusive);
    if (held.ok()) to.set(range, mode);
    return held.ok();
  }
  void free(RangeModes& of, const Range& range) {
    of.set(range, Mode::None);
    table_.freed(&key_, range);
  }
  bool server_has(const Range& range, Mode mode) const {
    return store_.locks.server_has(range.first, range.last, mode);
  }

  const std::string kHere = "192.0.2.1", kThere = "192.0.2.2", kElsewhere = "192.0.2.3";
  testing::ManualLoop loop_;
  const vfs::Credentials root_{0, 0, {}};
  testing::StoreWithPrograms store_{std::make_shared<vfs::MemoryFileSystem>()};
  const FileKey key_{1, store_.root()};
  RangeModes given_[2];
  std::set<std::string> lockers_[2];  // where those are whom it was given to
  LocalLockTable table_;
  LocalLockTable::Pin pin_;
};

TEST_F(LocalLocks, take_and_give_back_a_range_in_many_pieces_at_once) {
  for (std::uint64_t i = 0; i < 1000; ++i)
    ASSERT_TRUE(give(given_[0], {2 * i, 2 * i}, Mode::Shared));
  store_.locks.calls = 0;
  ASSERT_TRUE(give(given_[0], {0, 1999}, Mode::Exclusive));
  EXPECT_EQ(store_.locks.calls, 1);
  free(given_[0], {0, 1999});
  EXPECT_EQ(store_.locks.calls, 2);
  EXPECT_TRUE(server_has({0, 1999}, Mode::None));
  for (std::uint64_t i = 0; i < 1000; ++i)
    ASSERT_TRUE(give(given_[0], {2 * i, 2 * i}, Mode::Exclusive));
  store_.locks.calls = 0;
  free(given_[0], {0, Range::kEnd});
  EXPECT_EQ(store_.locks.calls, 1);
}

TEST_F(LocalLocks, hold_what_both_tables_have_and_no_more) {
  ASSERT_TRUE(give(given_[0], {0, 9}, Mode::Shared));
  ASSERT_TRUE(give(given_[1], {5, 14}, Mode::Shared));
  EXPECT_TRUE(server_has({0, 14}, Mode::Shared));
  free(given_[0], {0, 9});
  EXPECT_TRUE(server_has({0, 4}, Mode::None));
  EXPECT_TRUE(server_has({5, 14}, Mode::Shared)) << "the other table has it";
  free(given_[1], {});
  EXPECT_TRUE(server_has({}, Mode::None));
}

TEST_F(LocalLocks, become_shared_when_nobody_is_exclusive_any_more) {
  ASSERT_TRUE(give(given_[0], {0, 9}, Mode::Exclusive));
  EXPECT_TRUE(server_has({0, 9}, Mode::Exclusive));
  ASSERT_TRUE(give(given_[0], {0, 4}, Mode::Shared));
  EXPECT_TRUE(server_has({0, 4}, Mode::Shared));
  EXPECT_TRUE(server_has({5, 9}, Mode::Exclusive));
}

TEST_F(LocalLocks, name_the_range_of_a_program_that_denies_them_and_change_nothing) {
  store_.locks.of_programs.set({20, 29}, Mode::Shared);
  ASSERT_TRUE(give(given_[0], {0, 9}, Mode::Shared));
  const auto refused = table_.hold(key_, {5, 25}, true);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().range, (Range{20, 25}));
  EXPECT_FALSE(refused.error().exclusive);
  EXPECT_EQ(refused.error().clientid, 0u);
  EXPECT_TRUE(server_has({0, 9}, Mode::Shared));
  EXPECT_TRUE(server_has({10, 30}, Mode::None));
  EXPECT_TRUE(table_.hold(key_, {5, 25}, false).ok()) << "readers share";
  EXPECT_TRUE(table_.conflict(key_, {29, 40}, true).has_value());
  EXPECT_FALSE(table_.conflict(key_, {30, 40}, true).has_value());
}

TEST_F(LocalLocks, go_again_when_nothing_was_given_out_after_all) {
  { const auto held = table_.hold(key_, {0, 9}, true); }
  EXPECT_TRUE(server_has({}, Mode::None));
}

TEST_F(LocalLocks, stay_while_somebody_decides_whatever_is_freed_meanwhile) {
  auto held = std::make_unique<Result<LocalLockTable::Hold, state::ConflictingLock>>(
      table_.hold(key_, {0, 9}, true));
  table_.freed(&key_, {});
  table_.freed(nullptr, {});
  EXPECT_TRUE(server_has({0, 9}, Mode::Exclusive));
  given_[1].set({0, 4}, Mode::Exclusive);
  held.reset();
  EXPECT_TRUE(server_has({0, 4}, Mode::Exclusive));
  EXPECT_TRUE(server_has({5, 9}, Mode::None));
}

TEST_F(LocalLocks, keep_a_file_open_no_longer_than_needed) {
  EXPECT_EQ(store_.locks.open, 1);
  ASSERT_TRUE(give(given_[0], {0, 9}, Mode::Shared));
  pin_ = {};
  EXPECT_EQ(store_.locks.open, 1) << "something is locked";
  free(given_[0], {0, 9});
  EXPECT_EQ(store_.locks.open, 0);
  EXPECT_FALSE(table_.any());
  const LocalLockTable::Pin pin = open();
  EXPECT_EQ(store_.locks.open, 1);
}

TEST_F(LocalLocks, are_open_once_however_many_want_a_file) {
  const LocalLockTable::Pin other = open();
  EXPECT_EQ(store_.locks.open, 1);
  pin_ = {};
  EXPECT_EQ(store_.locks.open, 1);
}

TEST_F(LocalLocks, do_not_exist_where_there_are_no_programs) {
  store_.has_locks = false;
  const FileKey other{2, store_.root()};
  table_.limit({0, 0});
  auto opened = open(other, kHere);
  ASSERT_TRUE(opened.ok());
  EXPECT_FALSE(*opened);
  EXPECT_TRUE(table_.hold(other, {}, true).ok());
}

TEST_F(LocalLocks, leave_descriptors_for_others) {
  table_.limit({3, 2});
  const auto file = [&](std::uint64_t store) { return FileKey{store, store_.root()}; };
  auto second = open(file(2), kHere);
  ASSERT_TRUE(second.ok());
  ASSERT_FALSE(open(file(3), kHere).ok());
  EXPECT_EQ(open(file(3), kHere).error(), vfs::Status::TooManyObjects);
  EXPECT_TRUE(open(file(2), kHere).ok()) << "it is open";
  auto third = open(file(3), kThere);
  ASSERT_TRUE(third.ok());
  EXPECT_EQ(open(file(4), kElsewhere).error(), vfs::Status::TooManyObjects);
  EXPECT_TRUE(open(file(2), kElsewhere).ok());
  EXPECT_EQ(store_.locks.open, 3);
  *second = {};
  EXPECT_TRUE(open(file(4), kHere).ok());
  EXPECT_TRUE(open(file(4), kElsewhere).ok()) << "it was given back";
}

class SharedLocalLocks : public LocalLocks {
 protected:
  void SetUp() override {
    table_.limit({10, 1});
    ASSERT_TRUE(give(given_[0], {0, 9}, Mode::Shared));
    lockers_[0] = {kHere};
  }
  // Another address locks some of the file, and the first one gives up what it had there.
  void outlive(int in) {
    auto other = open(key_, kThere);
    ASSERT_TRUE(other.ok());
    ASSERT_TRUE(give(given_[in], {20, 29}, Mode::Shared));
    lockers_[in].insert(kThere);
    pin_ = {};
    *other = {};
    EXPECT_EQ(counted_for(kHere), 1);
    EXPECT_EQ(counted_for(kThere), 0);
    lockers_[0].erase(kHere);
    free(given_[0], {0, 9});
  }
  // Of one that it may have.
  int counted_for(const std::string& address) {
    return open(FileKey{2, store_.root()}, address).ok() ? 0 : 1;
  }
};

TEST_F(SharedLocalLocks, count_for_who_has_some_when_the_first_has_none_any_more) {
  outlive(0);
  EXPECT_EQ(counted_for(kHere), 0);
  EXPECT_EQ(counted_for(kThere), 1);
  lockers_[0].clear();
  free(given_[0], {});
  EXPECT_EQ(store_.locks.open, 0);
  EXPECT_EQ(counted_for(kThere), 0) << "it was given back where it counted last";
}

TEST_F(SharedLocalLocks, count_for_who_has_some_in_whatever_table) {
  outlive(1);
  EXPECT_EQ(counted_for(kHere), 0);
  EXPECT_EQ(counted_for(kThere), 1);
}

TEST_F(SharedLocalLocks, stay_with_the_first_while_it_has_some) {
  auto other = open(key_, kThere);
  ASSERT_TRUE(other.ok());
  ASSERT_TRUE(give(given_[0], {20, 29}, Mode::Shared));
  lockers_[0].insert(kThere);
  free(given_[0], {0, 4});
  EXPECT_EQ(counted_for(kHere), 1);
  EXPECT_EQ(counted_for(kThere), 0);
}

}  // namespace
}  // namespace stag::nfs
