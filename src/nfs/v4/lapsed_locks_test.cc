// Locks that a lapsed client has lost to programs of the server's machine are not claimed after a
// restart, and all else is.
#include "nfs/recovery/recovery.h"
#include "nfs/v4/administration.h"
#include "testing/nfs/nfs4_fixture.h"
#include "testing/nfs/store_with_programs.h"
#include "testing/vfs/posix_backend.h"

namespace stag::nfs::nfs4 {
namespace {

using namespace stag::testing;
using namespace std::chrono_literals;

struct RecordsOfLapsed {
  vfs::testing::Folder folder{"/tmp"};
  std::unique_ptr<recovery::Recovery> open() const {
    auto opened = recovery::Recovery::open(folder.path() / "db", 90, nullptr);
    STAG_CHECK(opened.ok());
    return *std::move(opened);
  }
  void run(const char* statement) const {
    sqlite3* other = nullptr;
    ASSERT_EQ(sqlite3_open((folder.path() / "db").c_str(), &other), SQLITE_OK);
    EXPECT_EQ(sqlite3_exec(other, statement, nullptr, nullptr, nullptr), SQLITE_OK);
    sqlite3_close(other);
  }
  std::unique_ptr<recovery::Recovery> served = open();
  Nfs4Options options() const {
    Nfs4Options with;
    with.recovery = served.get();
    return with;
  }
};

class Nfs4LapsedRecords : private RecordsOfLapsed, public Nfs4Served {
 protected:
  Nfs4LapsedRecords() : Nfs4Served(options()) {
    programs_->has_locks = true;
    ExportOptions open;
    open.root_squash = false;
    Exports exports;
    STAG_CHECK(exports.add(1, {"/data", programs_, open}).ok());
    context_.exports.replace(std::move(exports));
  }
  ~Nfs4LapsedRecords() override { nfs4_.stop_callbacks(); }
  void SetUp() override {
    nfs4_.watch_leases(loop_);
    Nfs4Served::SetUp();
    const Opened file = create("file");
    v4::LOCK4args args{v4::WRITE_LT, false, 0, 10, {}};
    args.locker.new_lock_owner = true;
    args.locker.open_owner() = {0, file.stateid, 0, {clientid_, Rope::copy_of(bytes_of("locker"))}};
    const auto locked = run({putfh(file.handle), op(v4::OP_LOCK, &Op::oplock, std::move(args))});
    ASSERT_EQ(locked.status, v4::NFS4_OK);
    lock_ = locked.resarray[1].oplock().resok4().lock_stateid;
    loop_.pass(94s);  // a lease and some more
    ASSERT_EQ(programs_->leases, 1);
  }
  void a_program_opens_the_file() {
    programs_->want(40s);
    loop_.drain();
  }
  bool recorded() const { return RecordsOfLapsed::open()->anybody_left(); }
  using Nfs4Served::run;
  using RecordsOfLapsed::run;

  v4::stateid4 lock_;
  const std::shared_ptr<StoreWithPrograms> programs_ = std::make_shared<StoreWithPrograms>(store_);
};

TEST_F(Nfs4LapsedRecords, go_with_locks_that_are_given_up_and_come_again_when_these_are_freed) {
  EXPECT_TRUE(recorded()) << "it keeps what it has";
  a_program_opens_the_file();
  EXPECT_EQ(programs_->locks.open, 0);
  EXPECT_FALSE(recorded());
  EXPECT_EQ(compound({sequence()}).status, v4::NFS4_OK);
  loop_.pass(2s);
  EXPECT_FALSE(recorded()) << "it may not know yet";
  const Op free = op(v4::OP_FREE_STATEID, &Op::opfree_stateid, v4::FREE_STATEID4args{lock_});
  EXPECT_EQ(run({free}).status, v4::NFS4_OK);
  loop_.pass(2s);
  EXPECT_TRUE(recorded()) << "its open it may claim";
}

TEST_F(Nfs4LapsedRecords, keep_the_locks_until_the_record_can_be_removed) {
  run("CREATE TRIGGER refuse BEFORE DELETE ON clients BEGIN SELECT RAISE(ABORT, 'no room'); END");
  a_program_opens_the_file();
  EXPECT_EQ(programs_->locks.open, 1);
  EXPECT_EQ(programs_->leases, 1) << "or the program went on, and ran into them";
  loop_.pass(10s);
  EXPECT_EQ(programs_->locks.open, 1);
  EXPECT_EQ(programs_->leases, 1);
  run("DROP TRIGGER refuse");
  loop_.pass(2s);
  EXPECT_EQ(programs_->locks.open, 0);
  EXPECT_EQ(programs_->leases, 0);
  EXPECT_EQ(compound({sequence()}).status, v4::NFS4_OK);
}

// An administrator was first: the program takes nothing from the client.
TEST_F(Nfs4LapsedRecords, are_no_matter_where_the_locks_have_gone_before) {
  ASSERT_TRUE(nfs4_.administration().revoke({lock_.seqid, lock_.other}));
  a_program_opens_the_file();
  EXPECT_EQ(programs_->leases, 0);
  EXPECT_FALSE(recorded());
}

// The lease has the file open: its disk could not be unmounted as long as the client is remembered.
TEST_F(Nfs4LapsedRecords, have_no_lease_of_a_file_whose_locks_an_administrator_has_revoked) {
  loop_.pass(2s);
  EXPECT_EQ(programs_->leases, 1);
  ASSERT_TRUE(nfs4_.administration().revoke({lock_.seqid, lock_.other}));
  loop_.pass(2s);
  EXPECT_EQ(programs_->leases, 0);
  EXPECT_EQ(programs_->locks.open, 0);
}

}  // namespace
}  // namespace stag::nfs::nfs4
