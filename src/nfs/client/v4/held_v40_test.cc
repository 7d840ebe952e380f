// What version 4.0 alone has: owners that number what they do, and files that are opened by name
// (RFC 7530 sections 9.1.7 to 9.1.11, 16.16, 16.37).
#include <gtest/gtest.h>

#include "base/task_group.h"
#include "testing/nfs/held_world.h"

namespace stag::nfs::client {
namespace {

using testing::Accident;
using testing::HeldWorld;

class Nfs40Held : public ::testing::Test, public HeldWorld {
 protected:
  Nfs40Held() : HeldWorld(0) {}
  void TearDown() override { run(closed()); }
  template <class T>
  Status status(Task<Outcome<T>> task) {
    const Outcome<T> outcome = run(std::move(task));
    return outcome ? Status::Ok : outcome.error().status;
  }
  template <class T>
  void lost(Task<Outcome<T>> task) {
    const Outcome<T> outcome = run(std::move(task));
    EXPECT_TRUE(!outcome && outcome.error().kind == Error::Kind::Call);
  }
  File made(const std::string& name = "file") {
    return must(files().create_open(files().root(), name, {.mode = 0644}, CreateMode::Unchecked,
                                    kBoth))
        .file;
  }
  // The call that comes next is executed or not, and nobody hears of it.
  void lose_the_next(Accident accident) {
    channel.accident = accident;
    channel.at = channel.calls + 1;
  }
  state::HeldCounts held() {
    const auto all = clients();
    return all.empty() ? state::HeldCounts{} : all.front().held;
  }
};

TEST_F(Nfs40Held, an_owner_that_was_confirmed_once_serves_the_next_open) {
  const Handle file = must(files().create(files().root(), "file", {.mode = 0644})).handle;
  EXPECT_EQ(calls_of([&] { must(files().close(must(files().open(file, kBoth)).file)); }), 2)
      << "OPEN and CLOSE";
}

TEST_F(Nfs40Held, each_open_that_is_held_has_an_owner_of_its_own) {
  const File first = made();
  const File second = must(files().open(first.handle, access::kRead)).file;
  EXPECT_EQ(held().opens, 2u);
  must(files().close(first));
  std::array<std::byte, 4> to;
  EXPECT_EQ(status(files().read(second, 0, to)), Status::Ok);
  must(files().close(second));
  EXPECT_EQ(held().opens, 0u);
}

TEST_F(Nfs40Held,
       a_lock_owner_locks_by_several_opens_of_a_file_and_is_released_with_its_last_lock) {
  const File first = made();
  const File second = must(files().open(first.handle, kBoth)).file;
  must(files().lock(first, kMine, kTen));
  must(files().lock(second, kMine, {5, 20, true}));
  must(files().unlock(first, kMine, kAll));
  must(files().lock(first, kMine, {100, 1, true}));
  must(files().unlock(first, kMine, kAll));
  must(files().unlock(second, kMine, kAll));
  EXPECT_EQ(held().locks, 0u);
  must(files().lock(second, kYours, kAll));
  must(files().close(second));
  must(files().close(first));
}

TEST_F(Nfs40Held, a_lock_that_was_denied_may_be_had_later) {
  const File file = made();
  must(files().lock(file, kMine, kTen));
  for (int i = 0; i < 3; ++i) EXPECT_EQ(status(files().lock(file, kYours, kTen)), Status::Locked);
  must(files().unlock(file, kMine, kAll));
  must(files().lock(file, kYours, kTen));
  EXPECT_EQ(held().locks, 1u);
  must(files().close(file));
}

TEST_F(Nfs40Held, a_file_that_others_have_renamed_is_stale_until_it_is_found_again) {
  const Handle file = must(files().create(files().root(), "file", {.mode = 0644})).handle;
  {
    auto other = run(nfs4::Nfs4::connect(channel, options.calls));
    ASSERT_TRUE(other.ok());
    FileSystem theirs(*other, files().root(), "/data", options);
    must(theirs.rename(files().root(), "file", files().root(), "moved"));
    must(theirs.create(files().root(), "file", {.mode = 0644}));
  }
  EXPECT_EQ(status(files().open(file, kBoth)), Status::Stale);
  EXPECT_EQ(held().opens, 0u) << "the other file was closed again";
  must(files().lookup(files().root(), "moved"));
  const File found = must(files().open(file, kBoth)).file;
  EXPECT_EQ(found.handle, file);
  EXPECT_NE(found.open, 0u);
  must(files().rename(files().root(), "moved", files().root(), "mine"));
  must(files().close(must(files().open(file, kBoth)).file));
  must(files().close(found));
}

TEST_F(Nfs40Held, a_file_whose_name_is_not_known_is_used_without_an_open) {
  const Handle file = must(files().create(files().root(), "file", {.mode = 0644})).handle;
  auto other = run(nfs4::Nfs4::connect(channel, options.calls));
  ASSERT_TRUE(other.ok());
  FileSystem theirs(*other, files().root(), "/data", options);
  const Opened open = must(theirs.open(file, kBoth));
  EXPECT_EQ(open.file.open, 0u);
  EXPECT_EQ(status(theirs.lock(open.file, kMine, kTen)), Status::NotSupported);
  must(theirs.write(open.file, 0, bytes_of("text")));
}

// RFC 7530 9.1.4.4: their stateid is another one with each LOCK, which the server may do first.
TEST_F(Nfs40Held, data_goes_by_locks_that_change_at_the_same_time) {
  const File file = made();
  must(files().lock(file, kMine, kTen));
  channel.answer_after = std::chrono::seconds(1);
  lose_the_next(Accident::Slow);
  bool locked = false;
  TaskGroup group;
  group.add([](FileSystem& by, const File& at, bool& done) -> Task<void> {
    const Outcome<Ok> lock = co_await by.lock(at, kMine, {20, 10, true});
    done = lock.ok();
  }(files(), file, locked));
  loop.pass(std::chrono::milliseconds(1));
  EXPECT_EQ(status(files().write(file, 0, bytes_of("text"))), Status::Ok);
  EXPECT_TRUE(locked);
  must(files().close(file));
}

// An operation whose answer never comes, whether it was executed or not, and what follows.
class Nfs40Lost : public Nfs40Held, public ::testing::WithParamInterface<Accident> {};
INSTANTIATE_TEST_SUITE_P(Of, Nfs40Lost, ::testing::Values(Accident::Lost, Accident::Swallowed),
                         [](const auto& accident) {
                           return accident.param == Accident::Lost ? "answer" : "call";
                         });

TEST_P(Nfs40Lost, OPEN_is_made_again) {
  const File file = made();
  lose_the_next(GetParam());
  lost(files().open(file.handle, kBoth));
  const File again = must(files().open(file.handle, kBoth)).file;
  must(files().lock(again, kMine, kTen));
  must(files().close(again));
  must(files().close(file));
}

TEST_P(Nfs40Lost, first_LOCK_is_found_again) {
  const File file = made();
  lose_the_next(GetParam());
  lost(files().lock(file, kMine, kTen));
  must(files().lock(file, kMine, {5, 20, true}));
  EXPECT_EQ(status(files().lock(file, kYours, {24, 1, true})), Status::Locked);
  must(files().unlock(file, kMine, kAll));
  EXPECT_EQ(held().locks, 0u);
  must(files().lock(file, kYours, kAll));
  must(files().close(file));
  EXPECT_EQ(held().opens, 0u);
}

TEST_P(Nfs40Lost, first_LOCK_is_taken_back_with_the_open) {
  const File file = made();
  lose_the_next(GetParam());
  lost(files().lock(file, kMine, kTen));
  must(files().close(file));
  EXPECT_EQ(held().opens, 0u);
  EXPECT_EQ(held().locks, 0u);
}

TEST_P(Nfs40Lost, LOCK_and_LOCKU_leave_their_owner_intact) {
  const File file = made();
  must(files().lock(file, kMine, kTen));
  lose_the_next(GetParam());
  lost(files().lock(file, kMine, {20, 10, true}));
  must(files().lock(file, kMine, {40, 10, true}));
  lose_the_next(GetParam());
  lost(files().unlock(file, kMine, {0, 5, true}));
  must(files().lock(file, kMine, {60, 10, true}));
  EXPECT_EQ(status(files().lock(file, kYours, {65, 1, true})), Status::Locked);
  must(files().unlock(file, kMine, kAll));
  EXPECT_EQ(held().locks, 0u);
  std::array<std::byte, 4> to;
  EXPECT_EQ(status(files().read(file, 0, to)), Status::Ok) << "nothing was lost";
  must(files().close(file));
  EXPECT_EQ(held().opens, 0u);
}

TEST_P(Nfs40Lost, LOCK_and_LOCKU_leave_data_a_stateid_to_go_by) {
  const File file = made();
  must(files().lock(file, kMine, kTen));
  lose_the_next(GetParam());
  lost(files().lock(file, kMine, {20, 10, true}));
  lose_the_next(GetParam());
  lost(files().unlock(file, kMine, {0, 5, true}));
  EXPECT_EQ(status(files().write(file, 0, bytes_of("text"))), Status::Ok);
  must(files().close(file));
}

// What the owner does by other opens tells nothing of the answer that was lost.
TEST_P(Nfs40Lost, LOCK_leaves_data_a_stateid_to_go_by_whatever_its_owner_locks_elsewhere) {
  const File file = made(), other = made("other");
  must(files().lock(file, kMine, kTen));
  must(files().lock(other, kMine, kTen));
  lose_the_next(GetParam());
  lost(files().lock(file, kMine, {20, 10, true}));
  must(files().lock(other, kMine, {40, 10, true}));
  EXPECT_EQ(status(files().write(file, 0, bytes_of("text"))), Status::Ok);
  must(files().close(file));
  must(files().close(other));
}

TEST_P(Nfs40Lost, CLOSE_leaves_no_owner_that_others_would_get) {
  const File first = made("first");
  lose_the_next(GetParam());
  lost(files().close(first));
  const File second = made("second");
  must(files().lock(second, kMine, kTen));
  must(files().close(second));
}

}  // namespace
}  // namespace stag::nfs::client
