// RFC 8881 2.10.6.1, 20.9: callbacks are executed once and in order.
#include "nfs/session/back_channel.h"

#include <gtest/gtest.h>

namespace stag::nfs::session {
namespace {

v4::sessionid4 session(int which) {
  v4::sessionid4 id{};
  id[0] = std::byte(which);
  return id;
}
v4::CB_SEQUENCE4args call(v4::sequenceid4 sequence, v4::slotid4 slot = 0, v4::slotid4 highest = 3) {
  return {session(1), sequence, slot, highest, false, {}};
}
BackChannel four_slots() {
  BackChannel channel;
  channel.reset(session(1), 4);
  return channel;
}
const Buffer kRecall = Buffer::copy_of(bytes_of("recall"));
const Buffer kOther = Buffer::copy_of(bytes_of("recall of another"));
v4::CB_COMPOUND4res results(v4::nfsstat4 status) {
  v4::CB_COMPOUND4res made;
  made.status = status;
  return made;
}

TEST(BackChannel, executes_numbers_in_their_order_on_each_slot) {
  BackChannel channel = four_slots();
  for (const v4::slotid4 slot : {0u, 3u})
    for (const v4::sequenceid4 sequence : {1u, 2u, 3u}) {
      const BackChannel::Turn turn = channel.begin(call(sequence, slot), kRecall);
      EXPECT_EQ(turn.status, v4::NFS4_OK);
      EXPECT_EQ(turn.kept, nullptr);
      channel.end(call(sequence, slot), kRecall, results(v4::NFS4_OK));
    }
  EXPECT_EQ(channel.begin(call(5), kRecall).status, v4::NFS4ERR_SEQ_MISORDERED);
  EXPECT_EQ(channel.begin(call(2), kRecall).status, v4::NFS4ERR_SEQ_MISORDERED);
}

TEST(BackChannel, answers_a_retransmission_as_before_and_executes_what_was_not_finished) {
  BackChannel channel = four_slots();
  channel.begin(call(1), kRecall);
  EXPECT_EQ(channel.begin(call(2), kRecall).status, v4::NFS4ERR_SEQ_MISORDERED);
  const BackChannel::Turn unfinished = channel.begin(call(1), kRecall);
  EXPECT_EQ(unfinished.status, v4::NFS4_OK);
  EXPECT_EQ(unfinished.kept, nullptr);
  channel.end(call(1), kRecall, results(v4::NFS4ERR_BADHANDLE));
  const BackChannel::Turn again = channel.begin(call(1), kRecall);
  ASSERT_NE(again.kept, nullptr);
  EXPECT_EQ(again.kept->status, v4::NFS4ERR_BADHANDLE);
}

TEST(BackChannel, does_not_answer_another_callback_as_the_one_that_had_its_number) {
  BackChannel channel = four_slots();
  channel.end(call(1), kRecall, results(v4::NFS4_OK));
  EXPECT_EQ(channel.begin(call(1), kOther).status, v4::NFS4ERR_SEQ_FALSE_RETRY);
  EXPECT_NE(channel.begin(call(1), kRecall).kept, nullptr) << "nothing is lost by that";
  EXPECT_EQ(channel.begin(call(2), kOther).status, v4::NFS4_OK);
}

TEST(BackChannel, knows_its_session_and_its_slots) {
  BackChannel none;
  EXPECT_EQ(none.begin({}, kRecall).status, v4::NFS4ERR_BADSESSION);
  BackChannel channel = four_slots();
  v4::CB_SEQUENCE4args other = call(1);
  other.csa_sessionid = session(2);
  EXPECT_EQ(channel.begin(other, kRecall).status, v4::NFS4ERR_BADSESSION);
  EXPECT_EQ(channel.begin(call(1, 4, 4), kRecall).status, v4::NFS4ERR_BADSLOT);
  EXPECT_EQ(channel.begin(call(1, 2, 1), kRecall).status, v4::NFS4ERR_BAD_HIGH_SLOT);
  EXPECT_EQ(channel.begin(call(1, 2, 4), kRecall).status, v4::NFS4ERR_BAD_HIGH_SLOT);
  EXPECT_EQ(channel.begin(call(0), kRecall).status, v4::NFS4ERR_SEQ_MISORDERED) << "never used";
}

TEST(BackChannel, forgets_everything_with_its_session) {
  BackChannel channel = four_slots();
  channel.end(call(1), kRecall, results(v4::NFS4_OK));
  channel.reset(session(1), 2);
  EXPECT_EQ(channel.begin(call(1, 0, 1), kRecall).kept, nullptr);
  EXPECT_EQ(channel.begin(call(1, 2, 3), kRecall).status, v4::NFS4ERR_BADSLOT);
}

}  // namespace
}  // namespace stag::nfs::session
