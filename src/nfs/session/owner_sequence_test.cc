// RFC 7530 9.1.3, 9.1.7: with which number an owner's next operation goes.
#include "nfs/session/owner_sequence.h"

#include <gtest/gtest.h>

namespace stag::nfs::session {
namespace {

using Verdict = OwnerSequence::Verdict;

TEST(OwnerSequence, counts_what_was_done_and_what_was_refused) {
  OwnerSequence sequence;
  EXPECT_EQ(sequence.next(), 1u);
  EXPECT_EQ(sequence.on_status(1, v4::NFS4_OK), Verdict::Good);
  EXPECT_EQ(sequence.next(), 2u);
  EXPECT_EQ(sequence.on_status(2, v4::NFS4ERR_DENIED), Verdict::Good);
  EXPECT_EQ(sequence.next(), 3u);
}

TEST(OwnerSequence, does_not_count_what_the_server_refuses_before_it_looks_at_the_number) {
  OwnerSequence sequence;
  for (const auto status :
       {v4::NFS4ERR_STALE_CLIENTID, v4::NFS4ERR_STALE_STATEID, v4::NFS4ERR_BAD_STATEID,
        v4::NFS4ERR_BADXDR, v4::NFS4ERR_RESOURCE, v4::NFS4ERR_NOFILEHANDLE, v4::NFS4ERR_MOVED}) {
    EXPECT_EQ(sequence.on_status(1, status), Verdict::Good);
    EXPECT_EQ(sequence.next(), 1u) << status;
  }
  EXPECT_EQ(sequence.on_status(1, v4::NFS4ERR_BAD_SEQID), Verdict::Bad);
}

TEST(OwnerSequence, never_repeats_the_number_of_a_lost_operation_that_may_have_been_done) {
  OwnerSequence sequence;
  sequence.on_status(1, v4::NFS4_OK);
  sequence.on_loss();
  EXPECT_FALSE(sequence.certain());
  EXPECT_EQ(sequence.next(), 3u);
  sequence.on_loss();
  EXPECT_EQ(sequence.next(), 4u);
  EXPECT_EQ(sequence.on_status(4, v4::NFS4ERR_BAD_SEQID), Verdict::Again);
  EXPECT_EQ(sequence.next(), 3u);
  EXPECT_EQ(sequence.on_status(3, v4::NFS4ERR_BAD_SEQID), Verdict::Again);
  EXPECT_EQ(sequence.on_status(2, v4::NFS4_OK), Verdict::Good) << "nothing had arrived";
  EXPECT_TRUE(sequence.certain());
  EXPECT_EQ(sequence.next(), 3u);
}

TEST(OwnerSequence, goes_on_behind_a_lost_operation_that_was_done) {
  OwnerSequence sequence;
  sequence.on_loss();
  EXPECT_EQ(sequence.on_status(2, v4::NFS4_OK), Verdict::Good);
  EXPECT_EQ(sequence.next(), 3u);
  EXPECT_TRUE(sequence.certain());
}

TEST(OwnerSequence, has_no_number_zero) {
  OwnerSequence sequence;
  sequence.on_status(0xffff'fffe, v4::NFS4_OK);
  EXPECT_EQ(sequence.next(), 0xffff'ffffu);
  sequence.on_loss();
  EXPECT_EQ(sequence.next(), 1u);
  sequence.on_status(1, v4::NFS4_OK);
  EXPECT_EQ(sequence.next(), 2u);
}

}  // namespace
}  // namespace stag::nfs::session
