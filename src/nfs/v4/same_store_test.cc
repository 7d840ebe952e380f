// Two exports of one store: a file is one file, by whichever of them a client reaches it.
#include "nfs/v4/administration.h"
#include "testing/nfs/nfs4_delegations_fixture.h"

namespace stag::nfs::nfs4 {
namespace {

using namespace stag::testing;

constexpr std::uint32_t kDenyBoth = v4::OPEN4_SHARE_DENY_BOTH;

// /data and /again are the same folder, /fixed is it for readers only; /other is another one.
template <class Fixture>
class ExportedTwice : public Fixture {
 protected:
  ExportedTwice() {
    ExportOptions open;
    open.root_squash = false;
    ExportOptions fixed = open;
    fixed.read_only = true;
    Exports exports;
    STAG_CHECK(exports.add(1, {"/data", this->store_, open}).ok());
    STAG_CHECK(exports.add(2, {"/again", this->store_, open}).ok());
    STAG_CHECK(exports.add(3, {"/fixed", this->store_, fixed}).ok());
    STAG_CHECK(exports.add(4, {"/other", this->fixed_store_, open}).ok());
    this->context_.exports.replace(std::move(exports));
  }
  typename Fixture::Opened open_in(const char* folder, v4::OPEN4args args) {
    const auto results = this->run(
        {putrootfh(), lookup(folder), op(v4::OP_OPEN, &Op::opopen, std::move(args)), getfh()});
    if (results.status != v4::NFS4_OK) return {results.status, {}, {}};
    return {results.status, results.resarray[2].opopen().resok4().stateid,
            results.resarray[3].opgetfh().resok4().object};
  }
  v4::nfsstat4 write(const v4::nfs_fh4& handle, const v4::stateid4& stateid) {
    return this->run({putfh(handle), this->write_op(stateid, 0, "x")}).status;
  }
};

class Nfs4SameStore : public ExportedTwice<Nfs4Served> {
 protected:
  v4::OPEN4args wanting(std::uint32_t access) { return open_args("file", access, false, "second"); }
  Res lock(const Opened& file, const std::string& owner) {
    v4::LOCK4args args;
    args.locktype = v4::WRITE_LT;
    args.offset = 10;
    args.length = 10;
    args.locker.new_lock_owner = true;
    args.locker.open_owner() = {0, file.stateid, 0, {clientid_, Rope::copy_of(bytes_of(owner))}};
    return run({putfh(file.handle), op(v4::OP_LOCK, &Op::oplock, std::move(args))});
  }
};

TEST_F(Nfs4SameStore, a_share_reservation_by_one_path_is_seen_by_the_other) {
  v4::OPEN4args first = open_args("file", kForBoth, true);
  first.share_deny = kDenyBoth;
  const Opened made = open(std::move(first));
  ASSERT_EQ(made.status, v4::NFS4_OK);
  EXPECT_EQ(open_in("again", wanting(kForReading)).status, v4::NFS4ERR_SHARE_DENIED);
  const v4::nfs_fh4 again = walk({"again", "file"});
  ASSERT_NE(again, made.handle);
  EXPECT_EQ(write(again, {}), v4::NFS4ERR_LOCKED);
  EXPECT_EQ(run({putrootfh(), lookup("other"),
                 op(v4::OP_OPEN, &Op::opopen, open_args("file", kForBoth, true))})
                .status,
            v4::NFS4_OK)
      << "another store has another file of that name";
}

TEST_F(Nfs4SameStore, a_lock_by_one_path_is_seen_by_the_other) {
  const Opened made = create("file");
  ASSERT_EQ(lock(made, "first").status, v4::NFS4_OK);
  const Opened again = open_in("again", wanting(kForBoth));
  ASSERT_EQ(again.status, v4::NFS4_OK);
  const Res denied = lock(again, "second");
  ASSERT_EQ(denied.status, v4::NFS4ERR_DENIED);
  EXPECT_EQ(text(denied.resarray[1].oplock().denied().owner.owner), "first");
}

TEST_F(Nfs4SameStore, read_only_holds_by_the_path_of_the_filehandle) {
  const Opened made = create("file");
  EXPECT_EQ(write(walk({"again", "file"}), made.stateid), v4::NFS4_OK);
  EXPECT_EQ(write(walk({"fixed", "file"}), made.stateid), v4::NFS4ERR_ROFS);
}

TEST_F(Nfs4SameStore, an_administrator_sees_by_which_path_a_file_was_opened) {
  create("file");
  ASSERT_EQ(open_in("again", wanting(kForReading)).status, v4::NFS4_OK);
  const Administration admin = nfs4_.administration();
  std::vector<std::string> paths;
  state::StateCursor at;
  state::StatePage page;
  for (bool more = true; more;) {
    more = admin.states(at, {}, page);
    for (const state::StateInfo& info : page.rows())
      paths.push_back(admin.export_of(info.file).value_or("none"));
  }
  std::ranges::sort(paths);
  EXPECT_EQ(paths, (std::vector<std::string>{"/again", "/data"}));
}

class Nfs4SameStoreDelegated : public ExportedTwice<Nfs4DelegationsServed> {};

TEST_F(Nfs4SameStoreDelegated, a_delegation_is_recalled_by_the_handle_that_its_holder_knows) {
  as(other_, [&] { return open_in("again", open_args("file", kForReading, false)).status; });
  ASSERT_EQ(open_for(kForReading).delegation_type, v4::OPEN_DELEGATE_READ);
  holder_ = now_acting();
  gives_back();
  const auto status =
      as(other_, [&] { return open_in("again", open_args("file", kForBoth, false)).status; });
  EXPECT_EQ(status, v4::NFS4_OK);
  ASSERT_EQ(holder_client_.asked.size(), 1u);
  EXPECT_EQ(holder_client_.asked[0].argarray[1].opcbrecall().fh, handle_);
}

}  // namespace
}  // namespace stag::nfs::nfs4
