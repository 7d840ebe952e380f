// An OPEN or a LOCK that its caller has given up, and that the server executes all the same, is
// taken back; what the owner of a lock had before, or got since, stays (RFC 8267 section 6.6).
#include <gtest/gtest.h>

#include <array>
#include <functional>

#include "base/task_group.h"
#include "testing/nfs/held_world.h"
#include "testing/nfs/stray_sequence.h"

namespace stag::nfs::client {
namespace {

using namespace std::chrono_literals;
using testing::Accident;
using testing::HeldWorld;

constexpr FileLock kShared{0, 10, false};
constexpr FileLock kSecond{20, 10, true};

class Nfs4GivenUp : public ::testing::TestWithParam<std::uint32_t>, public HeldWorld {
 protected:
  Nfs4GivenUp() : HeldWorld(GetParam()) {}
  void TearDown() override {
    if (protocol) run(closed());
    EXPECT_TRUE(clients().empty()) << "something is left";
  }
  File opened() {
    return must(files().create_open(files().root(), "file", {.mode = 0644}, CreateMode::Unchecked,
                                    kBoth))
        .file;
  }
  // Does `what`, whose first call comes to `accident`: its caller hears of nothing.
  template <class F>
  void given_up(Accident accident, F what) {
    channel.accident = accident;
    channel.at = channel.calls + 1;
    const auto outcome = run(what());
    ASSERT_FALSE(outcome.ok());
    EXPECT_EQ(outcome.error().call.reason, Reason::TimedOut);
    channel.accident = Accident::None;
  }
  // The call that `what` begins with is executed; those behind it, but for the first `answered` of
  // them, find no connection for a minute, at the end of which `behind` is done.
  template <class F>
  void cut_off(
      int answered, F what, const std::function<void()>& behind = [] {}) {
    channel.accident = Accident::Lost;
    channel.at = channel.calls + 1;
    channel.on_accident = [this, answered] {
      if (channel.accident != Accident::Lost) return;
      channel.on_accident = nullptr;
      channel.accident = Accident::Swallowed;
      channel.why = Reason::ConnectTimedOut;
      channel.at += answered + 1;
      channel.times = 1'000'000;
    };
    ASSERT_FALSE(run(what()).ok());
    loop.pass(60s);
    ASSERT_GT(channel.calls, channel.at) << "it is asked again";
    channel.accident = Accident::None;
    behind();
    loop.pass(60s);
  }
  // The server keeps the client and what it holds.
  void destroy_session() {
    v4::COMPOUND4args args;
    args.minorversion = GetParam();
    args.argarray.emplace_back().argop = v4::OP_DESTROY_SESSION;
    args.argarray[0].opdestroy_session() = {protocol->session_id()};
    const rpc::Client client(channel, {}, options.calls.credentials);
    const auto results = loop.run(testing::compounded(client, std::move(args)));
    ASSERT_TRUE(results && results->ok());
    ASSERT_EQ((*results)->status, v4::NFS4_OK);
  }
  Task<void> unheard(File file, FileLock wanted) {
    const Outcome<Ok> locked = co_await files().lock(file, kMine, wanted);
    EXPECT_FALSE(locked.ok());
  }
  state::HeldCounts held() {
    loop.drain();
    const auto all = clients();
    return all.empty() ? state::HeldCounts{} : all.front().held;
  }
  // What is in the way of another client that wants these bytes.
  std::optional<FileLock> in_the_way(const File& file, FileLock wanted) {
    loop.drain();
    auto other = HeldWorld::run(nfs4::Nfs4::connect(channel, options.calls));
    STAG_CHECK(other.ok());
    FileSystem theirs(*other, files().root(), "/data", options);
    const Opened open = must(theirs.open(file.handle, kBoth));
    const auto found = must(theirs.test_lock(open.file, kYours, wanted));
    must(theirs.close(open.file));
    HeldWorld::run(ended(*other));
    return found;
  }
  static Task<Ok> ended(std::shared_ptr<nfs4::Nfs4> of) {
    co_await of->close();
    co_return Ok{};
  }
  bool is_free(const File& file, FileLock wanted = kAll) { return !in_the_way(file, wanted); }
};

INSTANTIATE_TEST_SUITE_P(Minor, Nfs4GivenUp, ::testing::Values(1u, 2u),
                         [](const auto& minor) { return "v4_" + std::to_string(minor.param); });

TEST_P(Nfs4GivenUp, a_LOCK_is_taken_back) {
  const File file = opened();
  given_up(Accident::Lost, [&] { return files().lock(file, kMine, kTen); });
  EXPECT_TRUE(is_free(file));
  must(files().close(file));
}

TEST_P(Nfs4GivenUp, a_LOCK_is_taken_back_and_no_other_lock_of_its_owner) {
  const File file = opened();
  must(files().lock(file, kMine, kSecond));
  given_up(Accident::Lost, [&] { return files().lock(file, kMine, kTen); });
  EXPECT_TRUE(is_free(file, kTen));
  EXPECT_FALSE(is_free(file, kSecond));
  given_up(Accident::Lost, [&] { return files().lock(file, kMine, kAll); });
  EXPECT_TRUE(is_free(file, kTen));
  EXPECT_FALSE(is_free(file, kSecond));
  must(files().close(file));
}

TEST_P(Nfs4GivenUp, a_LOCK_that_the_owner_got_since_stays) {
  const File file = opened();
  given_up(Accident::Lost, [&] { return files().lock(file, kMine, kTen); });
  must(files().lock(file, kMine, kTen));
  EXPECT_FALSE(is_free(file));
  must(files().unlock(file, kMine, kTen));
  EXPECT_TRUE(is_free(file));
  must(files().close(file));
}

TEST_P(Nfs4GivenUp, a_LOCK_leaves_the_kind_that_the_owner_had) {
  const File file = opened();
  for (const auto& [had, wanted] : {std::pair(kTen, kShared), std::pair(kShared, kTen)}) {
    must(files().lock(file, kMine, had));
    given_up(Accident::Lost, [&, wanted = wanted] { return files().lock(file, kMine, wanted); });
    const auto found = in_the_way(file, kTen);
    ASSERT_TRUE(found);
    EXPECT_EQ(found->exclusive, had.exclusive);
  }
  must(files().close(file));
}

// Asked for again it would be granted, late.
TEST_P(Nfs4GivenUp, what_did_not_arrive_is_not_asked_for_again) {
  const File file = opened();
  const int locks = calls_of([&] {
    given_up(Accident::Swallowed, [&] { return files().lock(file, kMine, kTen); });
    loop.drain();
  });
  EXPECT_EQ(locks, 2) << "the LOCK and the SEQUENCE behind it";
  const int opens = calls_of([&] {
    given_up(Accident::Swallowed, [&] { return files().open(file.handle, kBoth); });
    loop.drain();
  });
  EXPECT_EQ(opens, 2);
  must(files().close(file));
}

TEST_P(Nfs4GivenUp, an_OPEN_is_closed) {
  const File file = opened();
  given_up(Accident::Lost, [&] { return files().open(file.handle, kBoth); });
  EXPECT_EQ(held().opens, 1u);
  must(files().close(file));
  given_up(Accident::Lost, [&] {
    return files().create_open(files().root(), "new", {.mode = 0644}, CreateMode::Unchecked, kBoth);
  });
  EXPECT_EQ(held().opens, 0u);
}

// The owner asks for nothing else while a LOCK of its own may be granted late.
TEST_P(Nfs4GivenUp, a_LOCK_of_a_silent_server_is_taken_back_when_it_answers) {
  options.calls.timeout = 2s;
  const File file = opened();
  channel.fall_silent();
  const Outcome<Ok> lost = run(files().lock(file, kMine, kTen));
  ASSERT_FALSE(lost.ok());
  const int before = channel.calls;
  const Outcome<Ok> next = run(files().lock(file, kMine, kSecond));
  ASSERT_FALSE(next.ok());
  EXPECT_EQ(next.error().call.reason, Reason::TimedOut);
  EXPECT_LE(channel.calls, before + 1) << "no LOCK";
  channel.accident = Accident::None;
  loop.pass(60s);
  must(files().lock(file, kMine, kSecond));
  must(files().close(file));
}

// Of a call that was never sent, why there is no connection is said, and not that its time is over.
TEST_P(Nfs4GivenUp, a_LOCK_is_taken_back_when_the_server_can_be_reached_again) {
  const File file = opened();
  for (const int answered : {0, 1}) {
    cut_off(answered, [&] { return files().lock(file, kMine, kTen); });
    EXPECT_TRUE(is_free(file)) << answered;
  }
  must(files().close(file));
}

// That it was granted is known by the answer before; only the session is lost, and not the state.
TEST_P(Nfs4GivenUp, a_LOCK_is_taken_back_though_its_session_is_lost_meanwhile) {
  const File file = opened();
  cut_off(
      1, [&] { return files().lock(file, kMine, kTen); }, [&] { destroy_session(); });
  EXPECT_TRUE(is_free(file));
  must(files().close(file));
}

TEST_P(Nfs4GivenUp, an_OPEN_is_closed_when_the_server_can_be_reached_again) {
  const File file = opened();
  for (const int answered : {0, 1, 2}) {
    cut_off(answered, [&] { return files().open(file.handle, kBoth); });
    EXPECT_EQ(held().opens, 1u) << answered;
  }
  must(files().close(file));
}

// Else the second one would have what the first one is about to give back for what the owner had.
TEST_P(Nfs4GivenUp, LOCKs_of_one_owner_are_taken_back_one_after_the_other) {
  const File file = opened();
  loop.drain();
  const int first = channel.calls + 1;
  channel.accident = Accident::Lost;
  channel.at = first;
  channel.times = 1'000;
  TaskGroup both;
  channel.on_accident = [&] {
    const int call = channel.calls - first;
    if (call == 0) both.add(unheard(file, kShared));
    if (call < 2) return;
    channel.accident = Accident::Slow;
    channel.at = channel.calls;
    // SEQUENCE about the second one; SEQUENCE about the first one, LOCK, LOCKU.
    constexpr std::array kAnswers = {4s, 0s, 1s, 10s};
    const auto which = static_cast<std::size_t>(call) - 2;
    channel.answer_after = which < kAnswers.size() ? kAnswers[which] : 0s;
  };
  both.add(unheard(file, kTen));
  loop.pass(60s);
  channel.on_accident = nullptr;
  channel.accident = Accident::None;
  EXPECT_TRUE(is_free(file));
  must(files().close(file));
}

TEST_P(Nfs4GivenUp, what_cannot_be_asked_about_any_more_is_left_to_the_end) {
  options.calls.timeout = 2s;
  const File file = opened();
  const int calls = calls_of([&] {
    given_up(Accident::Lost, [&] {
      channel.on_accident = [this] { channel.restart(); };
      return files().lock(file, kMine, kTen);
    });
    loop.drain();
  });
  channel.on_accident = nullptr;
  EXPECT_EQ(calls, 2) << "the LOCK and the SEQUENCE behind it";
  static_cast<void>(run(files().close(file)));
}

}  // namespace
}  // namespace stag::nfs::client
