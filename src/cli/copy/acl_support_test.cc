#include "cli/copy/acl_support.h"

#include <gtest/gtest.h>

#include <deque>
#include <vector>

#include "base/completion.h"
#include "base/task_group.h"

namespace stag::cli {
namespace {

using nfs::client::Error;
using nfs::client::Status;
using ListAnswer = nfs::client::Outcome<int>;

constexpr std::uint64_t kFileSystem = 7;

// A server that answers when the test says so.
class AclSupportTest : public ::testing::Test {
 protected:
  ~AclSupportTest() override { EXPECT_EQ(group_.running(), 0u); }

  void ask(std::uint64_t fsid = kFileSystem) { group_.add(asked(fsid)); }
  // The first question that is open.
  void answer(ListAnswer with) { questions_[answered_++].complete(std::move(with)); }

  static Error none() { return Error::of_status({"read", {}}, Status::NotSupported); }
  static Error without_program() {
    oncrpc::ReplyStatus status = oncrpc::ReplyStatus::accepted(oncrpc::AcceptStat::PROG_UNAVAIL);
    return Error::of_call({"read", {}}, rpc::CallError::answered(status));
  }

  AclSupport support_{3};
  TaskGroup group_;
  std::deque<Completion<ListAnswer>> questions_;  // that were asked
  std::size_t answered_ = 0;
  std::vector<ListAnswer> answers_;

 private:
  Task<ListAnswer> question() {
    questions_.emplace_back();
    co_return co_await questions_.back();
  }
  Task<void> asked(std::uint64_t fsid) {
    answers_.push_back(co_await support_.ask(fsid, question()));
  }
};

TEST_F(AclSupportTest, asks_about_a_file_system_without_lists_once) {
  for (int i = 0; i < 8; ++i) ask();
  ASSERT_EQ(questions_.size(), 1u);
  answer(Failure{none()});
  ask();
  EXPECT_EQ(questions_.size(), 1u);
  ASSERT_EQ(answers_.size(), 9u);
  for (const ListAnswer& each : answers_) EXPECT_TRUE(each.error().is(Status::NotSupported));
  // Another one may have them.
  ask(kFileSystem + 1);
  ASSERT_EQ(questions_.size(), 2u);
  answer(1);
}

TEST_F(AclSupportTest, asks_about_each_file_where_there_are_lists_and_together_from_the_second_on) {
  for (int i = 0; i < 8; ++i) ask();
  answer(0);
  ASSERT_EQ(questions_.size(), 8u);
  for (int i = 1; i < 8; ++i) answer(i);
  ASSERT_EQ(answers_.size(), 8u);
  for (int i = 0; i < 8; ++i) EXPECT_EQ(*answers_[static_cast<std::size_t>(i)], i);
}

TEST_F(AclSupportTest, asks_a_server_without_the_program_once_for_all_its_file_systems) {
  ask();
  answer(Failure{without_program()});
  ask(kFileSystem + 1);
  EXPECT_EQ(questions_.size(), 1u);
  EXPECT_EQ(answers_.back().error().call.status.accept, oncrpc::AcceptStat::PROG_UNAVAIL);
}

TEST_F(AclSupportTest, asks_again_behind_an_error_that_is_of_one_file) {
  for (int i = 0; i < 2; ++i) ask();
  answer(Failure{Error::of_status({"read", {}}, Status::Stale)});
  ASSERT_EQ(questions_.size(), 2u);
  answer(Failure{none()});
  ask();
  EXPECT_EQ(questions_.size(), 2u);
}

}  // namespace
}  // namespace stag::cli
