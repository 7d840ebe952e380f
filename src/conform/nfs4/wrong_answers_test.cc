// Servers that do one thing wrong: the case that asks for it fails, and says what is wrong.
#include <gmock/gmock.h>

#include <algorithm>

#include "testing/nfs/wrong_answers_fixture.h"

namespace stag::conform::nfs4 {
namespace {

using namespace nfs::v4;  // NOLINT: tables are made of its names
using stag::testing::WrongAnswers;
using ::testing::HasSubstr;

constexpr std::uint32_t kShareMask = OPEN4_SHARE_ACCESS_BOTH;

// As our server's, with another status in the last result and in all.
void say_instead(COMPOUND4res& results, nfsstat4 status) {
  xdr::Encoder encoder;
  encode(encoder, results.resarray.back());
  encoder.patch_u32(4, status);
  for (int i = 0; i < 16; ++i) encoder.u32(0);  // for an arm that may be longer
  xdr::Decoder decoder(std::move(encoder).finish().rope().flatten());
  nfs_resop4 changed;
  EXPECT_TRUE(decode(decoder, changed));
  results.resarray.back() = changed;
  results.status = status;
}

bool ends_with(const COMPOUND4res& results, nfs_opnum4 operation, nfsstat4 status) {
  return !results.resarray.empty() && results.resarray.back().resop == operation &&
         results.status == status;
}

// Nothing is ever wrong with the session.
void say_no_flags(const COMPOUND4args&, COMPOUND4res& results) {
  if (results.resarray.empty() || results.resarray.front().resop != OP_SEQUENCE) return;
  SEQUENCE4res& sequence = results.resarray.front().opsequence();
  if (sequence.sr_status == NFS4_OK) sequence.sr_resok4().sr_status_flags = 0;
}

TEST_F(WrongAnswers, an_open_that_lives_on_without_its_lease) {
  when_wrong = [](const COMPOUND4args&, COMPOUND4res& results) {
    for (const nfsstat4 due : {NFS4ERR_EXPIRED, NFS4ERR_BAD_STATEID, NFS4ERR_STALE_STATEID})
      if (ends_with(results, OP_READ, due)) say_instead(results, NFS4ERR_OPENMODE);
  };
  expect_failure(0, "*.READ.NFS4ERR_EXPIRED*", "NFS4ERR_OPENMODE, asked for NFS4ERR_EXPIRED");
}

TEST_F(WrongAnswers, a_client_ID_that_lives_on_without_its_sessions) {
  when_wrong = [](const COMPOUND4args&, COMPOUND4res& results) {
    if (ends_with(results, OP_CREATE_SESSION, NFS4ERR_STALE_CLIENTID))
      say_instead(results, NFS4ERR_SEQ_MISORDERED);
  };
  expect_failure(1, "*.READ.NFS4ERR_EXPIRED*", "asked for NFS4ERR_STALE_CLIENTID");
}

TEST_F(WrongAnswers, a_lease_that_never_runs_out) {
  when_wrong = [](const COMPOUND4args& args, COMPOUND4res& results) {
    const auto takes_over = [](const nfs_argop4& asked) {
      return asked.argop == OP_OPEN &&
             (asked.opopen().share_access & kShareMask) == OPEN4_SHARE_ACCESS_WRITE;
    };
    const auto found = std::ranges::find_if(args.argarray, takes_over);
    if (found == args.argarray.end() || results.status != NFS4_OK) return;
    results.resarray.resize(static_cast<std::size_t>(found - args.argarray.begin()) + 1);
    say_instead(results, NFS4ERR_SHARE_DENIED);
  };
  expect_failure(1, "*.READ.NFS4ERR_EXPIRED*", "NFS4ERR_SHARE_DENIED still");
}

// Whatever is called is answered, and nobody is told.
TEST_F(WrongAnswers, a_recall_that_is_never_sent) {
  constexpr const char* kRecalled = "*of what another client has a delegation of*";
  for (const std::uint32_t minor : {1u, 2u}) {
    EXPECT_EQ(verdict_on(minor, kRecalled).outcome, Outcome::Pass);
    Callbacks others(loop_, {});
    reverse_ = std::make_shared<stag::testing::LoopbackChannel>(loop_, others.service());
    channel_.origin().reverse = reverse_;
    const Verdict verdict = verdict_on(minor, kRecalled);
    EXPECT_EQ(verdict.outcome, Outcome::Fail);
    EXPECT_THAT(verdict.detail, HasSubstr("no CB_RECALL came"));
    reverse_ = std::make_shared<stag::testing::LoopbackChannel>(loop_, callbacks_.service());
    channel_.origin().reverse = reverse_;
  }
}

TEST_F(WrongAnswers, a_delegation_that_is_revoked_without_a_word) {
  when_wrong = say_no_flags;
  expect_failure(1, "*.DELEGRETURN.NFS4ERR_DELEG_REVOKED*", "RECALLABLE_STATE_REVOKED");
}

TEST_F(WrongAnswers, a_delegation_that_is_forgotten_when_it_is_revoked) {
  when_wrong = [](const COMPOUND4args&, COMPOUND4res& results) {
    if (ends_with(results, OP_DELEGRETURN, NFS4ERR_DELEG_REVOKED))
      say_instead(results, NFS4ERR_BAD_STATEID);
  };
  expect_failure(2, "*.DELEGRETURN.NFS4ERR_DELEG_REVOKED*", "NFS4ERR_BAD_STATEID");
}

TEST_F(WrongAnswers, a_back_channel_that_nobody_misses) {
  when_wrong = say_no_flags;
  expect_failure(1, "*.SEQUENCE.*CB_PATH_DOWN*", "does not say SEQ4_STATUS_CB_PATH_DOWN");
}

TEST_F(WrongAnswers, a_callback_path_that_nobody_misses) {
  when_wrong = [](const COMPOUND4args&, COMPOUND4res& results) {
    if (ends_with(results, OP_RENEW, NFS4ERR_CB_PATH_DOWN)) say_instead(results, NFS4_OK);
  };
  expect_failure(0, "*.RENEW.NFS4ERR_CB_PATH_DOWN*", "NFS4_OK, asked for NFS4ERR_CB_PATH_DOWN");
}

// Our server notices false retries.
struct FalseRetry {
  COMPOUND4res first{};  // the reply of before
  bool executed = false;

  void operator()(const COMPOUND4args& args, COMPOUND4res& results) {
    if (results.status != NFS4ERR_SEQ_FALSE_RETRY) {
      first = results;
      return;
    }
    results = first;
    if (!executed) return;
    results.resarray.resize(1);
    results.resarray.emplace_back().resop = args.argarray.back().argop;
    results.resarray.back().opputrootfh().status = NFS4_OK;
  }
};

TEST_F(WrongAnswers, a_false_retry_that_draws_the_reply_of_before_is_allowed) {
  change = FalseRetry();
  const Verdict verdict = verdict_on(1, "*.SEQUENCE.NFS4ERR_SEQ_FALSE_RETRY*");
  EXPECT_EQ(verdict.outcome, Outcome::Pass) << verdict.detail;
  EXPECT_EQ(verdict.detail, "the reply of before came");
}

TEST_F(WrongAnswers, a_false_retry_that_is_executed) {
  when_wrong = FalseRetry{{}, true};
  expect_failure(1, "*.SEQUENCE.NFS4ERR_SEQ_FALSE_RETRY*", "asked for NFS4ERR_SEQ_FALSE_RETRY");
}

// The server behind it hears one principal only.
TEST_F(WrongAnswers, principals_that_are_not_told_apart) {
  for (const std::string operation : {"EXCHANGE_ID", "CREATE_SESSION"})
    for (const std::uint32_t minor : {1u, 2u}) {
      const Verdict verdict = verdict_on(minor, "*." + operation + ".NFS4ERR_CLID_INUSE*");
      EXPECT_EQ(verdict.outcome, Outcome::Fail);
      EXPECT_THAT(verdict.detail, HasSubstr("asked for NFS4ERR_CLID_INUSE")) << operation;
    }
  for (const std::string operation : {"SETCLIENTID", "SETCLIENTID_CONFIRM"}) {
    const Verdict verdict = verdict_on(0, "*." + operation + ".NFS4ERR_CLID_INUSE*");
    EXPECT_EQ(verdict.outcome, Outcome::Fail);
    EXPECT_THAT(verdict.detail, HasSubstr("asked for NFS4ERR_CLID_INUSE")) << operation;
  }
}

struct Wrong {
  std::uint32_t minor;
  nfs_opnum4 operation;
  nfsstat4 asked;
  std::string name;       // of the case, behind the status
  nfsstat4 came = asked;  // from our server
};

// Cases of which each accepts one answer, and fails where another one comes.
TEST_F(WrongAnswers, a_status_that_is_not_the_one_that_is_due) {
  const std::string full = ", more than is left of *", lock = ", by a lock whose lease ran out*",
                    open = ", by an open whose lease ran out*",
                    revoked = ", by the stateid of a delegation that was recalled*";
  const std::vector<Wrong> all{
      {0, OP_CREATE, NFS4ERR_ROFS, "*"},
      {1, OP_OPEN, NFS4ERR_ROFS, "*"},
      {1, OP_SETATTR, NFS4ERR_ROFS, "*"},
      {1, OP_REMOVE, NFS4ERR_ROFS, "*"},
      {1, OP_RENAME, NFS4ERR_ROFS, "*"},
      {1, OP_EXCHANGE_ID, NFS4ERR_ENCR_ALG_UNSUPP, "*"},
      {1, OP_OPEN, NFS4ERR_REP_TOO_BIG, full},
      {1, OP_REMOVE, NFS4ERR_REP_TOO_BIG_TO_CACHE, full},
      {0, OP_WRITE, NFS4ERR_EXPIRED, open, NFS4ERR_BAD_STATEID},
      {0, OP_LOCKU, NFS4ERR_EXPIRED, lock, NFS4ERR_BAD_STATEID},
      {2, OP_WRITE, NFS4ERR_DELEG_REVOKED, revoked},
      {2, OP_SEEK, NFS4ERR_DELEG_REVOKED, revoked},
      {1, OP_OPEN, NFS4ERR_DELEG_REVOKED, revoked},
  };
  for (const Wrong& wrong : all) {
    SCOPED_TRACE(name_of(wrong.operation) + " " + name_of(wrong.asked));
    when_wrong = [wrong](const COMPOUND4args&, COMPOUND4res& results) {
      if (ends_with(results, wrong.operation, wrong.came))
        say_instead(results, NFS4ERR_SERVERFAULT);
    };
    expect_failure(wrong.minor,
                   "*." + name_of(wrong.operation) + "." + name_of(wrong.asked) + wrong.name,
                   "asked for " + name_of(wrong.asked));
  }
}

}  // namespace
}  // namespace stag::conform::nfs4
