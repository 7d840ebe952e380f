// A COMPOUND whose change was done, and whose GETATTR behind that failed: it is not sent again, and
// what it does not say is asked for.
#include <gtest/gtest.h>

#include <algorithm>

#include "testing/nfs/lying_server.h"

namespace stag::nfs::client {
namespace {

using testing::Compound4Results;
using testing::LyingServer;

// In its first COMPOUND with the operation `change` GETATTR, or GETFH, says `status`.
struct HalfDone : LyingServer {
  HalfDone(std::uint32_t minor, v4::nfs_opnum4 change, v4::nfsstat4 status) : LyingServer(minor) {
    lie = [this, change, status](const v4::COMPOUND4args& args, Compound4Results& results) {
      for (v4::nfs_resop4& result : results.resarray) {
        if (result.resop == v4::OP_GETFH)
          result.opgetfh().resok4().object = v4::nfs_fh4(bytes_of("made"));
        if (result.resop == v4::OP_OPEN) result.opopen().resok4().rflags = v4::OPEN4_RESULT_CONFIRM;
        if (result.resop == v4::OP_OPEN_CONFIRM) ++confirmed;
      }
      const auto is = [](v4::nfs_opnum4 number) {
        return [number](const v4::nfs_argop4& asked) { return asked.argop == number; };
      };
      if (std::ranges::none_of(args.argarray, is(change)) || ++changes > 1) return;
      const auto place = std::ranges::find_if(args.argarray, is(failing)) - args.argarray.begin();
      results.status = status;
      results.resarray.resize(static_cast<std::size_t>(place) + 1);
      results.resarray.back() = {};
      results.resarray.back().resop = failing;
      if (failing == v4::OP_GETFH)
        results.resarray.back().opgetfh().status = status;
      else
        results.resarray.back().opgetattr().status = status;
    };
  }
  v4::nfs_opnum4 failing = v4::OP_GETATTR;
  int changes = 0;
  int confirmed = 0;
};

class Nfs4Done : public ::testing::TestWithParam<v4::nfsstat4> {};

TEST_P(Nfs4Done, CREATE_is_not_sent_again_for_the_attributes_of_what_it_made) {
  for (const std::uint32_t minor : {0u, 1u})
    for (const auto failing : {v4::OP_GETATTR, v4::OP_GETFH}) {
      HalfDone server(minor, v4::OP_CREATE, GetParam());
      server.failing = failing;
      FileSystem files = server.files();
      const auto made = server.run(files.mkdir(files.root(), "new", {}));
      ASSERT_TRUE(made) << made.error().sentence;
      EXPECT_EQ(made->handle, *Handle::from(bytes_of("made")));
      EXPECT_EQ(server.changes, 1);
    }
}

TEST_P(Nfs4Done, OPEN_is_not_sent_again_for_the_attributes_of_the_file_that_it_made) {
  for (const std::uint32_t minor : {0u, 1u}) {
    HalfDone server(minor, v4::OP_OPEN, GetParam());
    FileSystem files = server.files();
    const auto made = server.run(files.create(files.root(), "new", {}, CreateMode::Guarded));
    ASSERT_TRUE(made) << made.error().sentence;
    EXPECT_EQ(made->handle, *Handle::from(bytes_of("made")));
    EXPECT_EQ(server.changes, 1);
  }
}

TEST_P(Nfs4Done, OPEN_that_is_held_is_not_sent_again_either) {
  for (const std::uint32_t minor : {0u, 1u}) {
    HalfDone server(minor, v4::OP_OPEN, GetParam());
    FileSystem files = server.files();
    const auto made = server.run(
        files.create_open(files.root(), "new", {}, CreateMode::Guarded, access::kModify));
    ASSERT_TRUE(made) << made.error().sentence;
    EXPECT_EQ(made->file.handle, *Handle::from(bytes_of("made")));
    EXPECT_NE(made->file.open, 0u);
    EXPECT_EQ(server.changes, 1);
    EXPECT_EQ(server.confirmed, minor == 0 ? 1 : 0);
  }
}

// Its VERIFY would not find the change time of before.
TEST_P(Nfs4Done, SETATTR_is_not_sent_again_for_the_attributes_that_it_set) {
  for (const std::uint32_t minor : {0u, 1u}) {
    HalfDone server(minor, v4::OP_SETATTR, GetParam());
    FileSystem files = server.files();
    const auto set = server.run(files.setattr(files.root(), {.mode = 0700}, Time{1, 2}));
    EXPECT_TRUE(set) << set.error().sentence;
    EXPECT_EQ(server.changes, 1);
  }
}

// Nothing was done.
TEST_P(Nfs4Done, not_where_the_change_itself_fails) {
  HalfDone server(1, v4::OP_CREATE, GetParam());
  server.lie = [&server](const v4::COMPOUND4args& args, Compound4Results& results) {
    for (std::size_t i = 0; i < args.argarray.size(); ++i) {
      if (args.argarray[i].argop != v4::OP_CREATE || ++server.changes > 1) continue;
      results.status = results.resarray[i].opcreate().status = GetParam();
      results.resarray.resize(i + 1);
    }
  };
  FileSystem files = server.files();
  const auto made = server.run(files.mkdir(files.root(), "new", {}));
  const bool waits = GetParam() == v4::NFS4ERR_DELAY;
  EXPECT_EQ(made.ok(), waits);
  EXPECT_EQ(server.changes, waits ? 2 : 1);
}

INSTANTIATE_TEST_SUITE_P(Nfs4, Nfs4Done, ::testing::Values(v4::NFS4ERR_DELAY, v4::NFS4ERR_IO));

}  // namespace
}  // namespace stag::nfs::client
