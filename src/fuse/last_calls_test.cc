#include "fuse/last_calls.h"

#include <gtest/gtest.h>

#include "base/task_group.h"
#include "testing/nfs/volatile_server.h"

namespace stag::fuse {
namespace {

constexpr Duration kLease = std::chrono::seconds(90);
constexpr Duration kMoment = std::chrono::milliseconds(10);
constexpr std::uint64_t kWrittenFile = Inodes::kRoot + 1;

// A mount that ends, and what it has written to a file that is open.
struct EndingMount : testing::VolatileServer {
  EndingMount() { inodes.open(*inodes.find(inodes.enter(nfs::client::handle_of("file")))); }
  // Its second WRITE is unstable, and kept.
  void write_twice() {
    for (const std::string_view text : {"one ", "two"}) {
      Memory request(static_cast<std::byte*>(std::malloc(requests.size())));
      std::copy(bytes_of(text).begin(), bytes_of(text).end(), request.get());
      const Bytes data(request.get(), text.size());
      const auto written = scripted.run(
          writes.write(kWrittenFile, nfs::client::handle_of("file"), disk.size(), request, data));
      ASSERT_TRUE(written) << written.error().sentence;
    }
    ASSERT_EQ(writes.kept_bytes(), 3u);
  }
  void pass(Duration time) { scripted.loop.pass(time); }

  Buffers requests{1u << 20, 4};
  Inodes inodes{nfs::client::handle_of("root")};
  UnstableWrites writes{scripted.files, inodes, requests, 1u << 20};
  CancelSource calls;
};

TEST(LastCalls, are_given_up_after_seconds_where_the_server_does_not_answer) {
  EndingMount mount;
  const LastCalls last(mount.scripted.loop, mount.writes, kLease, mount.calls);
  mount.pass(LastCalls::kCourtesy - kMoment);
  EXPECT_FALSE(mount.calls.cancelled());
  mount.pass(2 * kMoment);
  EXPECT_TRUE(mount.calls.cancelled());
}

TEST(LastCalls, go_on_for_a_lease_where_data_is_not_safe) {
  EndingMount mount;
  mount.write_twice();
  const LastCalls last(mount.scripted.loop, mount.writes, kLease, mount.calls);
  mount.pass(kLease - kMoment);
  EXPECT_FALSE(mount.calls.cancelled());
  mount.pass(2 * kMoment);
  EXPECT_TRUE(mount.calls.cancelled());
}

TEST(LastCalls, go_on_for_seconds_with_a_server_that_knows_no_lease) {
  EndingMount mount;
  mount.write_twice();
  const LastCalls last(mount.scripted.loop, mount.writes, {}, mount.calls);
  mount.pass(LastCalls::kCourtesy + kMoment);
  EXPECT_TRUE(mount.calls.cancelled());
}

TEST(LastCalls, make_data_safe_when_the_server_answers_at_last) {
  EndingMount mount;
  mount.write_twice();
  mount.scripted.channel.lost = true;
  const LastCalls last(mount.scripted.loop, mount.writes, kLease, mount.calls);
  TaskGroup tasks;
  tasks.add(mount.writes.make_all_safe(mount.scripted.loop, mount.calls));
  mount.pass(2 * LastCalls::kCourtesy);
  EXPECT_EQ(mount.disk, "one ");
  mount.scripted.channel.lost = false;
  mount.pass(LastCalls::kCourtesy);
  EXPECT_EQ(tasks.running(), 0u);
  EXPECT_EQ(mount.disk, "one two");
  EXPECT_FALSE(mount.calls.cancelled());
}

TEST(LastCalls, end_with_data_that_is_never_safe) {
  EndingMount mount;
  mount.write_twice();
  mount.scripted.channel.lost = true;
  const LastCalls last(mount.scripted.loop, mount.writes, kLease, mount.calls);
  TaskGroup tasks;
  tasks.add(mount.writes.make_all_safe(mount.scripted.loop, mount.calls));
  mount.pass(kLease + kMoment);
  EXPECT_EQ(tasks.running(), 0u);
  EXPECT_EQ(mount.writes.kept_bytes(), 3u);
}

}  // namespace
}  // namespace stag::fuse
