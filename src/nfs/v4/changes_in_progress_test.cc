// A change that was let through and is still in progress: a client in whose way it would have been
// is not granted anything that it breaks (RFC 8881 9.7, 10.4.4).
#include <array>
#include <chrono>
#include <optional>
#include <utility>

#include "testing/nfs/nfs4_delegations_fixture.h"
#include "testing/vfs/stepped_store.h"

namespace stag::nfs::nfs4 {
namespace {

using namespace stag::testing;
using vfs::testing::Called;
using vfs::testing::Point;

// The other client changes a file, and the store takes its time.
class Nfs4ChangesInProgress : public Nfs4DelegationsServed {
 protected:
  static constexpr std::uint32_t kDenyWrite = v4::OPEN4_SHARE_DENY_WRITE;

  Nfs4ChangesInProgress() { minor_ = 2; }
  // With nothing in progress, whatever a test has found.
  ~Nfs4ChangesInProgress() override {
    end_all();
    loop_.pass(std::chrono::seconds(2));
  }
  void SetUp() override {
    Nfs4DelegationsServed::SetUp();
    file_ = handle_of("file");
    nfs::ExportOptions open;
    open.root_squash = false;
    nfs::Exports exports;
    STAG_CHECK(
        exports.add(1, {"/data", std::make_shared<vfs::testing::SteppedStore>(store_, held_), open})
            .ok());
    context_.exports.replace(std::move(exports));
  }
  v4::nfs_fh4 handle_of(const std::string& name) {
    return as(other_, [&] {
      const Opened made = this->create(name);
      this->close(made);
      return made.handle;
    });
  }
  static bool changes(Called called) {
    return called == Called::Write || called == Called::SetAttributes || called == Called::Link ||
           called == Called::Allocate || called == Called::Deallocate || called == Called::Copy ||
           called == Called::Clone || called == Called::SetXattr || called == Called::RemoveXattr;
  }

  using Sent = std::shared_ptr<std::optional<Res>>;
  Sent begins(std::uint32_t minor, std::vector<Op> operations) {
    const auto sent = std::make_shared<std::optional<Res>>();
    holds_ = true;
    detach(call(sent, {"", minor, std::move(operations)}));
    loop_.drain();
    holds_ = false;
    return sent;
  }
  Sent other_begins(std::vector<Op> operations) {
    operations.insert(operations.begin(), as(other_, [this] { return sequence(); }));
    return begins(minor_, std::move(operations));
  }
  // By any client that knows the filehandle, with as many WRITEs at once as it likes.
  Sent stranger_writes() { return begins(0, {putfh(file_), written("NEW!")}); }
  Sent other_writes(std::string_view text) { return other_begins({putfh(file_), written(text)}); }
  static Op written(std::string_view text) { return write_op({}, 0, text); }
  void end_all() {
    while (!held_->waiting.empty()) {
      held_->release_all();
      loop_.drain();
    }
  }
  Opened open_denying(std::uint32_t access, const std::string& name = "file") {
    v4::OPEN4args args = open_args(name, access | v4::OPEN4_SHARE_ACCESS_WANT_NO_DELEG, false);
    args.share_deny = kDenyWrite;
    return this->open(std::move(args));
  }
  Sent begins_to_deny() {
    v4::OPEN4args args =
        open_args("file", kForReading | v4::OPEN4_SHARE_ACCESS_WANT_NO_DELEG, false);
    args.share_deny = kDenyWrite;
    return begins(minor_, {sequence(), putrootfh(), lookup("data"),
                           op(v4::OP_OPEN, &Op::opopen, std::move(args))});
  }
  // Nothing is delegated while the other client does this, nor denied where it changes data, and
  // all of it afterwards.
  void expect_seen(const char* what, std::vector<Op> operations,
                   v4::nfsstat4 denial = v4::NFS4ERR_DELAY) {
    const Sent sent = other_begins(std::move(operations));
    ASSERT_EQ(held_->waiting.size(), 1u) << what;
    EXPECT_EQ(open_for(kForReading).delegation_type, v4::OPEN_DELEGATE_NONE) << what;
    this->close({v4::NFS4_OK, opened_, handle_});
    const Opened meanwhile = open_denying(kForReading);
    EXPECT_EQ(meanwhile.status, denial) << what;
    if (meanwhile.status == v4::NFS4_OK) this->close(meanwhile);
    end_all();
    ASSERT_TRUE(*sent) << what;
    EXPECT_EQ((*sent)->status, v4::NFS4_OK) << what;
    const Opened denying = open_denying(kForReading);
    EXPECT_EQ(denying.status, v4::NFS4_OK) << what;
    this->close(denying);
  }

  v4::nfs_fh4 file_;
  bool holds_ = false;
  const std::shared_ptr<vfs::testing::HeldSteps> held_ =
      std::make_shared<vfs::testing::HeldSteps>([this](Point point) {
        return holds_ && point.when == Point::When::Begin && changes(point.operation);
      });

 private:
  Task<void> call(Sent to, v4::COMPOUND4args args) {
    rpc::Client client(channel_, ulb::nfs4(), credentials_);
    auto result = co_await client.call<v4::NFSPROC4_COMPOUND>(args);
    if (result) *to = std::move(*result);
  }
};

TEST_F(Nfs4ChangesInProgress, delay_a_denying_OPEN_until_they_are_done) {
  const Sent sent = other_writes("NEW!");
  EXPECT_EQ(open_denying(kForReading).status, v4::NFS4ERR_DELAY);
  const Opened reader = this->open(open_args("file", kForReading, false));
  EXPECT_EQ(reader.status, v4::NFS4_OK) << "it denies nothing";
  end_all();
  EXPECT_EQ((*sent)->status, v4::NFS4_OK);
  const Opened denying = open_denying(kForReading);
  ASSERT_EQ(denying.status, v4::NFS4_OK);
  EXPECT_EQ((*other_writes("late"))->status, v4::NFS4ERR_LOCKED);
  const Res read = run({putfh(denying.handle), read_op(denying.stateid, 0, 10)});
  EXPECT_EQ(text(read.resarray[1].opread().resok4().data), "NEW!");
}

TEST_F(Nfs4ChangesInProgress, keep_their_file_from_being_delegated) {
  other_writes("NEW!");
  EXPECT_EQ(open_for(kForReading).delegation_type, v4::OPEN_DELEGATE_NONE);
  EXPECT_EQ(open_for(kForBoth).delegation_type, v4::OPEN_DELEGATE_NONE);
  end_all();
  EXPECT_EQ(open_for(kForBoth).delegation_type, v4::OPEN_DELEGATE_WRITE);
}

TEST_F(Nfs4ChangesInProgress, do_not_delay_a_denying_OPEN_of_another_file) {
  const v4::nfs_fh4 other = handle_of("another");
  other_begins({putfh(other), written("NEW!")});
  EXPECT_EQ(open_denying(kForReading).status, v4::NFS4_OK);
}

TEST_F(Nfs4ChangesInProgress, count_every_operation_that_changes_data) {
  const v4::nfs_fh4 from = handle_of("source");
  v4::SETATTR4args size, mode;
  size.obj_attributes = {{1u << v4::FATTR4_SIZE},
                         Rope::copy_of(std::as_bytes(std::span("\0\0\0\0\0\0\0\5", 8)))};
  mode.obj_attributes = {{0, 1u << (v4::FATTR4_MODE - 32)},
                         Rope::copy_of(std::as_bytes(std::span("\0\0\1\244", 4)))};
  const std::vector<Op> both{putfh(from), op(v4::OP_SAVEFH), putfh(file_)};
  const auto onto_file = [&](Op last) {
    std::vector<Op> operations = both;
    operations.push_back(std::move(last));
    return operations;
  };
  v4::COPY4args copy;
  copy.ca_synchronous = true;
  v4::SETXATTR4args xattr;
  xattr.sxa_key = "colour";
  xattr.sxa_value = Rope::copy_of(bytes_of("red"));
  expect_seen("SETATTR of the size", {putfh(file_), op(v4::OP_SETATTR, &Op::opsetattr, size)});
  expect_seen("ALLOCATE", {putfh(file_), op(v4::OP_ALLOCATE, &Op::opallocate, {{}, 0, 10})});
  expect_seen("DEALLOCATE", {putfh(file_), op(v4::OP_DEALLOCATE, &Op::opdeallocate, {{}, 0, 10})});
  expect_seen("COPY", onto_file(op(v4::OP_COPY, &Op::opcopy, copy)));
  expect_seen("CLONE", onto_file(op(v4::OP_CLONE, &Op::opclone, v4::CLONE4args{})));
  // What a share reservation is not about (RFC 8881 9.7).
  expect_seen("SETATTR of the mode", {putfh(file_), op(v4::OP_SETATTR, &Op::opsetattr, mode)},
              v4::NFS4_OK);
  expect_seen("SETXATTR", {putfh(file_), op(v4::OP_SETXATTR, &Op::opsetxattr, xattr)}, v4::NFS4_OK);
  expect_seen("REMOVEXATTR", {putfh(file_), op(v4::OP_REMOVEXATTR, &Op::opremovexattr, {"colour"})},
              v4::NFS4_OK);
  expect_seen("LINK",
              {putfh(file_), op(v4::OP_SAVEFH), putrootfh(), lookup("data"),
               op(v4::OP_LINK, &Op::oplink, {"link"})},
              v4::NFS4_OK);
}

TEST_F(Nfs4ChangesInProgress, let_a_denying_OPEN_in_though_they_never_pause) {
  const Sent first = stranger_writes();
  ASSERT_EQ(held_->waiting.size(), 1u);
  const Sent denying = begins_to_deny();
  const Sent second = stranger_writes();
  EXPECT_FALSE(*denying);
  EXPECT_EQ(held_->waiting.size(), 1u) << "the second waits behind who is to deny it";
  end_all();
  EXPECT_EQ((*first)->status, v4::NFS4_OK);
  ASSERT_TRUE(*denying);
  EXPECT_EQ((*denying)->status, v4::NFS4_OK);
  loop_.drain();
  ASSERT_TRUE(*second);
  EXPECT_EQ((*second)->status, v4::NFS4ERR_LOCKED);
}

TEST_F(Nfs4ChangesInProgress, let_a_denying_OPEN_in_also_when_each_is_refused) {
  stranger_writes();
  const Sent denying = begins_to_deny();
  stranger_writes();
  ASSERT_EQ(held_->waiting.size(), 1u);
  held_->release(0, vfs::Status::Access);
  loop_.drain();
  ASSERT_TRUE(*denying);
  EXPECT_EQ((*denying)->status, v4::NFS4_OK);
}

TEST_F(Nfs4ChangesInProgress, have_a_denying_OPEN_answered_DELAY_after_a_second_if_they_never_end) {
  stranger_writes();
  const Sent denying = begins_to_deny();
  loop_.pass(std::chrono::milliseconds(100));
  const Sent behind = stranger_writes();
  ASSERT_EQ(held_->waiting.size(), 1u);
  holds_ = true;
  loop_.pass(std::chrono::milliseconds(900));
  holds_ = false;
  ASSERT_TRUE(*denying);
  EXPECT_EQ((*denying)->status, v4::NFS4ERR_DELAY);
  EXPECT_EQ(held_->waiting.size(), 2u) << "nobody stops it any more";
  end_all();
  ASSERT_TRUE(*behind);
  EXPECT_EQ((*behind)->status, v4::NFS4_OK);
}

// Of two who stop them, the first to be done leaves them stopped.
TEST_F(Nfs4ChangesInProgress, wait_behind_all_denying_OPENs) {
  stranger_writes();
  const Sent denying = begins_to_deny();
  loop_.pass(std::chrono::milliseconds(500));
  v4::OPEN4args args = open_args("file", kForReading, false);
  args.share_deny = kDenyWrite;
  args.owner.clientid = other_.clientid;
  const Sent also = other_begins({putrootfh(), lookup("data"), op(v4::OP_OPEN, &Op::opopen, args)});
  loop_.pass(std::chrono::milliseconds(500));
  ASSERT_TRUE(*denying);
  EXPECT_EQ((*denying)->status, v4::NFS4ERR_DELAY);
  const Sent behind = stranger_writes();
  EXPECT_EQ(held_->waiting.size(), 1u);
  end_all();
  ASSERT_TRUE(*also && *behind);
  EXPECT_EQ((*also)->status, v4::NFS4_OK);
  EXPECT_EQ((*behind)->status, v4::NFS4ERR_LOCKED);
}

TEST_F(Nfs4ChangesInProgress,
       do_not_begin_by_an_OPEN_that_empties_a_file_while_another_waits_to_deny_them) {
  stranger_writes();
  const Sent denying = begins_to_deny();
  v4::OPEN4args args = open_args("file", kForReading, true);
  args.openhow.how().createattrs() = {{1u << v4::FATTR4_SIZE},
                                      Rope::copy_of(std::array<std::byte, 8>{})};
  args.owner.clientid = other_.clientid;
  const Sent emptying =
      other_begins({putrootfh(), lookup("data"), op(v4::OP_OPEN, &Op::opopen, args)});
  EXPECT_EQ(held_->waiting.size(), 1u);
  end_all();
  ASSERT_TRUE(*denying && *emptying);
  EXPECT_EQ((*denying)->status, v4::NFS4_OK);
  EXPECT_EQ((*emptying)->status, v4::NFS4ERR_SHARE_DENIED);
}

TEST_F(Nfs4ChangesInProgress, are_done_for_what_follows_in_their_COMPOUND) {
  v4::OPEN4args denying = open_args("file", kForReading, false);
  denying.share_deny = kDenyWrite;
  denying.owner.clientid = other_.clientid;
  const Sent sent = other_begins({putfh(file_), written("NEW!"), putrootfh(), lookup("data"),
                                  op(v4::OP_OPEN, &Op::opopen, denying)});
  end_all();
  EXPECT_EQ((*sent)->status, v4::NFS4_OK);
}

TEST_F(Nfs4ChangesInProgress, end_with_their_failure) {
  other_writes("NEW!");
  ASSERT_EQ(held_->waiting.size(), 1u);
  held_->release(0, vfs::Status::Io);
  loop_.drain();
  EXPECT_EQ(open_denying(kForReading).status, v4::NFS4_OK);
}

// An OPEN for reading alone may empty the file.
TEST_F(Nfs4ChangesInProgress, count_an_OPEN_that_empties_the_file) {
  const auto emptying = [this](std::uint32_t deny) {
    v4::OPEN4args args = open_args("file", kForReading, true);
    args.openhow.how().createattrs() = {{1u << v4::FATTR4_SIZE},
                                        Rope::copy_of(std::array<std::byte, 8>{})};
    args.share_deny = deny;
    args.owner.clientid = other_.clientid;
    return std::vector<Op>{putrootfh(), lookup("data"), op(v4::OP_OPEN, &Op::opopen, args),
                           op(v4::OP_CLOSE, &Op::opclose, v4::CLOSE4args{0, {1, {}}})};
  };
  expect_seen("OPEN", emptying(0));
  const Sent denying = other_begins(emptying(kDenyWrite));
  end_all();
  EXPECT_EQ((*denying)->status, v4::NFS4_OK) << "it is not in its own way";
}

// A WRITE that waits for a delegation has changed nothing yet, and the holder may open the file
// meanwhile.
TEST_F(Nfs4ChangesInProgress, do_not_count_a_WRITE_that_waits_for_a_delegation) {
  const v4::open_delegation4 held = open_for(kForBoth);
  ASSERT_EQ(held.delegation_type, v4::OPEN_DELEGATE_WRITE);
  this->close({v4::NFS4_OK, opened_, handle_});
  const Sent sent = other_writes("NEW!");
  ASSERT_FALSE(*sent);
  v4::OPEN4args args = open_args("file", kForReading, false);
  args.share_deny = kDenyWrite;
  args.claim.claim = v4::CLAIM_DELEG_CUR_FH;
  args.claim.oc_delegate_stateid() = held.write().stateid;
  EXPECT_EQ(run({putfh(handle_), op(v4::OP_OPEN, &Op::opopen, args)}).status, v4::NFS4_OK);
  loop_.pass(std::chrono::seconds(2));
  EXPECT_EQ((*sent)->status, v4::NFS4ERR_DELAY);
}

}  // namespace
}  // namespace stag::nfs::nfs4
