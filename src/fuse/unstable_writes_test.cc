#include "fuse/unstable_writes.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <string>
#include <vector>

#include "base/task_group.h"
#include "testing/nfs/volatile_server.h"

namespace stag::fuse {
namespace {

using nfs::client::handle_of;
using nfs::client::Outcome;
using nfs::client::Status;

constexpr std::size_t kMost = 4u << 20;
constexpr std::uint64_t kFile = Inodes::kRoot + 1;  // the first that the kernel is told
constexpr std::uint64_t kOther = kFile + 1;

// The writes of one mount to such a server. A program has two files open.
struct World : testing::VolatileServer {
  World() {
    for (const char* name : {"file", "other"})
      inodes.open(*inodes.find(inodes.enter(handle_of(name))));
  }
  Task<Outcome<std::size_t>> begun(std::uint64_t offset, std::string text,
                                   std::uint64_t number = kFile) {
    Memory request(static_cast<std::byte*>(std::malloc(requests.size())));
    std::copy(bytes_of(text).begin(), bytes_of(text).end(), request.get());
    const Bytes data(request.get(), text.size());
    Outcome<std::size_t> written =
        co_await unstable_writes.write(number, inodes.find(number)->handle, offset, request, data);
    co_return written;
  }
  void written(std::uint64_t offset, const std::string& text, std::uint64_t number = kFile) {
    const Outcome<std::size_t> done = scripted.run(begun(offset, text, number));
    ASSERT_TRUE(done) << done.error().sentence;
    EXPECT_EQ(*done, text.size());
  }
  void join(TaskGroup& tasks) {
    scripted.run([](TaskGroup& group) -> Task<bool> {
      co_await group.join();
      co_return true;
    }(tasks));
  }
  bool safe() { return scripted.run(unstable_writes.make_safe(kFile)); }
  Outcome<Ok> committed() { return scripted.run(unstable_writes.commit(kFile)); }

  // The last close(2); then the kernel forgets the file.
  void close_and_forget() {
    inodes.close(kFile);
    inodes.forget(kFile, 1);
  }

  Buffers requests{1u << 20, 4};
  Inodes inodes{handle_of("root")};
  UnstableWrites unstable_writes{scripted.files, inodes, requests, kMost};
};

TEST(UnstableWrites, a_file_written_in_one_piece_needs_no_COMMIT) {
  World world;
  world.written(0, "all of it");
  EXPECT_EQ(world.disk, "all of it");
  ASSERT_TRUE(world.committed());
  EXPECT_EQ(world.commits, 0);
  EXPECT_EQ(world.unstable, 0);
}

TEST(UnstableWrites, begin_with_the_second_WRITE_and_end_with_a_COMMIT) {
  World world;
  world.written(0, "one ");
  world.written(4, "two ");
  world.written(8, "three");
  EXPECT_EQ(world.disk, "one ");
  EXPECT_EQ(world.unstable_writes.kept_bytes(), 9u);
  ASSERT_TRUE(world.committed());
  EXPECT_EQ(world.disk, "one two three");
  EXPECT_EQ(world.commits, 1);
  EXPECT_EQ(world.unstable_writes.kept_bytes(), 0u);
  ASSERT_TRUE(world.committed());
  EXPECT_EQ(world.commits, 1);
}

// Where the largest item of each Call is, as a transport finds it.
struct LookingChannel final : rpc::Channel {
  explicit LookingChannel(rpc::Channel& behind) : Channel(1), channel(behind) {}
  Task<Result<rpc::ReplyMessage, rpc::CallError>> call(rpc::CallMessage& message) override {
    auto reply = co_await channel.call(message);
    for (std::uint32_t i = 0; i < message.stream.items().size(); ++i) {
      const Rope item = message.stream.item_bytes(i);
      if (item.size() >= kMost / 4) seen.push_back(item.pieces()[0].bytes().data());
    }
    co_return reply;
  }
  Task<void> close() override { return channel.close(); }
  void serve_reverse(rpc::Service&) override {}
  Loop& loop() override { return channel.loop(); }
  rpc::TransportKind kind() const override { return channel.kind(); }
  std::string where() const override { return channel.where(); }

  rpc::Channel& channel;
  std::vector<const std::byte*> seen;
};

TEST(UnstableWrites, a_large_request_is_sent_from_its_own_memory_and_again_from_there) {
  World world;
  LookingChannel channel(world.scripted.channel);
  nfs::client::FileSystem files(channel, handle_of("root"), "/data", {});
  UnstableWrites writes(files, world.inodes, world.requests, kMost);
  std::vector<const std::byte*> from;
  for (int i = 0; i < 2; ++i) {  // the first one is stable
    Memory request(static_cast<std::byte*>(std::calloc(1, world.requests.size())));
    from.push_back(request.get());
    const Bytes data(request.get(), world.requests.size());
    ASSERT_TRUE(world.scripted.run(writes.write(kFile, handle_of("file"), 0, request, data)));
  }
  EXPECT_EQ(channel.seen, from);
  world.restarts_before_commit = 1;
  ASSERT_TRUE(world.scripted.run(writes.commit(kFile)));
  from.push_back(from.back());
  EXPECT_EQ(channel.seen, from);
}

TEST(UnstableWrites, are_written_again_in_their_order_after_a_restart) {
  World world;
  world.written(0, "....");
  world.written(0, "aaaa");
  world.written(2, "bb");
  world.restarts_before_commit = 1;
  ASSERT_TRUE(world.committed());
  EXPECT_EQ(world.disk, "aabb");
  EXPECT_EQ(world.unstable_writes.kept_bytes(), 0u);
}

TEST(UnstableWrites, a_restart_between_two_writes_is_seen_by_the_COMMIT) {
  World world;
  world.written(0, "....");
  world.written(0, "aaaa");
  world.restart_at_write = 3;
  world.written(4, "bbbb");
  EXPECT_EQ(world.memory, std::string("....bbbb"));
  ASSERT_TRUE(world.committed());
  EXPECT_EQ(world.disk, "aaaabbbb");
}

TEST(UnstableWrites, a_restart_within_one_write_is_seen_by_the_COMMIT) {
  World world;
  world.most = 2;
  world.written(0, "....");
  world.restart_at_write = world.writes + 2;
  world.written(0, "aabb");
  EXPECT_EQ(world.memory, "..bb");
  ASSERT_TRUE(world.committed());
  EXPECT_EQ(world.disk, "aabb");
}

// A COMMIT that finds out about a restart takes a millisecond, as does each WRITE.
struct Meanwhile : ::testing::TestWithParam<int> {};

TEST_P(Meanwhile, a_write_is_not_overwritten_by_older_data) {
  World world;
  world.written(0, "........");
  world.written(0, "aaaa");
  world.written(4, "bbbb");
  world.restarts_before_commit = 1;
  TaskGroup tasks;
  const auto committed = [](World& w) -> Task<void> {
    const Outcome<Ok> done = co_await w.unstable_writes.commit(kFile);
    EXPECT_TRUE(done.ok());
  };
  const auto later = [](World& w) -> Task<void> {
    co_await sleep_for(w.scripted.loop, std::chrono::microseconds(GetParam()));
    const Outcome<std::size_t> done = co_await w.begun(2, "new!");
    EXPECT_TRUE(done.ok());
  };
  tasks.add(committed(world));
  tasks.add(later(world));
  world.join(tasks);
  EXPECT_EQ(world.memory, "aanew!bb");
  ASSERT_TRUE(world.committed());
  EXPECT_EQ(world.disk, "aanew!bb");
}

INSTANTIATE_TEST_SUITE_P(UnstableWrites, Meanwhile,
                         ::testing::Values(0, 100, 500, 900, 1100, 1500, 1900, 2100, 2500, 3500));

TEST(UnstableWrites, are_doubtful_from_the_loss_of_a_connection_until_they_are_committed) {
  World world;
  world.scripted.channel.lost_connections = 3;
  world.written(0, "....");
  EXPECT_FALSE(world.unstable_writes.is_doubtful(kFile)) << "nothing is kept";
  world.written(0, "aaaa");
  world.written(4, "bbbb");
  EXPECT_FALSE(world.unstable_writes.is_doubtful(kFile));
  ++world.scripted.channel.lost_connections;
  EXPECT_TRUE(world.unstable_writes.is_doubtful(kFile));
  world.written(8, "cccc");
  EXPECT_TRUE(world.unstable_writes.is_doubtful(kFile)) << "what was written before";
  ASSERT_TRUE(world.committed());
  EXPECT_FALSE(world.unstable_writes.is_doubtful(kFile));
  world.written(0, "....");
  world.written(0, "dddd");
  EXPECT_FALSE(world.unstable_writes.is_doubtful(kFile));
}

TEST(UnstableWrites, are_doubtful_where_two_WRITEs_tell_of_a_restart_between_them) {
  World world;
  world.written(0, "....");
  world.written(0, "aaaa");
  world.restart_at_write = 3;
  world.written(4, "bbbb");
  EXPECT_TRUE(world.unstable_writes.is_doubtful(kFile));
  ASSERT_TRUE(world.committed());
  EXPECT_FALSE(world.unstable_writes.is_doubtful(kFile));
}

TEST(UnstableWrites, are_doubtful_where_a_restart_was_seen_within_one_of_them) {
  World world;
  world.most = 2;
  world.written(0, "....");
  world.restart_at_write = world.writes + 2;
  world.written(0, "aabb");
  EXPECT_TRUE(world.unstable_writes.is_doubtful(kFile));
}

TEST(UnstableWrites, end_where_the_furthest_of_what_is_kept_does) {
  World world;
  world.written(0, "....");
  EXPECT_EQ(world.unstable_writes.kept_end(kFile), 0u) << "stable";
  world.written(100, "aaaa");
  world.written(4, "bbbb");
  EXPECT_EQ(world.unstable_writes.kept_end(kFile), 104u);
  ASSERT_TRUE(world.committed());
  EXPECT_EQ(world.unstable_writes.kept_end(kFile), 0u);
  world.written(0, "....");
  world.written(4, "bbbb");
  EXPECT_EQ(world.unstable_writes.kept_end(kFile), 8u);
}

TEST(UnstableWrites, count_alone_after_a_COMMIT_if_they_came_meanwhile) {
  World world;
  world.written(0, "....");
  world.written(100, "aaaa");
  ++world.scripted.channel.lost_connections;
  TaskGroup tasks;
  tasks.add([](World& w) -> Task<void> {
    const Outcome<Ok> done = co_await w.unstable_writes.commit(kFile);
    EXPECT_TRUE(done.ok());
  }(world));
  tasks.add([](World& w) -> Task<void> {
    co_await sleep_for(w.scripted.loop, std::chrono::microseconds(100));
    const Outcome<std::size_t> done = co_await w.begun(0, "new!");
    EXPECT_TRUE(done.ok());
  }(world));
  world.join(tasks);
  EXPECT_EQ(world.unstable_writes.kept_bytes(), 4u);
  EXPECT_EQ(world.unstable_writes.kept_end(kFile), 4u);
  EXPECT_FALSE(world.unstable_writes.is_doubtful(kFile));
}

TEST(UnstableWrites, are_kept_up_to_a_limit) {
  World world;
  const std::string text(1u << 20, 'x');
  for (std::uint64_t i = 0; i < 12; ++i) {
    world.written(i << 20, text);
    EXPECT_LE(world.unstable_writes.kept_bytes(), kMost);
  }
  EXPECT_GE(world.commits, 2);
  ASSERT_TRUE(world.committed());
  EXPECT_EQ(world.disk, std::string(12u << 20, 'x'));
}

// Fills all room, and is idle then; nobody syncs it.
void fill(World& world) {
  const std::string text(1u << 20, 'x');
  for (std::uint64_t i = 0; i < 4; ++i) world.written(i << 20, text);
  ASSERT_EQ(world.unstable_writes.kept_bytes(), 3u << 20);
  ASSERT_EQ(world.commits, 0);
}

TEST(UnstableWrites, make_room_for_those_of_another_file_where_theirs_is_idle) {
  World world;
  fill(world);
  for (std::uint64_t i = 0; i < 3; ++i) world.written(i << 20, std::string(1u << 20, 'y'), kOther);
  EXPECT_EQ(world.commits, 1);
  EXPECT_EQ(world.unstable, 3 + 1);
  EXPECT_EQ(world.unstable_writes.kept_end(kFile), 0u);
  EXPECT_EQ(world.unstable_writes.kept_end(kOther), 3u << 20);
}

TEST(UnstableWrites, that_find_no_room_are_stable_and_wait_for_no_COMMIT_of_another_file) {
  World world;
  fill(world);
  world.hung = handle_of("file");
  const TimePoint before = world.scripted.loop.now();
  for (std::uint64_t i = 0; i < 4; ++i) world.written(i << 20, std::string(1u << 20, 'y'), kOther);
  EXPECT_LT(world.scripted.loop.now() - before, World::kHangs);
  EXPECT_EQ(world.unstable, 3);
  EXPECT_EQ(world.unstable_writes.kept_end(kFile), 4u << 20);
  world.scripted.loop.pass(World::kHangs);
  EXPECT_EQ(world.commits, 1);
  EXPECT_EQ(world.unstable_writes.kept_end(kFile), 0u);
  world.written(4u << 20, std::string(1u << 20, 'y'), kOther);
  EXPECT_EQ(world.unstable, 3 + 1);
}

TEST(UnstableWrites, make_room_another_time_where_there_was_no_memory_for_the_first) {
  World world;
  fill(world);
  const std::string text(1u << 20, 'y');
  world.written(0, text, kOther);
  world.scripted.channel.no_memory_for_call = 1;
  for (std::uint64_t i = 1; i < 3; ++i) world.written(i << 20, text, kOther);
  EXPECT_EQ(world.commits, 1);
  EXPECT_EQ(world.unstable_writes.kept_end(kFile), 0u);
}

TEST(UnstableWrites, make_room_by_another_file_where_the_COMMIT_of_the_largest_hangs) {
  World world;
  constexpr std::uint64_t kThird = kOther + 1;
  world.inodes.open(*world.inodes.find(world.inodes.enter(handle_of("third"))));
  const std::string text(1u << 20, 'x');
  for (std::uint64_t i = 0; i < 3; ++i) world.written(i << 20, text);
  for (std::uint64_t i = 0; i < 2; ++i) world.written(i << 20, text, kOther);
  world.hung = handle_of("file");
  TaskGroup tasks;
  tasks.add([](World& w) -> Task<void> {
    const Outcome<Ok> done = co_await w.unstable_writes.commit(kFile);
    EXPECT_TRUE(done.ok());
  }(world));
  for (std::uint64_t i = 0; i < 2; ++i) world.written(i << 20, text, kThird);
  world.scripted.loop.pass(std::chrono::seconds(1));
  EXPECT_EQ(world.unstable_writes.kept_end(kFile), 3u << 20) << "its COMMIT hangs";
  EXPECT_EQ(world.unstable_writes.kept_end(kOther), 0u);
  world.join(tasks);
}

TEST(UnstableWrites, that_are_lost_where_they_make_room_are_told_to_those_who_wrote_them) {
  World world;
  fill(world);
  world.disk_fails = true;
  for (std::uint64_t i = 0; i < 2; ++i) world.written(i << 20, std::string(1u << 20, 'y'), kOther);
  EXPECT_EQ(world.unstable_writes.failures(kFile), 1u);
  EXPECT_EQ(world.unstable_writes.failures(kOther), 0u);
}

// A log grows by lines. What is kept of each counts; one behind the other they are one piece.
TEST(UnstableWrites, small_ones_take_little_and_are_written_again_at_once) {
  constexpr int kWrites = 20'000;
  World apart, joined;
  for (std::uint64_t i = 0; i < kWrites; ++i) {
    apart.written(2 * i, "x");
    joined.written(i, "x");
  }
  EXPECT_GT(apart.commits, 0);
  EXPECT_EQ(joined.commits, 0);
  const int before = joined.writes;
  joined.restarts_before_commit = 1;
  ASSERT_TRUE(joined.committed());
  EXPECT_EQ(joined.disk, std::string(kWrites, 'x'));
  EXPECT_EQ(joined.writes, before + 1);
}

// The server checks who writes.
TEST(UnstableWrites, are_written_again_by_the_opens_that_wrote_them) {
  World world;
  world.written(0, ".");
  for (const std::uint64_t open : {1, 2}) {
    Memory request(static_cast<std::byte*>(std::calloc(1, world.requests.size())));
    const Bytes data(request.get(), 4);
    const nfs::client::File file{handle_of("file"), open};
    ASSERT_TRUE(world.scripted.run(
        world.unstable_writes.write(kFile, file, 4 * (open - 1), request, data)));
  }
  const int before = world.writes;
  world.restarts_before_commit = 1;
  ASSERT_TRUE(world.committed());
  EXPECT_EQ(world.writes, before + 2);
}

TEST(UnstableWrites, are_kept_apart_from_what_a_COMMIT_in_progress_makes_safe) {
  World world;
  world.written(0, ".");
  world.written(1, "a");
  TaskGroup tasks;
  tasks.add([](World& w) -> Task<void> {
    const Outcome<std::size_t> done = co_await w.begun(2, "b");
    EXPECT_TRUE(done.ok());
  }(world));
  tasks.add([](World& w) -> Task<void> {
    const Outcome<Ok> done = co_await w.unstable_writes.commit(kFile);
    EXPECT_TRUE(done.ok());
  }(world));
  world.join(tasks);
  EXPECT_EQ(world.unstable_writes.kept_bytes(), 1u);
  world.restarts_before_commit = 1;
  ASSERT_TRUE(world.committed());
  EXPECT_EQ(world.disk, ".ab");
}

TEST(UnstableWrites, a_failure_is_told_to_everybody_who_waits_and_known_until_nobody_has_the_file) {
  World world;
  world.written(0, "....");
  world.written(0, "aaaa");
  world.disk_fails = true;
  TaskGroup tasks;
  int failed = 0;
  const auto commit = [](World& w, int& count) -> Task<void> {
    const Outcome<Ok> done = co_await w.unstable_writes.commit(kFile);
    if (!done && done.error().is(Status::Io)) ++count;
  };
  tasks.add(commit(world, failed));
  tasks.add(commit(world, failed));
  world.join(tasks);
  EXPECT_EQ(failed, 2);
  EXPECT_EQ(world.commits, 1);
  EXPECT_EQ(world.unstable_writes.kept_bytes(), 0u);
  EXPECT_TRUE(world.committed());
  EXPECT_EQ(world.unstable_writes.failures(kFile), 1u);
  EXPECT_TRUE(world.unstable_writes.failure(kFile).is(Status::Io));
  world.unstable_writes.forget(kFile);
  EXPECT_EQ(world.unstable_writes.failures(kFile), 0u);
}

TEST(UnstableWrites, are_written_again_although_another_one_of_the_file_is_refused) {
  World world;
  world.written(0, "one");
  world.written(4, "two");
  world.written(8, "three");
  world.restarts_before_commit = 1;
  world.refused_write = world.writes + 1;
  const Outcome<Ok> done = world.committed();
  ASSERT_FALSE(done);
  EXPECT_TRUE(done.error().is(Status::QuotaExceeded)) << done.error().sentence;
  EXPECT_EQ(world.disk.substr(8), "three");
  EXPECT_EQ(world.unstable_writes.failures(kFile), 1u);
  EXPECT_EQ(world.unstable_writes.kept_bytes(), 0u);
}

// As write(2) does (POSIX).
TEST(UnstableWrites, tell_how_much_was_written_where_the_rest_was_refused) {
  World world;
  world.written(0, "........");
  world.most = 2;
  world.refused_write = world.writes + 3;
  const Outcome<std::size_t> done = world.scripted.run(world.begun(0, "abcdef"));
  ASSERT_TRUE(done) << done.error().sentence;
  EXPECT_EQ(*done, 4u);
  EXPECT_EQ(world.unstable_writes.kept_end(kFile), 4u);
  world.restarts_before_commit = 1;
  ASSERT_TRUE(world.committed());
  EXPECT_EQ(world.disk, "abcd....");
}

TEST(UnstableWrites, are_written_again_where_they_were_though_a_part_of_one_is_refused_at_first) {
  World world;
  world.written(0, "........");
  world.written(2, "abcd");
  world.most = 2;
  world.restarts_before_commit = 1;
  world.refused_write = world.writes + 2;
  ASSERT_TRUE(world.committed());
  EXPECT_EQ(world.disk, "..abcd..");
}

// One of two starts of the server was written again in part when the connection was lost.
TEST(UnstableWrites, are_not_made_longer_once_some_of_them_were_written_again) {
  World world;
  world.written(0, "....");
  world.written(0, "aaaa");
  world.restart();
  world.written(4, "0123");
  const int before = world.writes;
  world.most = 2;
  TaskGroup tasks;
  tasks.add([](World& w) -> Task<void> {
    const Outcome<Ok> done = co_await w.unstable_writes.commit(kFile);
    EXPECT_FALSE(done.ok());
  }(world));
  tasks.add([](World& w) -> Task<void> {
    // A COMMIT and three WRITEs take a millisecond each; none that began before is lost.
    co_await sleep_for(w.scripted.loop, std::chrono::microseconds(3500));
    w.scripted.channel.lost = true;
  }(world));
  world.join(tasks);
  EXPECT_EQ(world.unstable_writes.kept_bytes(), 4u);
  EXPECT_EQ(world.writes, before + 3);
  world.scripted.channel.lost = false;
  world.written(8, "new!");
  world.restarts_before_commit = 1;
  ASSERT_TRUE(world.committed());
  EXPECT_EQ(world.disk, "aaaa0123new!");
}

TEST(UnstableWrites, overwrite_nothing_that_the_server_made_stable_unasked) {
  World world;
  world.written(0, "....");
  world.written(0, "aaaa");
  world.always_stable = true;
  world.written(0, "new");
  world.restarts_before_commit = 1;
  ASSERT_TRUE(world.committed());
  EXPECT_EQ(world.disk, "newa");
  EXPECT_EQ(world.unstable_writes.kept_bytes(), 0u);
}

TEST(UnstableWrites, overwrite_nothing_that_there_was_no_room_for) {
  World world;
  const std::string text((1u << 20) - UnstableWrites::kPieceBytes, 'x');
  world.written(0, ".");
  for (std::uint64_t i = 0; i < 4; ++i) world.written(i << 20, text);
  EXPECT_EQ(world.unstable_writes.kept_bytes(), 4 * text.size());
  world.written(0, "new");
  world.restarts_before_commit = 1;
  ASSERT_TRUE(world.committed());
  EXPECT_EQ(world.disk.substr(0, 5), "newxx");
}

TEST(UnstableWrites, are_kept_where_a_COMMIT_got_no_answer) {
  World world;
  world.written(0, "one ");
  world.written(4, "two");
  world.scripted.channel.lost = true;
  const Outcome<Ok> done = world.committed();
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().kind, nfs::client::Error::Kind::Call);
  EXPECT_EQ(world.unstable_writes.kept_end(kFile), 7u);
  EXPECT_EQ(world.unstable_writes.failures(kFile), 0u);
  world.scripted.channel.lost = false;
  ASSERT_TRUE(world.committed());
  EXPECT_EQ(world.disk, "one two");
  EXPECT_EQ(world.unstable_writes.kept_end(kFile), 0u);
}

TEST(UnstableWrites, are_given_up_where_a_COMMIT_got_no_answer_and_nobody_has_the_file_open) {
  World world;
  std::size_t given_up = 0;
  world.unstable_writes.set_on_given_up(
      [&given_up](const Inode& file, std::size_t bytes, const nfs::client::Error& why) {
        EXPECT_EQ(file.handle, handle_of("file"));
        EXPECT_EQ(why.kind, nfs::client::Error::Kind::Call);
        given_up += bytes;
      });
  world.written(0, "one ");
  world.written(4, "two");
  world.scripted.channel.lost = true;
  EXPECT_FALSE(world.committed()) << "close(2)";
  EXPECT_EQ(given_up, 0u);
  world.close_and_forget();
  EXPECT_FALSE(world.committed()) << "RELEASE";
  EXPECT_EQ(given_up, 3u);
  world.unstable_writes.forget(kFile);
  EXPECT_EQ(given_up, 3u);
  EXPECT_EQ(world.unstable_writes.kept_bytes(), 0u);
  EXPECT_EQ(world.inodes.number_of(handle_of("file")), 0u);
  world.scripted.channel.lost = false;
  world.disk = world.memory = "of another";
  const int before = world.writes;
  TaskGroup tasks;
  tasks.add(world.unstable_writes.make_all_safe(world.scripted.loop, {}));
  world.join(tasks);
  EXPECT_EQ(world.writes, before);
}

TEST(UnstableWrites, are_kept_where_there_was_no_memory_for_the_last_COMMIT) {
  World world;
  world.written(0, "one ");
  world.written(4, "two");
  world.scripted.channel.lost = true;
  world.scripted.channel.why_lost = Reason::OutOfMemory;
  world.inodes.close(kFile);
  EXPECT_FALSE(world.committed()) << "RELEASE";
  EXPECT_EQ(world.unstable_writes.kept_bytes(), 3u);
  world.scripted.channel.lost = false;
  ASSERT_TRUE(world.committed()) << "RELEASE, tried again";
  EXPECT_EQ(world.disk, "one two");
}

// An open(2) that fails counts as one until it has.
TEST(UnstableWrites, are_given_up_with_the_last_use_where_the_last_COMMIT_got_no_answer) {
  World world;
  world.written(0, "one ");
  world.written(4, "two");
  world.scripted.channel.lost = true;
  EXPECT_FALSE(world.committed());
  world.unstable_writes.forget(kFile);
  EXPECT_EQ(world.unstable_writes.kept_bytes(), 3u) << "somebody has it open";
  world.inodes.close(kFile);
  world.unstable_writes.forget(kFile);
  EXPECT_EQ(world.unstable_writes.kept_bytes(), 0u);
}

TEST(UnstableWrites, are_kept_without_an_open_until_a_COMMIT_has_ended_without_an_answer) {
  World world;
  world.written(0, "one ");
  world.written(4, "two");
  world.inodes.close(kFile);
  world.unstable_writes.forget(kFile);
  EXPECT_EQ(world.unstable_writes.kept_bytes(), 3u);
  ASSERT_TRUE(world.committed());
  EXPECT_EQ(world.disk, "one two");
}

TEST(UnstableWrites, are_kept_without_an_open_while_another_COMMIT_waits_for_the_server) {
  World world;
  world.written(0, "one ");
  world.written(4, "two");
  world.scripted.channel.lost = true;
  EXPECT_FALSE(world.committed());
  world.scripted.channel.lost = false;
  TaskGroup tasks;
  tasks.add([](World& w) -> Task<void> {
    const Outcome<Ok> done = co_await w.unstable_writes.commit(kFile);
    EXPECT_TRUE(done.ok());
  }(world));
  world.restarts_before_commit = 1;
  world.close_and_forget();
  world.unstable_writes.forget(kFile);
  EXPECT_EQ(world.unstable_writes.kept_bytes(), 3u);
  world.join(tasks);
  EXPECT_EQ(world.disk, "one two");
}

// What is done before a delegation for writing is given back (RFC 8881 10.4.4).
TEST(UnstableWrites, are_not_safe_without_an_answer_and_are_written_again_after_a_restart) {
  World world;
  world.written(0, "one ");
  world.written(4, "two");
  world.scripted.channel.lost = true;
  EXPECT_FALSE(world.safe());
  EXPECT_EQ(world.unstable_writes.kept_end(kFile), 7u);
  world.scripted.channel.lost = false;
  world.restart();
  EXPECT_TRUE(world.safe());
  EXPECT_EQ(world.disk, "one two");
}

// The next program to open the file truncates it behind the COMMIT that its number leads to.
TEST(UnstableWrites, keep_the_number_of_a_file_that_is_forgotten_before_its_COMMIT_is_answered) {
  World world;
  world.written(0, "one ");
  world.written(4, "two");
  TaskGroup tasks;
  tasks.add([](World& w) -> Task<void> {
    const Outcome<Ok> done = co_await w.unstable_writes.commit(kFile);
    EXPECT_TRUE(done.ok());
  }(world));
  world.close_and_forget();
  EXPECT_EQ(world.inodes.enter(handle_of("file")), kFile);
  world.inodes.forget(kFile, 1);
  EXPECT_EQ(world.inodes.number_of(handle_of("file")), kFile) << "make_safe() is asked by it";
  world.join(tasks);
  EXPECT_EQ(world.inodes.number_of(handle_of("file")), 0u);
  EXPECT_NE(world.inodes.enter(handle_of("file")), kFile);
}

TEST(UnstableWrites, keep_the_number_of_a_file_while_one_is_in_progress) {
  World world;
  TaskGroup tasks;
  tasks.add([](World& w) -> Task<void> {
    const Outcome<std::size_t> done = co_await w.begun(0, "one ");
    EXPECT_TRUE(done.ok());
  }(world));
  world.close_and_forget();
  EXPECT_EQ(world.inodes.number_of(handle_of("file")), kFile);
  world.join(tasks);
  EXPECT_EQ(world.inodes.number_of(handle_of("file")), 0u);
}

TEST(UnstableWrites, are_not_written_again_when_they_are_lost) {
  World world;
  world.written(0, "one ");
  world.written(4, "two");
  world.disk_fails = true;
  EXPECT_TRUE(world.safe());
  EXPECT_EQ(world.unstable_writes.kept_bytes(), 0u);
}

TEST(UnstableWrites, the_end_of_the_mount_commits_every_file) {
  World world;
  world.written(0, "one ");
  world.written(4, "two");
  TaskGroup tasks;
  tasks.add(world.unstable_writes.make_all_safe(world.scripted.loop, {}));
  world.join(tasks);
  EXPECT_EQ(world.disk, "one two");
  EXPECT_EQ(world.unstable_writes.kept_bytes(), 0u);
}

TEST(UnstableWrites, are_committed_at_the_end_of_the_mount_although_another_COMMIT_hangs) {
  for (const bool first_hangs : {true, false}) {
    World world;
    for (const std::uint64_t number : {kFile, kOther}) {
      world.written(0, "one ", number);
      world.written(4, "two", number);
    }
    world.hung = handle_of(first_hangs ? "file" : "other");
    TaskGroup tasks;
    tasks.add(world.unstable_writes.make_all_safe(world.scripted.loop, {}));
    world.scripted.loop.pass(std::chrono::seconds(1));
    EXPECT_EQ(world.unstable_writes.kept_end(first_hangs ? kOther : kFile), 0u);
    EXPECT_EQ(world.unstable_writes.kept_bytes(), 3u);
    world.join(tasks);
    EXPECT_EQ(world.unstable_writes.kept_bytes(), 0u);
  }
}

}  // namespace
}  // namespace stag::fuse
