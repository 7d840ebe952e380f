// A server of version 4.1 that has restarted, and what a client claims of it (RFC 8881 8.4.2).
#include <gtest/gtest.h>

#include <array>
#include <utility>

#include "base/task_group.h"
#include "testing/nfs/lying_server.h"

namespace stag::nfs::client {
namespace {

using testing::Compound4Results;
using testing::Lie;
using testing::LyingServer;

bool is_by_session(const v4::COMPOUND4args& args) {
  return args.argarray.front().argop == v4::OP_SEQUENCE;
}
Task<void> answered(FileSystem& files, bool& well) {
  const Outcome<Attributes> got = co_await files.getattr(files.root());
  well = got.ok();
}

class RestartedNfs4Server : public ::testing::Test {
 protected:
  LyingServer server;
};

// A server may keep its sessions over a restart, and not what was opened (RFC 8881 18.46.3).
TEST_F(RestartedNfs4Server, is_not_asked_for_what_it_had_granted_before) {
  for (const bool restarted : {false, true}) {
    FileSystem files = server.files();
    int opens = 0;
    server.lie = [&](const v4::COMPOUND4args& args, Compound4Results& results) {
      for (const v4::nfs_argop4& asked : args.argarray) opens += asked.argop == v4::OP_OPEN ? 1 : 0;
      if (args.argarray.size() > 1 || !is_by_session(args)) return;
      // The results that were kept.
      results.resarray.emplace_back().resop = v4::OP_PUTFH;
      if (restarted)
        results.resarray[0].opsequence().sr_resok4().sr_status_flags =
            v4::SEQ4_STATUS_RESTART_RECLAIM_NEEDED;
    };
    server.channel.lost = true;
    EXPECT_FALSE(server.run(files.open(files.root(), access::kRead)).ok());
    server.channel.lost = false;
    server.loop.pass(std::chrono::seconds(20));
    EXPECT_EQ(opens, restarted ? 0 : 1);
  }
}

// One that says with every answer that it has restarted until it is told that all is
// reclaimed, and does not know the stateids of before.
struct Forgetful {
  Lie lie() {
    return [this](const v4::COMPOUND4args& args, Compound4Results& results) {
      if (!is_by_session(args)) return;
      restarted = restarted || args.argarray.back().argop == v4::OP_TEST_STATEID;
      std::uint32_t& flags = results.resarray[0].opsequence().sr_resok4().sr_status_flags;
      if (revokes && !restarted) flags = v4::SEQ4_STATUS_ADMIN_STATE_REVOKED;
      if (restarted && !complete) flags = v4::SEQ4_STATUS_RESTART_RECLAIM_NEEDED;
      for (std::size_t i = 0; i < args.argarray.size(); ++i) {
        const bool good = answer(args.argarray[i], results.resarray[i]);
        if (good) continue;
        results.status = results.resarray[i].opread().status = v4::NFS4ERR_STALE_STATEID;
        return results.resarray.resize(i + 1);
      }
    };
  }
  bool answer(const v4::nfs_argop4& asked, v4::nfs_resop4& result) {
    const std::byte of{restarted ? std::uint8_t{2} : std::uint8_t{1}};
    if (asked.argop == v4::OP_RECLAIM_COMPLETE) complete = true;
    if (asked.argop == v4::OP_GETFH)
      result.opgetfh().resok4().object = v4::nfs_fh4(bytes_of(std::string_view("file")));
    if (asked.argop == v4::OP_GETATTR)
      result.opgetattr().resok4().obj_attributes = nfs4::type_is(FileType::Regular);
    if (asked.argop == v4::OP_OPEN) result.opopen().resok4().stateid.other.fill(of);
    if (asked.argop == v4::OP_LOCK) {
      result.oplock().resok4().lock_stateid.other.fill(of);
      locks_reclaimed += asked.oplock().reclaim ? 1 : 0;
    }
    if (asked.argop == v4::OP_TEST_STATEID)
      for (const v4::stateid4& each : asked.optest_stateid().ts_stateids)
        result.optest_stateid().tsr_resok4().tsr_status_codes.push_back(
            each.other[0] == of ? v4::NFS4_OK : v4::NFS4ERR_BAD_STATEID);
    return asked.argop != v4::OP_READ || asked.opread().stateid.other[0] == of;
  }
  bool revokes = false;  // something, as it says; it restarts when it is asked what
  bool restarted = false;
  bool complete = false;
  int locks_reclaimed = 0;
};

// RFC 8881 8.4.2.1.
TEST_F(RestartedNfs4Server, is_asked_for_locks_whichever_call_finds_that_out) {
  for (const auto first : {v4::OP_GETATTR, v4::OP_READ, v4::OP_TEST_STATEID}) {
    FileSystem files = server.files();
    Forgetful forgetful;
    server.lie = forgetful.lie();
    const auto opened = server.run(
        files.create_open(files.root(), "file", {}, CreateMode::Unchecked, access::kRead));
    ASSERT_TRUE(opened.ok()) << opened.error().sentence;
    ASSERT_TRUE(server.run(files.lock(opened->file, {1, 1}, {0, 10, false})).ok());
    forgetful.revokes = first == v4::OP_TEST_STATEID;
    forgetful.restarted = !forgetful.revokes;
    if (first != v4::OP_READ) {
      EXPECT_TRUE(server.run(files.getattr(files.root())).ok());
    }
    server.loop.pass(std::chrono::seconds(1));
    EXPECT_TRUE(forgetful.restarted);
    std::array<std::byte, 4> to;
    const auto read = server.run(files.read(opened->file, 0, to));
    EXPECT_TRUE(read.ok()) << read.error().sentence;
    EXPECT_EQ(forgetful.locks_reclaimed, 1) << first;
    ASSERT_TRUE(server.run(files.close(opened->file)).ok());
    server.loop.pass(std::chrono::minutes(1));
  }
}

// RFC 8881 18.46.3: what it begins before RECLAIM_COMPLETE says that it has restarted whenever it
// is answered.
TEST_F(RestartedNfs4Server, that_answers_a_call_of_before_RECLAIM_COMPLETE_late_is_asked_once) {
  FileSystem files = server.files();
  Forgetful forgetful;
  server.lie = forgetful.lie();
  const auto opened =
      server.run(files.create_open(files.root(), "file", {}, CreateMode::Unchecked, access::kRead));
  ASSERT_TRUE(opened.ok()) << opened.error().sentence;
  ASSERT_TRUE(server.run(files.lock(opened->file, {1, 1}, {0, 10, false})).ok());
  forgetful.restarted = true;
  EXPECT_TRUE(server.run(files.getattr(files.root())).ok());
  const auto is_late = [](const v4::COMPOUND4args& args) {
    return args.argarray.size() == 3 && args.argarray[1].argop == v4::OP_PUTFH &&
           args.argarray[2].argop == v4::OP_GETATTR;
  };
  server.takes = [&](const v4::COMPOUND4args& args) {
    return std::chrono::milliseconds(is_late(args) ? 1000 : 1);
  };
  server.lie = [&, lie = forgetful.lie()](const auto& args, Compound4Results& results) {
    lie(args, results);
    if (!is_late(args)) return;
    EXPECT_TRUE(forgetful.complete);
    results.resarray[0].opsequence().sr_resok4().sr_status_flags =
        v4::SEQ4_STATUS_RESTART_RECLAIM_NEEDED;
  };
  TaskGroup group;
  bool well = false;
  group.add(answered(files, well));
  server.loop.pass(std::chrono::seconds(2));
  EXPECT_TRUE(well);
  std::array<std::byte, 4> to;
  EXPECT_TRUE(server.run(files.read(opened->file, 0, to)).ok());
  EXPECT_EQ(forgetful.locks_reclaimed, 1);
}

}  // namespace
}  // namespace stag::nfs::client
