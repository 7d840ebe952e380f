// What a call in steady state takes from the heap for its user's groups: nothing. What programs of
// this host are kept from is given back although memory runs out.
#include <gtest/gtest.h>

#include <memory>
#include <new>
#include <numeric>
#include <utility>

#include "nfs/export/exports.h"
#include "nfs/export/local_locks.h"
#include "nfs/export/user_groups.h"
#include "testing/failing_new.h"
#include "testing/held_executor.h"
#include "testing/manual_loop.h"
#include "testing/nfs/store_with_programs.h"
#include "vfs/memory/memory.h"

namespace stag::nfs {
namespace {

class ManyGroups final : public GroupService {
 public:
  Result<std::vector<std::uint32_t>, NoUser> groups_of(std::uint32_t) override {
    std::vector<std::uint32_t> groups(100);
    std::iota(groups.begin(), groups.end(), 1);
    return groups;
  }
};

TEST(GroupsAllocation, allocate_nothing_in_steady_state_however_many_they_are) {
  testing::ManualLoop loop;
  UserGroups groups(std::make_shared<ManyGroups>(), std::make_shared<testing::HeldExecutor>(true),
                    [&] { return loop.now(); });
  const UserGroups::Asker asker{loop, "192.0.2.1"};
  ASSERT_NE(*loop.run(groups.of(1000, asker)), nullptr);
  ASSERT_NE(groups.known(1000, asker), nullptr);
  const ExportOptions options;
  constexpr std::size_t kMany = 1'000'000;
  testing::allocations_until_failure = kMany;
  for (int i = 0; i < 1000; ++i) {
    rpc::Caller caller;
    caller.flavor = oncrpc::AuthFlavor::AUTH_SYS;
    caller.uid = 1000;
    caller.groups = groups.known(1000, asker);
    const vfs::Credentials who = acting_as(options, caller), copy = who;
    ASSERT_TRUE(copy.in_group(100));
  }
  EXPECT_EQ(std::exchange(testing::allocations_until_failure, 0), kMany);
}

using state::FileKey;
using state::Range;
using state::RangeModes;
using Mode = state::RangeMode;

// A file that programs use, and one Source.
class LocalLocksMemory : public ::testing::Test {
 protected:
  LocalLocksMemory() {
    store_.has_locks = true;
    table_.add({[this](const FileKey&, const Range& range, RangeModes& to) {
                  for (const RangeModes::Piece& piece : given_.within(range))
                    to.raise(piece.range, piece.mode);
                },
                [](const FileKey&, const std::string&) { return std::nullopt; }});
    auto opened = loop_.run(table_.open(key_, store_, {loop_, root_}, "192.0.2.1"));
    STAG_CHECK(opened.has_value() && opened->ok());
    pin_ = **std::move(opened);
  }
  bool server_has(const Range& range, Mode mode) const {
    return store_.locks.server_has(range.first, range.last, mode);
  }
  // What is locked, and what programs are kept from.
  void lock(const Range& range, Mode mode) {
    const auto held = table_.hold(key_, range, mode == Mode::Exclusive);
    ASSERT_TRUE(held.ok());
    given_.set(range, mode);
  }
  // Does it with each of its allocations failing once, and all behind that if `lasting`; then with
  // none. `begin` comes before it, `check` behind.
  template <class Begin, class Work, class Check>
  void fail_each(Begin begin, Work work, Check check) {
    for (const bool lasting : {false, true})
      for (std::size_t n = 1;; ++n) {
        ASSERT_LT(n, 100u);
        begin();
        testing::failed_allocations = 0;
        testing::failure_lasts = lasting;
        testing::allocations_until_failure = n;
        work();
        testing::allocations_until_failure = 0;
        testing::failure_lasts = false;
        check(n);
        if (testing::failed_allocations == 0) {
          EXPECT_GT(n, 1u) << "it allocates nothing";
          break;
        }
      }
  }
  // As whoever looks after it does.
  void look() {
    if (table_.overdue()) table_.reconcile_overdue();
  }

  testing::ManualLoop loop_;
  const vfs::Credentials root_{0, 0, {}};
  testing::StoreWithPrograms store_{std::make_shared<vfs::MemoryFileSystem>()};
  const FileKey key_{1, store_.root()};
  RangeModes given_;
  LocalLockTable table_;
  LocalLockTable::Pin pin_;
};

TEST_F(LocalLocksMemory, running_out_at_the_end_of_a_Hold_has_it_given_back_later) {
  std::optional<Result<LocalLockTable::Hold, state::ConflictingLock>> held;
  fail_each(
      [&] {
        lock({0, 4}, Mode::Shared);
        lock({8, 9}, Mode::Exclusive);
        held.emplace(table_.hold(key_, {0, 19}, true));
        ASSERT_TRUE(held->ok());
      },
      [&] { held.reset(); },
      [&](std::size_t n) {
        look();
        EXPECT_TRUE(server_has({0, 4}, Mode::Shared)) << n;
        EXPECT_TRUE(server_has({5, 7}, Mode::None)) << n;
        EXPECT_TRUE(server_has({8, 9}, Mode::Exclusive)) << n;
        EXPECT_TRUE(server_has({10, Range::kEnd}, Mode::None)) << n;
        EXPECT_FALSE(table_.overdue()) << n;
      });
}

// Another Hold would be given on what is known, and nobody would be kept out.
TEST_F(LocalLocksMemory, running_out_at_the_end_of_a_Hold_leaves_it_known_what_is_held) {
  std::optional<Result<LocalLockTable::Hold, state::ConflictingLock>> held;
  fail_each(
      [&] {
        lock({0, 99}, Mode::Exclusive);
        given_.set({40, 49}, Mode::Shared);
        held.emplace(table_.hold(key_, {40, 49}, true));
        ASSERT_TRUE(held->ok());
      },
      [&] { held.reset(); },
      [&](std::size_t n) {
        {
          const auto again = table_.hold(key_, {0, 99}, true);
          EXPECT_TRUE(server_has({0, 99}, Mode::Exclusive)) << n;
        }
        EXPECT_TRUE(server_has({0, 39}, Mode::Exclusive)) << n;
        EXPECT_TRUE(server_has({40, 49}, Mode::Shared)) << n;
        EXPECT_TRUE(server_has({50, 99}, Mode::Exclusive)) << n;
        given_.set({0, 99}, Mode::None);
        table_.freed(&key_, {0, 99});
        EXPECT_TRUE(server_has({}, Mode::None)) << n;
        look();
      });
}

TEST_F(LocalLocksMemory, running_out_at_the_begin_of_a_Hold_has_all_of_it_given_back) {
  fail_each(
      [&] {
        lock({5, 9}, Mode::Exclusive);
      },
      [&] {
        try {
          static_cast<void>(table_.hold(key_, {0, 19}, false));
        } catch (const std::bad_alloc&) {
        }
      },
      [&](std::size_t n) {
        look();
        EXPECT_TRUE(server_has({0, 4}, Mode::None)) << n;
        EXPECT_TRUE(server_has({5, 9}, Mode::Exclusive)) << n;
        EXPECT_TRUE(server_has({10, Range::kEnd}, Mode::None)) << n;
      });
}

TEST_F(LocalLocksMemory, running_out_when_locks_of_any_file_end_has_them_given_back_later) {
  fail_each(
      [&] {
        lock({0, 9}, Mode::Exclusive);
      },
      [&] {
        given_.set({}, Mode::None);
        table_.freed(nullptr, {});
      },
      [&](std::size_t n) {
        look();
        EXPECT_TRUE(server_has({}, Mode::None)) << n;
        EXPECT_FALSE(table_.overdue()) << n;
      });
  pin_ = {};
  EXPECT_EQ(store_.locks.open, 0);
}

}  // namespace
}  // namespace stag::nfs
