#include "fuse/new_files.h"

#include <gtest/gtest.h>

namespace stag::fuse {
namespace {

using nfs::client::Attributes;
using nfs::client::Error;
using nfs::client::Handle;
using nfs::client::SetAttributes;
using nfs::client::SetTime;
using nfs::client::Status;
using nfs::client::Time;

constexpr std::uint64_t kNumber = 5;
constexpr Time kPast{1000, 1}, kMade{5000, 0};
constexpr auto kValid = std::chrono::seconds(1);

Attributes made_attributes() {
  Attributes attributes;
  attributes.mode = 0600;
  attributes.uid = attributes.gid = 7;
  attributes.accessed = attributes.modified = {1, 1};  // what a server may keep there
  attributes.changed = kMade;
  return attributes;
}

struct MakingFile : ::testing::Test {
  void begin(bool without_times) {
    files.begin(kNumber, Handle(), made_attributes(), without_times, now);
  }
  void on_set(const SetAttributes& changes, const Attributes& attributes) {
    files.on_set(kNumber, files.version(kNumber), changes, attributes, now);
  }
  TimePoint now{};
  NewFiles files{kValid};
};

SetAttributes times_of(const Time& time) {
  SetAttributes changes;
  changes.accessed = changes.modified = SetTime::to(time);
  return changes;
}

TEST_F(MakingFile, holds_back_nothing_of_files_that_were_not_made_here) {
  SetAttributes changes = times_of(kPast);
  EXPECT_FALSE(files.absorb(kNumber, changes, now));
  EXPECT_EQ(changes.modified.time, kPast);
  EXPECT_FALSE(files.waiting(kNumber));
}

TEST_F(MakingFile, times_wait_and_are_shown) {
  begin(false);
  SetAttributes changes = times_of(kPast);
  const auto known = files.absorb(kNumber, changes, now);
  ASSERT_TRUE(known);
  EXPECT_EQ(known->modified, kPast);
  EXPECT_EQ(files.shown(kNumber, made_attributes()).accessed, kPast);
  ASSERT_TRUE(files.waiting(kNumber));
  EXPECT_EQ(files.waiting(kNumber)->times.modified.time, kPast);
}

TEST_F(MakingFile, times_go_with_the_next_change) {
  begin(false);
  SetAttributes times = times_of(kPast);
  ASSERT_TRUE(files.absorb(kNumber, times, now));
  SetAttributes mode;
  mode.mode = 0644;
  EXPECT_FALSE(files.absorb(kNumber, mode, now));
  EXPECT_EQ(mode.modified.time, kPast);
  EXPECT_TRUE(files.waiting(kNumber)) << "until they are set";
  on_set(mode, made_attributes());
  EXPECT_FALSE(files.waiting(kNumber));
}

TEST_F(MakingFile, times_that_are_set_at_once_are_the_last_ones) {
  begin(true);
  files.outdate(kNumber);
  SetAttributes times = times_of(kPast);
  EXPECT_FALSE(files.absorb(kNumber, times, now));
  on_set(times, made_attributes());
  EXPECT_FALSE(files.waiting(kNumber)) << "those of the creation are earlier ones";
}

TEST_F(MakingFile, sends_times_that_wait_along_with_those_that_are_set_at_once) {
  begin(false);
  SetAttributes first = times_of(kPast);
  ASSERT_TRUE(files.absorb(kNumber, first, now));
  files.outdate(kNumber);
  SetAttributes second;
  second.modified = SetTime::to(kMade);
  EXPECT_FALSE(files.absorb(kNumber, second, now));
  EXPECT_EQ(second.accessed.time, kPast);
  EXPECT_EQ(second.modified.time, kMade);
  on_set(second, made_attributes());
  EXPECT_FALSE(files.waiting(kNumber));
}

TEST_F(MakingFile, a_change_of_the_content_is_later_than_the_time_that_waits) {
  begin(false);
  files.on_change(kNumber);
  EXPECT_FALSE(files.waiting(kNumber)) << "the server has set it";
  on_set({}, made_attributes());
  SetAttributes times = times_of(kPast);
  ASSERT_TRUE(files.absorb(kNumber, times, now));
  files.outdate(kNumber);
  EXPECT_EQ(files.waiting(kNumber)->times.modified.time, kPast);
  files.on_change(kNumber);
  EXPECT_EQ(files.waiting(kNumber)->times.modified.how, SetTime::How::Now);
  EXPECT_EQ(files.waiting(kNumber)->times.accessed.time, kPast);
  EXPECT_FALSE(files.known(kNumber, now));
}

TEST_F(MakingFile, does_not_set_attributes_that_are_so_already) {
  begin(false);
  SetAttributes same;
  same.uid = same.gid = 7;
  same.mode = 0600;
  EXPECT_TRUE(files.absorb(kNumber, same, now));
  SetAttributes other;
  other.uid = 8;
  other.gid = 7;
  EXPECT_FALSE(files.absorb(kNumber, other, now));
  EXPECT_EQ(other.uid, 8u);
  EXPECT_FALSE(other.gid);
}

TEST_F(MakingFile, sets_attributes_that_may_be_so_no_more) {
  begin(false);
  SetAttributes same;
  same.uid = 7;
  EXPECT_FALSE(files.absorb(kNumber, same, now + kValid));
  EXPECT_EQ(same.uid, 7u);
  files.outdate(kNumber);
  EXPECT_FALSE(files.absorb(kNumber, same, now));
  Attributes with_bits = made_attributes();
  with_bits.mode = 04755;
  on_set({}, with_bits);
  EXPECT_FALSE(files.absorb(kNumber, same, now)) << "the server clears the bit, chown(2) or not";
  EXPECT_EQ(same.uid, 7u);
}

TEST_F(MakingFile, times_that_the_server_left_out_are_due) {
  begin(true);
  ASSERT_TRUE(files.waiting(kNumber));
  EXPECT_EQ(files.waiting(kNumber)->times.accessed.how, SetTime::How::Now);
  EXPECT_EQ(files.shown(kNumber, made_attributes()).modified, kMade);
}

TEST_F(MakingFile, a_write_sets_the_time_of_the_modification) {
  begin(true);
  files.on_write(kNumber, 0, 10);
  ASSERT_TRUE(files.waiting(kNumber));
  EXPECT_EQ(files.waiting(kNumber)->times.modified.how, SetTime::How::Keep);
  EXPECT_EQ(files.waiting(kNumber)->times.accessed.how, SetTime::How::Now);
  SetAttributes nothing;
  EXPECT_EQ(files.absorb(kNumber, nothing, now)->size, 10u);
}

TEST_F(MakingFile, times_that_have_waited_long_are_found) {
  begin(true);
  EXPECT_TRUE(files.any_waits());
  EXPECT_EQ(files.due(now), std::vector<std::uint64_t>{kNumber});
  SetAttributes changes = times_of(kPast);
  ASSERT_TRUE(files.absorb(kNumber, changes, now + std::chrono::milliseconds(500)));
  EXPECT_TRUE(files.due(now).empty());
  on_set(times_of(kPast), made_attributes());
  EXPECT_FALSE(files.any_waits());
}

TEST_F(MakingFile, times_that_are_refused_wait_no_longer_and_the_refusal_is_told) {
  begin(true);
  SetAttributes changes = times_of(kPast);
  ASSERT_TRUE(files.absorb(kNumber, changes, now));
  const Error refused = Error::of_status({"set times", {}}, Status::NotOwner);
  files.on_refused(kNumber, times_of(kPast), refused);
  EXPECT_FALSE(files.any_waits());
  EXPECT_FALSE(files.known(kNumber, now)) << "they were shown";
  ASSERT_FALSE(files.refusal(kNumber));
  EXPECT_TRUE(files.refusal(kNumber).error().is(Status::NotOwner));
  SetAttributes later = times_of(kMade);
  on_set(later, made_attributes());
  EXPECT_TRUE(files.refusal(kNumber));
}

TEST_F(MakingFile, times_of_a_removed_file_wait_no_longer_and_nothing_is_told) {
  begin(true);
  SetAttributes changes = times_of(kPast);
  ASSERT_TRUE(files.absorb(kNumber, changes, now));
  files.on_refused(kNumber, times_of(kPast), std::nullopt);
  EXPECT_FALSE(files.any_waits());
  EXPECT_TRUE(files.refusal(kNumber));
}

TEST_F(MakingFile, times_that_came_after_those_refused_wait) {
  begin(true);
  SetAttributes changes = times_of(kMade);
  ASSERT_TRUE(files.absorb(kNumber, changes, now));
  files.on_refused(kNumber, times_of(kPast), std::nullopt);
  ASSERT_TRUE(files.waiting(kNumber));
  EXPECT_EQ(files.waiting(kNumber)->times.modified.time, kMade);
}

TEST_F(MakingFile, times_that_are_not_answered_for_wait_longer_and_longer) {
  begin(true);
  TimePoint at = now;
  Duration before{};
  for (int i = 0; i < 10; ++i) {
    files.on_unheard(kNumber, at);
    const TimePoint begin = at;
    while (files.due(at).empty()) at += std::chrono::milliseconds(100);
    EXPECT_GE(at - begin, before);
    before = at - begin;
  }
  EXPECT_EQ(before, std::chrono::seconds(30));
  files.on_set(kNumber, files.version(kNumber), {}, made_attributes(), at);
  files.on_unheard(kNumber, at);
  EXPECT_FALSE(files.due(at + std::chrono::seconds(1)).empty()) << "the server is there again";
}

TEST_F(MakingFile, attributes_are_known_for_a_while) {
  begin(true);
  files.on_write(kNumber, 0, 5000);
  SetAttributes times = times_of(kPast);
  ASSERT_TRUE(files.absorb(kNumber, times, now));
  ASSERT_TRUE(files.known(kNumber, now));
  EXPECT_EQ(files.known(kNumber, now)->size, 5000u);
  EXPECT_EQ(files.known(kNumber, now)->used, 8192u);
  EXPECT_EQ(files.known(kNumber, now)->accessed, kPast);
  EXPECT_FALSE(files.known(kNumber, now + kValid));
  files.on_write(kNumber, 9000, 1);
  EXPECT_FALSE(files.known(kNumber, now)) << "there is a hole";
}

Attributes attributes_of(std::uint64_t size, std::uint32_t links) {
  Attributes attributes = made_attributes();
  attributes.size = size;
  attributes.links = links;
  return attributes;
}

TEST_F(MakingFile, is_asked_about_once_after_it_was_written) {
  begin(false);
  files.on_write(kNumber, 0, 10);
  EXPECT_FALSE(files.known(kNumber, now));
  files.on_told(kNumber, files.version(kNumber), attributes_of(10, 1), now);
  EXPECT_TRUE(files.known(kNumber, now));
  const std::uint64_t before = files.version(kNumber);
  files.on_write(kNumber, 10, 10);
  files.on_told(kNumber, before, attributes_of(10, 1), now);
  EXPECT_FALSE(files.known(kNumber, now)) << "that was before";
  SetAttributes nothing;
  EXPECT_EQ(files.absorb(kNumber, nothing, now)->size, 20u);
}

TEST_F(MakingFile, knows_no_attributes_when_the_file_changed_while_they_were_set) {
  begin(false);
  const std::uint64_t before = files.version(kNumber);
  files.outdate(kNumber);
  files.on_set(kNumber, before, {}, attributes_of(0, 1), now);
  EXPECT_FALSE(files.known(kNumber, now));
  on_set({}, attributes_of(0, 2));
  ASSERT_TRUE(files.known(kNumber, now));
  EXPECT_EQ(files.known(kNumber, now)->links, 2u);
}

TEST_F(MakingFile, knows_no_attributes_from_an_answer_during_a_change) {
  begin(false);
  files.outdate(kNumber);
  files.on_told(kNumber, files.version(kNumber), attributes_of(5, 1), now);
  EXPECT_FALSE(files.known(kNumber, now));
}

TEST_F(MakingFile, takes_an_earlier_time_for_that_of_the_change_after_another_size) {
  begin(false);
  SetAttributes times = times_of(kPast);
  ASSERT_TRUE(files.absorb(kNumber, times, now));
  SetAttributes size;
  size.size = 3;
  EXPECT_FALSE(files.absorb(kNumber, size, now));
  EXPECT_EQ(size.modified.how, SetTime::How::Now);
  EXPECT_EQ(size.accessed.time, kPast);
}

}  // namespace
}  // namespace stag::fuse
