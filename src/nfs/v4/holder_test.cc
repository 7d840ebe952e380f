// What others see of a file that another client has a write delegation of (RFC 8881 10.4.3, 20.1).
#include "testing/nfs/nfs4_delegations_fixture.h"

namespace stag::nfs::nfs4 {
namespace {

using namespace stag::testing;
using namespace std::chrono_literals;

class Nfs4Holder : public Nfs4DelegationsServed {
 protected:
  struct Seen {
    v4::nfsstat4 status = v4::NFS4_OK;
    std::uint64_t change = 0;
    std::uint64_t size = 0;
  };

  void SetUp() override {
    Nfs4DelegationsServed::SetUp();
    EXPECT_EQ(open_for(kForBoth).delegation_type, v4::OPEN_DELEGATE_WRITE);
    own_ = look();
    EXPECT_TRUE(holder_client_.asked.empty()) << "the holder itself";
    holder_ = now_acting();
    holder_client_.change = own_.change;
    holder_client_.size = own_.size;
  }
  Seen look() {
    const Res results = run({putrootfh(), lookup("data"), lookup("file"),
                             getattr({1u << v4::FATTR4_CHANGE | 1u << v4::FATTR4_SIZE})});
    if (results.status != v4::NFS4_OK) return {results.status, 0, 0};
    const Buffer values =
        results.resarray[3].opgetattr().resok4().obj_attributes.attr_vals.flatten();
    return {v4::NFS4_OK, load_be<std::uint64_t>(values.bytes().data()),
            load_be<std::uint64_t>(values.bytes().data() + 8)};
  }
  Seen other_looks() {
    return as(other_, [&] { return look(); });
  }
  v4::nfs_cb_opnum4 asked(std::size_t index) {
    return holder_client_.asked.at(index).argarray.at(1).argop;
  }

  Seen own_;
};

TEST_F(Nfs4Holder, is_asked_for_size_and_change) {
  const Seen seen = other_looks();
  EXPECT_EQ(seen.status, v4::NFS4_OK);
  ASSERT_EQ(holder_client_.asked.size(), 1u);
  ASSERT_EQ(asked(0), v4::OP_CB_GETATTR);
  const v4::CB_GETATTR4args& args = holder_client_.asked[0].argarray[1].opcbgetattr();
  EXPECT_EQ(args.fh, handle_);
  EXPECT_EQ(args.attr_request, (v4::bitmap4{1u << v4::FATTR4_CHANGE | 1u << v4::FATTR4_SIZE}));
  EXPECT_EQ(seen.size, own_.size);
  EXPECT_EQ(seen.change, own_.change) << "nothing has changed";
}

// XDR has nothing against words that are zero, and Linux's bitmap has one.
TEST_F(Nfs4Holder, is_understood_however_many_words_its_bitmap_has) {
  holder_client_.change = own_.change + 1;
  for (const std::size_t words : {1, 2, 3, 4}) {
    holder_client_.bitmap_words = words;
    holder_client_.size = 1000 + words;
    EXPECT_EQ(other_looks().size, 1000 + words);
  }
  for (std::size_t i = 0; i < holder_client_.asked.size(); ++i)
    EXPECT_EQ(asked(i), v4::OP_CB_GETATTR) << "nothing is recalled";
}

TEST_F(Nfs4Holder, has_changed_the_file_where_its_change_is_another) {
  holder_client_.change = own_.change + 1;
  holder_client_.size = 1234;
  const Seen first = other_looks();
  EXPECT_EQ(first.size, 1234u);
  EXPECT_GT(first.change, own_.change);
  const Seen second = other_looks();
  EXPECT_GT(second.change, first.change) << "it may have changed again";
  EXPECT_TRUE(as(other_, [&] { return status_flags(); }) == 0);
  for (std::size_t i = 0; i < holder_client_.asked.size(); ++i)
    EXPECT_EQ(asked(i), v4::OP_CB_GETATTR) << "nothing is recalled";
}

TEST_F(Nfs4Holder, is_believed_only_of_what_it_has_not_written_yet) {
  act_as(holder_);
  EXPECT_EQ(run({putfh(handle_), write_op(opened_, 0, "text")}).status, v4::NFS4_OK);
  holder_ = now_acting();
  holder_client_.size = 4;
  const Seen seen = other_looks();
  EXPECT_EQ(seen.size, 4u);
  EXPECT_EQ(other_looks().change, seen.change) << "its change is the one it began with";
}

TEST_F(Nfs4Holder, has_changed_the_file_where_its_size_is_another_whatever_its_change) {
  holder_client_.size = own_.size + 777;
  const Seen seen = other_looks();
  EXPECT_EQ(seen.size, own_.size + 777);
  EXPECT_GT(seen.change, own_.change);
}

TEST_F(Nfs4Holder, is_recalled_when_it_does_not_answer_in_time) {
  holder_client_.answers = false;
  const TimePoint begin = loop_.now();
  EXPECT_EQ(other_looks().status, v4::NFS4ERR_DELAY) << "RFC 8881 18.7.4: nobody knows";
  EXPECT_LE(loop_.now() - begin, 1s);
  holder_client_.answers = true;
  holder_client_.connect();
  act_as(holder_);
  EXPECT_EQ(bind(v4::CDFC4_BACK).bctsr_status, v4::NFS4_OK);
  holder_ = now_acting();
  holder_client_.asked.clear();
  loop_.pass(3s);
  const auto recalled = [&] {
    for (std::size_t i = 0; i < holder_client_.asked.size(); ++i)
      if (asked(i) == v4::OP_CB_RECALL) return true;
    return false;
  };
  EXPECT_TRUE(recalled());
}

TEST_F(Nfs4Holder, is_recalled_when_it_refuses_to_answer_and_waited_for) {
  holder_client_.statuses = {v4::NFS4ERR_BADHANDLE};
  gives_back();
  const Seen seen = other_looks();
  EXPECT_EQ(seen.status, v4::NFS4_OK);
  EXPECT_EQ(seen.size, own_.size);
  ASSERT_EQ(holder_client_.asked.size(), 2u);
  EXPECT_EQ(asked(1), v4::OP_CB_RECALL);
}

TEST_F(Nfs4Holder, is_not_asked_again_once_it_is_to_give_the_file_back) {
  holder_client_.statuses = {v4::NFS4ERR_BADHANDLE};
  for (int i = 0; i < 3; ++i) EXPECT_EQ(other_looks().status, v4::NFS4ERR_DELAY);
  ASSERT_EQ(holder_client_.asked.size(), 2u);
  EXPECT_EQ(asked(1), v4::OP_CB_RECALL);
}

TEST_F(Nfs4Holder, is_not_asked_for_attributes_that_do_not_change_with_data) {
  const v4::nfsstat4 status = as(other_, [&] {
    return run({putrootfh(), lookup("data"), lookup("file"), getattr({1u << v4::FATTR4_TYPE})})
        .status;
  });
  EXPECT_EQ(status, v4::NFS4_OK);
  EXPECT_TRUE(holder_client_.asked.empty());
}

}  // namespace
}  // namespace stag::nfs::nfs4
