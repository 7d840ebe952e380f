// Opens that are held, and locks by them: what becomes of them when connections are cut, the server
// restarts, leases end and administrators take things away (RFC 8881 sections 8, 9; RFC 7530
// section 9).
#include <gtest/gtest.h>

#include "testing/nfs/held_world.h"

namespace stag::nfs::client {
namespace {

using testing::Accident;
using testing::HeldWorld;
using testing::Nfs4ClientWorld;

// With times as they are by default. In version 4.0 a grace period takes its full one, as no client
// says that it is done.
class Nfs4Held : public ::testing::TestWithParam<std::uint32_t>, public HeldWorld {
 protected:
  Nfs4Held() : Nfs4Held(false) {}
  explicit Nfs4Held(bool records) : HeldWorld(GetParam()) {
    if (!records) return;
    channel.keep_records();
    channel.restart();
  }
  void TearDown() override {
    if (protocol) run(closed());
  }
  template <class T>
  Status status(Task<Outcome<T>> task) {
    const Outcome<T> outcome = run(std::move(task));
    return outcome ? Status::Ok : outcome.error().status;
  }
  File opened(std::uint32_t asked = kBoth) {
    return must(files().create_open(files().root(), "file", {.mode = 0644}, CreateMode::Unchecked,
                                    asked))
        .file;
  }
  Status read(const File& file) {
    std::array<std::byte, 4> to;
    return status(files().read(file, 0, to));
  }
  // With the files of anybody's.
  FileSystem as(std::uint32_t user) {
    SetAttributes all;
    all.mode = 0777;
    must(files().setattr(files().root(), all));
    FileSystemOptions theirs = options;
    theirs.calls.credentials = rpc::Credentials::sys("tests", user, user);
    return files().with(theirs);
  }
  Status write(const File& file) { return status(files().write(file, 0, bytes_of("text"))); }
  // Whether another client is refused a lock of these bytes.
  bool others_are_refused(const File& file, FileLock wanted) {
    Nfs4ClientWorld& world = *this;
    auto other = world.run(nfs4::Nfs4::connect(channel, options.calls));
    STAG_CHECK(other.ok());
    FileSystem theirs(*other, files().root(), "/data", options);
    EXPECT_EQ(must(theirs.lookup(files().root(), "file")).handle, file.handle);
    const Opened open = must(theirs.open(file.handle, kBoth));
    const Status got = status(theirs.lock(open.file, kYours, wanted));
    EXPECT_TRUE(got == Status::Ok || got == Status::Locked) << words(got);
    world.run(ended(*other));
    return got == Status::Locked;
  }
  static Task<Ok> ended(std::shared_ptr<nfs4::Nfs4> protocol) {
    co_await protocol->close();
    co_return Ok{};
  }
  template <class T>
  static Task<void> succeeds(Task<Outcome<T>> task) {
    const Outcome<T> outcome = co_await std::move(task);
    EXPECT_TRUE(outcome.ok());
  }
  state::HeldCounts held() {
    const auto all = clients();
    return all.empty() ? state::HeldCounts{} : all.front().held;
  }
  // The server ends all state of the client.
  void end_by_admin() {
    const auto all = clients();
    ASSERT_EQ(all.size(), 1u);
    channel.server->nfs4.administration().expire(all.front().info.clientid, loop.now(),
                                                 [](auto) {});
    loop.drain();
  }
};

class Nfs4HeldWithRecords : public Nfs4Held {
 protected:
  Nfs4HeldWithRecords() : Nfs4Held(true) {}
};

std::string name_of_minor(const ::testing::TestParamInfo<std::uint32_t>& minor) {
  return "v4_" + std::to_string(minor.param);
}
INSTANTIATE_TEST_SUITE_P(Minor, Nfs4Held, ::testing::Values(0u, 1u), name_of_minor);
INSTANTIATE_TEST_SUITE_P(Minor, Nfs4HeldWithRecords, ::testing::Values(0u, 1u), name_of_minor);

TEST_P(Nfs4Held, an_open_is_held_until_it_is_closed) {
  const File file = opened();
  EXPECT_NE(file.open, 0u);
  EXPECT_EQ(held().opens, 1u);
  EXPECT_EQ(write(file), Status::Ok);
  EXPECT_EQ(read(file), Status::Ok);
  must(files().close(file));
  EXPECT_EQ(held().opens, 0u);
}

TEST_P(Nfs4HeldWithRecords, a_lock_is_kept_by_a_server_that_has_a_shorter_lease_after_a_restart) {
  const File file = opened();
  must(files().lock(file, kMine, kTen));
  channel.lease_seconds = 10;
  channel.restart();
  // Between two renewals of the lease of before.
  loop.pass(std::chrono::seconds(200));
  EXPECT_EQ(protocol->lease(), std::chrono::seconds(10));
  EXPECT_TRUE(others_are_refused(file, kAll));
  EXPECT_EQ(write(file), Status::Ok);
}

// RFC 8881 8.4.2: the server has it on record as one that may have something to claim.
TEST_P(Nfs4HeldWithRecords, a_server_that_restarts_waits_for_no_client_that_ends) {
  must(files().close(opened()));
  channel.restart();
  ASSERT_TRUE(channel.grace->active());
  run(closed());
  EXPECT_EQ(channel.grace->active(), GetParam() == 0) << "version 4.0 has no goodbye";
  EXPECT_TRUE(clients().empty());
}

TEST_P(Nfs4Held, an_open_permits_what_it_was_made_for) {
  const File file = opened(access::kRead);
  EXPECT_EQ(read(file), Status::Ok);
  EXPECT_EQ(write(file), Status::Access);
  EXPECT_EQ(status(files().open(files().root(), kBoth)), Status::IsDirectory);
}

TEST_P(Nfs4Held, a_new_file_is_open_for_writing_whatever_its_mode) {
  SetAttributes all;
  all.mode = 0777;
  must(files().setattr(files().root(), all));
  options.calls.credentials = rpc::Credentials::sys("tests", 1000, 1000);
  FileSystem user = files().with(options);
  const Opened made =
      must(user.create_open(files().root(), "mine", {.mode = 0444}, CreateMode::Exclusive, kBoth));
  EXPECT_EQ(must(user.write(made.file, 0, bytes_of("text"))).count, 4u);
  EXPECT_EQ(status(user.open(made.file.handle, kBoth)), Status::Access);
  must(user.close(made.file));
}

TEST_P(Nfs4Held, locks_of_others_are_in_the_way_and_ones_own_are_not) {
  const File file = opened();
  must(files().lock(file, kMine, kTen));
  must(files().lock(file, kMine, {5, 20, false}));
  EXPECT_EQ(status(files().lock(file, kYours, kTen)), Status::Locked);
  EXPECT_EQ(status(files().lock(file, kYours, {10, 10, false})), Status::Ok) << "both read";
  const auto other = must(files().test_lock(file, kYours, kAll));
  ASSERT_TRUE(other.has_value());
  EXPECT_LT(other->offset, 25u);
  EXPECT_EQ(must(files().test_lock(file, kMine, {0, 5, true})), std::nullopt);
  must(files().unlock(file, kMine, kAll));
  EXPECT_EQ(status(files().lock(file, kYours, kTen)), Status::Ok);
  EXPECT_TRUE(others_are_refused(file, {9, 1, false}));
}

TEST_P(Nfs4Held, a_file_that_is_closed_is_unlocked) {
  const File file = opened();
  must(files().lock(file, kMine, kTen));
  must(files().lock(file, kYours, {100, 1, true}));
  EXPECT_TRUE(others_are_refused(file, kTen));
  must(files().close(file));
  EXPECT_FALSE(others_are_refused(file, kAll));
}

// RFC 8881 8.2.5, RFC 7530 9.1.4.5: its holder believes that nobody else has changed what it
// locked.
TEST_P(Nfs4Held, nothing_is_read_or_written_under_locks_that_the_server_has_taken_away) {
  const File file = opened();
  const File other = opened();
  must(files().lock(file, kMine, kTen));
  revoke(state::StateInfo::Type::Lock);
  EXPECT_EQ(write(file), Status::StateLost) << "the first to hear of it";
  EXPECT_EQ(read(file), Status::StateLost);
  EXPECT_EQ(must(files().getattr(file.handle)).size, 0u);
  EXPECT_EQ(write(other), Status::Ok) << "has no locks";
  must(files().unlock(file, kMine, kAll));
  EXPECT_EQ(write(file), Status::Ok);
  must(files().close(other));
  must(files().close(file));
}

// RFC 8881 8.2.5: the size is set as data is written.
TEST_P(Nfs4Held, the_size_is_not_set_under_locks_that_are_lost) {
  const File file = opened();
  EXPECT_EQ(write(file), Status::Ok);
  must(files().lock(file, kMine, kTen));
  revoke(state::StateInfo::Type::Lock);
  EXPECT_EQ(status(files().setattr(file, {.size = 1})), Status::StateLost);
  loop.drain();
  EXPECT_EQ(
      calls_of([&] { EXPECT_EQ(status(files().setattr(file, {.size = 1})), Status::StateLost); }),
      0);
  EXPECT_EQ(must(files().getattr(file.handle)).size, 4u);
  EXPECT_EQ(status(files().setattr(file, {.mode = 0600})), Status::Ok);
  EXPECT_EQ(status(files().setattr(file.handle, {.size = 1})), Status::Ok) << "by no open";
  must(files().unlock(file, kMine, kAll));
  EXPECT_EQ(status(files().setattr(file, {.size = 2})), Status::Ok);
  EXPECT_EQ(must(files().change(file, {.size = 3})).size, 3u);
  must(files().close(file));
}

TEST(Nfs42Held, nothing_is_changed_by_an_open_whose_locks_are_lost) {
  HeldWorld world(2);
  FileSystem& files = world.files();
  const auto opened = [&](std::string name) {
    return world
        .must(files.create_open(files.root(), std::move(name), {.mode = 0644},
                                CreateMode::Unchecked, HeldWorld::kBoth))
        .file;
  };
  const auto status = [&](auto task) {
    const auto outcome = world.run(std::move(task));
    return outcome ? Status::Ok : outcome.error().status;
  };
  const File from = opened("from");
  EXPECT_EQ(world.must(files.write(from, 0, bytes_of("text"))).count, 4u);
  const auto each = [&](const File& to) {
    return std::vector{status(files.allocate(to, {0, 8})), status(files.deallocate(to, {0, 4})),
                       status(files.clone_range(from.handle, {0, 4}, to, 8)),
                       status(files.copy_range(from.handle, {0, 4}, to, 16))};
  };
  const File file = opened("file");
  EXPECT_EQ(each(file), std::vector(4, Status::Ok));
  world.must(files.lock(file, HeldWorld::kMine, HeldWorld::kTen));
  EXPECT_EQ(each(file), std::vector(4, Status::Ok));
  world.revoke(state::StateInfo::Type::Lock);
  EXPECT_EQ(each(file), std::vector(4, Status::StateLost));
  EXPECT_EQ(each(file.handle), std::vector(4, Status::Ok)) << "by no open";
  world.run(world.closed());
}

TEST_P(Nfs4Held, an_idle_client_keeps_what_it_holds) {
  const File file = opened();
  must(files().lock(file, kMine, kTen));
  loop.pass(std::chrono::minutes(30));
  EXPECT_TRUE(others_are_refused(file, kTen));
  EXPECT_EQ(read(file), Status::Ok);
  must(files().close(file));
  const int calls = channel.calls;
  loop.pass(std::chrono::minutes(30));
  EXPECT_EQ(channel.calls, calls) << "nothing is held, and no lease renewed";
}

TEST_P(Nfs4Held, files_and_locks_are_given_back_by_a_client_that_ends) {
  const File file = opened();
  must(files().lock(file, kMine, kTen));
  opened(access::kRead);
  run(closed());
  protocol.reset();
  EXPECT_EQ(held().opens, 0u);
  EXPECT_EQ(held().locks, 0u);
  EXPECT_EQ(clients().size(), GetParam() == 0 ? 1u : 0u) << "a client ID of 4.0 ends by its lease";
}

TEST_P(Nfs4Held, a_client_that_ends_asks_a_server_that_does_not_answer_once) {
  opened();
  opened();
  channel.accident = Accident::Swallowed;
  channel.at = channel.calls + 1;
  channel.times = 1 << 20;
  EXPECT_EQ(calls_of([this] { run(closed()); }), 1);
  protocol.reset();
}

// A lease begins when the server hears of its client, not when the client hears of its server.
TEST_P(Nfs4Held, slow_answers_put_no_renewal_of_the_lease_off) {
  const File file = opened();
  must(files().lock(file, kMine, kTen));
  channel.accident = testing::Accident::Slow;
  channel.at = channel.calls + 1;
  channel.times = 3;
  channel.answer_after = std::chrono::seconds(29);  // and 58, and 87: each before a renewal
  std::array<std::byte, 4> to;
  for (int i = 0; i < channel.times; ++i) detach(succeeds(files().read(file, 0, to)));
  loop.pass(std::chrono::seconds(100));
  EXPECT_TRUE(others_are_refused(file, kTen));
  EXPECT_EQ(write(file), Status::Ok);
}

TEST_P(Nfs4HeldWithRecords, opens_and_locks_are_claimed_again_from_a_server_that_restarts) {
  const File file = opened();
  must(files().lock(file, kMine, kTen));
  must(files().lock(file, kMine, {100, 0, false}));
  must(files().lock(file, kYours, {50, 1, true}));
  channel.restart();
  EXPECT_EQ(read(file), Status::Ok);
  EXPECT_EQ(held().opens, 1u);
  EXPECT_FALSE(others_are_refused(file, {10, 40, true}));
  EXPECT_TRUE(others_are_refused(file, {9, 1, false}));
  EXPECT_TRUE(others_are_refused(file, {50, 1, false}));
  EXPECT_TRUE(others_are_refused(file, {~0ull - 1, 1, true}));
  EXPECT_FALSE(others_are_refused(file, {200, 1, false}));
}

// RFC 8881 9.5: an owner has one lock of a byte, by whichever of its opens it was locked last.
TEST_P(Nfs4HeldWithRecords, a_lock_is_claimed_as_its_owner_changed_it_last_by_any_open) {
  const File first = opened();
  const File second = opened();
  must(files().lock(second, kMine, {0, 10, false}));
  must(files().lock(first, kMine, {0, 10, true}));
  must(files().lock(second, kMine, {20, 10, true}));
  must(files().lock(first, kMine, {20, 10, false}));
  channel.restart();
  EXPECT_EQ(read(first), Status::Ok);
  EXPECT_TRUE(others_are_refused(first, {0, 10, false})) << "exclusive at last";
  EXPECT_FALSE(others_are_refused(first, {20, 10, false})) << "shared at last";
  EXPECT_TRUE(others_are_refused(first, {20, 10, true}));
}

TEST_P(Nfs4HeldWithRecords, a_range_unlocked_by_another_open_is_claimed_no_more) {
  const File first = opened();
  const File second = opened();
  must(files().lock(first, kMine, kTen));
  must(files().lock(second, kMine, {20, 10, true}));
  must(files().unlock(first, kMine, kAll));
  EXPECT_FALSE(others_are_refused(first, kAll));
  channel.restart();
  EXPECT_EQ(read(first), Status::Ok);
  EXPECT_FALSE(others_are_refused(first, kAll));
  must(files().close(second));
  must(files().close(first));
  EXPECT_EQ(held().opens, 0u);
}

// A server asks for the right to a file also where it is claimed again.
TEST_P(Nfs4HeldWithRecords, files_are_claimed_as_their_user_whoever_hears_of_the_restart) {
  FileSystem one = as(1000);
  FileSystem other = as(2000);
  const Opened made =
      must(one.create_open(files().root(), "file", {.mode = 0600}, CreateMode::Guarded, kBoth));
  must(one.lock(made.file, kMine, kTen));
  channel.restart();
  must(other.create_open(files().root(), "another", {}, CreateMode::Guarded, kBoth));
  EXPECT_EQ(held().opens, 2u);
  EXPECT_EQ(status(one.write(made.file, 0, bytes_of("text"))), Status::Ok);
  EXPECT_TRUE(others_are_refused(made.file, kTen));
}

TEST_P(Nfs4Held, files_are_opened_again_as_their_user_whoever_hears_of_the_restart) {
  FileSystem one = as(1000);
  FileSystem other = as(2000);
  const Opened made =
      must(one.create_open(files().root(), "file", {.mode = 0600}, CreateMode::Guarded, kBoth));
  channel.restart();
  must(other.create_open(files().root(), "another", {}, CreateMode::Guarded, kBoth));
  EXPECT_EQ(status(one.write(made.file, 0, bytes_of("text"))), Status::Ok);
}

TEST_P(Nfs4HeldWithRecords, an_idle_client_hears_of_a_restart_while_it_may_claim) {
  const File file = opened();
  must(files().lock(file, kMine, kTen));
  channel.restart();
  loop.pass(std::chrono::seconds(89));
  EXPECT_EQ(held().opens, 1u);
  EXPECT_TRUE(others_are_refused(file, kTen));
}

// RFC 8881 8.4.2.1: a grace period ends, however many opens there are and far away the server is.
TEST(Nfs4HeldByMany, are_claimed_by_sixteen_calls_at_once) {
  HeldWorld world(1);
  world.channel.keep_records();
  world.channel.restart();
  constexpr int kOpens = 64;
  Handle file;
  for (int i = 0; i < kOpens; ++i)
    file =
        world
            .must(world.files().create_open(world.files().root(), std::to_string(i), {.mode = 0644},
                                            CreateMode::Guarded, HeldWorld::kBoth))
            .file.handle;
  world.channel.restart();
  world.channel.accident = Accident::Slow;
  world.channel.at = world.channel.calls + 1;
  world.channel.times = 1 << 20;
  world.channel.answer_after = std::chrono::milliseconds(1);  // a call later each is slower by that
  world.channel.most_in_progress = 0;
  // Behind them all.
  const File another = world.must(world.files().open(file, HeldWorld::kBoth)).file;
  EXPECT_EQ(world.channel.most_in_progress, 16);
  world.must(world.files().close(another));
  EXPECT_EQ(world.clients().front().held.opens, static_cast<std::uint32_t>(kOpens));
  world.run(world.closed());
}

TEST_P(Nfs4HeldWithRecords, many_restarts_in_a_row_lose_nothing) {
  const File file = opened();
  must(files().lock(file, kMine, kTen));
  for (int i = 0; i < 20; ++i) {
    channel.restart();
    EXPECT_EQ(write(file), Status::Ok);
  }
  EXPECT_TRUE(others_are_refused(file, kTen));
}

TEST_P(Nfs4Held, a_server_without_records_opens_again_and_a_lost_lock_is_told_its_holder) {
  const File plain = opened();
  const File locked = opened();
  must(files().lock(locked, kMine, kTen));
  channel.restart();
  EXPECT_EQ(write(plain), Status::Ok);
  EXPECT_EQ(read(locked), Status::StateLost);
  EXPECT_EQ(write(locked), Status::StateLost);
  EXPECT_EQ(status(files().lock(locked, kMine, {50, 1, true})), Status::StateLost);
  must(files().unlock(locked, kMine, kAll));
  EXPECT_EQ(write(locked), Status::Ok) << "what was lost was given back";
  must(files().lock(locked, kMine, kTen));
  EXPECT_TRUE(others_are_refused(locked, kTen));
}

TEST_P(Nfs4Held, a_client_whose_lease_has_ended_opens_again_and_has_lost_its_locks) {
  const File plain = opened();
  const File locked = opened();
  must(files().lock(locked, kMine, kTen));
  end_by_admin();
  EXPECT_EQ(read(plain), Status::Ok);
  EXPECT_EQ(read(locked), Status::StateLost);
  must(files().close(locked));
  must(files().close(plain));
  EXPECT_EQ(held().opens, 0u);
}

TEST_P(Nfs4Held, a_file_that_may_not_be_opened_again_is_lost) {
  SetAttributes all;
  all.mode = 0777;
  must(files().setattr(files().root(), all));
  options.calls.credentials = rpc::Credentials::sys("tests", 1000, 1000);
  FileSystem user = files().with(options);
  const Opened made =
      must(user.create_open(files().root(), "mine", {.mode = 0444}, CreateMode::Guarded, kBoth));
  channel.restart();
  EXPECT_EQ(status(user.write(made.file, 0, bytes_of("text"))), Status::StateLost);
  EXPECT_EQ(status(user.close(made.file)), Status::Ok);
}

TEST_P(Nfs4Held, an_open_that_an_administrator_revokes_is_made_again_without_its_locks) {
  const File file = opened();
  must(files().lock(file, kMine, kTen));
  const auto revoke_all = [this] {
    state::StateCursor at;
    state::StatePage page;
    auto admin = channel.server->nfs4.administration();
    std::vector<state::Stateid> all;
    for (bool more = true; more;) {
      more = admin.states(at, {}, page);
      for (const auto& listed : page.rows()) all.push_back(listed.stateid);
    }
    for (const state::Stateid& stateid : all) admin.revoke(stateid);
  };
  revoke_all();
  EXPECT_EQ(read(file), Status::StateLost);
  must(files().unlock(file, kMine, kAll));
  EXPECT_EQ(read(file), Status::Ok);
  EXPECT_EQ(held().opens, 1u);
  if (GetParam() == 0) return;  // it has no FREE_STATEID
  EXPECT_EQ(clients().front().info.revoked, 0u) << "what was revoked was freed";
}

// The same life, with one accident.
class Nfs4HeldAccidents : public HeldWorld {
 public:
  explicit Nfs4HeldAccidents(std::uint32_t minor) : HeldWorld(minor) {
    channel.keep_records();
    channel.restart();
    files();
  }
  // As many opens of one file, each with a lock; the last one.
  File opened_and_locked(int opens) {
    File file;
    for (int i = 0; i < opens; ++i) {
      file = must(files().create_open(files().root(), "file", {.mode = 0640}, CreateMode::Unchecked,
                                      kBoth))
                 .file;
      must(files().lock(file, kMine, {static_cast<std::uint64_t>(i) * 10, 5, true}));
    }
    return file;
  }
  std::string live() {
    std::string wrong;
    const auto check = [&wrong](std::string_view what, const auto& outcome) {
      if (!outcome && wrong.empty()) wrong = std::string(what) + ": " + outcome.error().sentence;
      return outcome.ok();
    };
    const Handle top = files().root();
    const auto made =
        run(files().create_open(top, "file", {.mode = 0640}, CreateMode::Unchecked, kBoth));
    if (!check("create", made)) return wrong;
    const File file = made->file;
    const auto again = run(files().open(file.handle, access::kRead));
    if (!check("open", again)) return wrong;
    check("lock", run(files().lock(file, kMine, kTen)));
    check("write", run(files().write(file, 0, bytes_of("text"))));
    check("lock for reading", run(files().lock(again->file, kYours, {20, 10, false})));
    const auto denied = run(files().lock(again->file, kYours, {5, 10, false}));
    if (denied || denied.error().status != Status::Locked) wrong += " a lock was not denied";
    check("test", run(files().test_lock(file, kYours, kTen)));
    check("unlock a part", run(files().unlock(file, kMine, {0, 4, true})));
    std::array<std::byte, 4> to;
    check("read", run(files().read(again->file, 0, to)));
    // What is claimed and the read has not waited for.
    loop.drain();
    const auto counts = clients().empty() ? state::HeldCounts{} : clients().front().held;
    if (counts.opens != 2) wrong += " opens: " + std::to_string(counts.opens);
    if (counts.locks != 2) wrong += " locks: " + std::to_string(counts.locks);
    check("unlock", run(files().unlock(file, kMine, kAll)));
    check("close", run(files().close(file)));
    check("close of the other", run(files().close(again->file)));
    const auto left = clients().empty() ? state::HeldCounts{} : clients().front().held;
    if (left.opens + left.locks != 0) wrong += " something is left";
    return wrong;
  }
};

TEST(Nfs4HeldAccidents, every_call_of_an_open_is_executed_once_wherever_the_connection_is_cut) {
  for (const std::uint32_t minor : {0u, 1u, 2u}) {
    Nfs4HeldAccidents undisturbed(minor);
    const int from = undisturbed.channel.calls + 1;
    ASSERT_EQ(undisturbed.live(), "");
    for (const Accident accident : {Accident::CutBefore, Accident::CutAfter}) {
      for (int at = from; at <= undisturbed.channel.calls; ++at) {
        Nfs4HeldAccidents world(minor);
        world.channel.accident = accident;
        world.channel.at = at;
        EXPECT_EQ(world.live(), "") << "version 4." << minor << ", call " << at;
        world.run(world.closed());
      }
    }
    undisturbed.run(undisturbed.closed());
  }
}

TEST(Nfs4HeldAccidents, a_server_that_restarts_before_any_call_takes_nothing_away) {
  for (const std::uint32_t minor : {0u, 1u}) {
    Nfs4HeldAccidents undisturbed(minor);
    const int from = undisturbed.channel.calls + 1;
    ASSERT_EQ(undisturbed.live(), "");
    for (int at = from; at <= undisturbed.channel.calls; ++at) {
      Nfs4HeldAccidents world(minor);
      world.channel.accident = Accident::Restart;
      world.channel.at = at;
      EXPECT_EQ(world.live(), "") << "version 4." << minor << ", call " << at;
      world.run(world.closed());
    }
    undisturbed.run(undisturbed.closed());
  }
}

// RFC 8881 8.4.2.1, 18.50.3: what it has claimed is closed, and it says that it claims nothing
// more. Version 4.0 says no goodbye, but closes what it has claimed, too.
TEST(Nfs4HeldAccidents, a_client_that_ends_amid_its_recovery_leaves_nothing_behind) {
  for (const std::uint32_t minor : {0u, 1u}) {
    for (const Accident accident : {Accident::Swallowed, Accident::Lost}) {
      bool recovered = false;
      for (int at = 1; !recovered; ++at) {
        Nfs4HeldAccidents world(minor);
        const File file = world.opened_and_locked(3);
        world.channel.restart();
        world.channel.accident = accident;
        world.channel.at = world.channel.calls + at;
        std::array<std::byte, 4> to;
        recovered = world.run(world.files().read(file, 0, to)).ok();
        world.channel.accident = Accident::None;
        world.run(world.closed());
        SCOPED_TRACE("version 4." + std::to_string(minor) + ", call " + std::to_string(at));
        for (const auto& client : world.clients()) {
          EXPECT_EQ(client.held.opens, 0u);
          EXPECT_EQ(client.held.locks, 0u);
        }
        if (minor == 0) continue;
        EXPECT_TRUE(world.clients().empty());
        EXPECT_FALSE(world.channel.grace->active());
      }
    }
  }
}

// But for what was being claimed when the recovery was cut off.
TEST(Nfs4HeldAccidents, a_client_that_ends_claims_nothing_of_a_server_that_restarts) {
  for (const std::uint32_t minor : {0u, 1u}) {
    for (const bool claiming : {false, true}) {
      const auto calls_of_an_end = [minor, claiming](int opens) {
        Nfs4HeldAccidents world(minor);
        const File file = world.opened_and_locked(opens);
        world.channel.restart();
        world.channel.accident = Accident::Lost;
        // Of those that are claimed at once, or of the lock of one.
        world.channel.at = world.channel.calls + 5;
        world.channel.times = 1 << 20;
        std::array<std::byte, 4> to;
        if (claiming) {
          EXPECT_FALSE(world.run(world.files().read(file, 0, to)).ok());
        }
        world.channel.accident = Accident::None;
        return world.calls_of([&world] { world.run(world.closed()); });
      };
      // As many as are claimed at once, and more.
      EXPECT_EQ(calls_of_an_end(16), calls_of_an_end(40))
          << "version 4." << minor << ", claiming: " << claiming;
    }
  }
}

TEST(Nfs4HeldAccidents, a_client_that_ends_amid_its_recovery_asks_a_silent_server_once) {
  Nfs4HeldAccidents world(1);
  const File file = world.opened_and_locked(3);
  world.channel.restart();
  world.channel.accident = Accident::Swallowed;
  world.channel.at = world.channel.calls + 6;  // of the claims
  world.channel.times = 1 << 20;
  std::array<std::byte, 4> to;
  EXPECT_FALSE(world.run(world.files().read(file, 0, to)).ok());
  EXPECT_EQ(world.calls_of([&world] { world.run(world.closed()); }), 1);
}

}  // namespace
}  // namespace stag::nfs::client
