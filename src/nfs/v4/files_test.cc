// Opens, data, names and attributes over version 4.1.
#include "nfs/v4/attributes/attributes.h"
#include "testing/nfs/nfs4_fixture.h"

namespace stag::nfs::nfs4 {
namespace {

using namespace stag::testing;

class Nfs4Files : public Nfs4Served {};

TEST_F(Nfs4Files, are_made_written_read_and_closed) {
  const Opened file = create("file");
  ASSERT_EQ(file.status, v4::NFS4_OK);
  const Res written = run({putfh(file.handle), write_op(file.stateid, 0, "hello")});
  ASSERT_EQ(written.status, v4::NFS4_OK);
  EXPECT_EQ(written.resarray[1].opwrite().resok4().count, 5u);
  const Res read = run({putfh(file.handle), read_op(file.stateid, 1, 100)});
  ASSERT_EQ(read.status, v4::NFS4_OK);
  EXPECT_EQ(text(read.resarray[1].opread().resok4().data), "ello");
  EXPECT_TRUE(read.resarray[1].opread().resok4().eof);
  const Op close = op(v4::OP_CLOSE, &Op::opclose, v4::CLOSE4args{0, file.stateid});
  EXPECT_EQ(run({putfh(file.handle), close}).status, v4::NFS4_OK);
  EXPECT_EQ(run({putfh(file.handle), read_op(file.stateid, 0, 1)}).status, v4::NFS4ERR_BAD_STATEID);
}

TEST_F(Nfs4Files, are_opened_and_read_by_the_current_stateid) {
  const Opened file = create("file");
  run({putfh(file.handle), write_op(file.stateid, 0, "hello")});
  v4::stateid4 current;
  current.seqid = 1;
  const Res results =
      run({putrootfh(), lookup("data"),
           op(v4::OP_OPEN, &Op::opopen, open_args("file", v4::OPEN4_SHARE_ACCESS_READ, false)),
           read_op(current, 0, 5)});
  ASSERT_EQ(results.status, v4::NFS4_OK);
  EXPECT_EQ(text(results.resarray[3].opread().resok4().data), "hello");
}

// RFC 8881 5.8.2.35. Folders of the pseudo file system have none, and say so.
TEST_F(Nfs4Files, tell_when_they_were_made) {
  const std::uint32_t created = 1u << (v4::FATTR4_TIME_CREATE - 32);
  const v4::bitmap4 supported{1u << v4::FATTR4_SUPPORTED_ATTRS};
  const auto told = [&](const v4::nfs_fh4& handle, const v4::bitmap4& asked) {
    return run({putfh(handle), getattr(asked)}).resarray[1].opgetattr().resok4().obj_attributes;
  };
  const auto supports = [&](const v4::nfs_fh4& handle) {
    xdr::Decoder values(told(handle, supported).attr_vals.flatten());
    std::uint32_t words[3]{};
    for (std::uint32_t& word : words) EXPECT_TRUE(values.u32(word));
    return (words[2] & created) != 0;
  };
  const auto verified = [&](const v4::nfs_fh4& handle, const v4::fattr4& expected) {
    return run({putfh(handle), op(v4::OP_VERIFY, &Op::opverify, v4::VERIFY4args{expected})}).status;
  };
  const Opened file = create("file");
  const v4::fattr4 born = told(file.handle, {0, created});
  EXPECT_TRUE(supports(file.handle));
  ASSERT_EQ(born.attr_vals.size(), 12u);
  const v4::fattr4 changed = told(file.handle, {0, 1u << (v4::FATTR4_TIME_METADATA - 32)});
  EXPECT_EQ(text(born.attr_vals), text(changed.attr_vals)) << "of a file that is new";
  EXPECT_EQ(verified(file.handle, born), v4::NFS4_OK);

  const v4::nfs_fh4 folder = walk({"srv"});
  EXPECT_FALSE(supports(folder));
  EXPECT_TRUE(told(folder, {0, created}).attr_vals.empty());
  EXPECT_EQ(verified(folder, born), v4::NFS4ERR_ATTRNOTSUPP);
}

// What stat() tells is put down in another way than any other set. The two numbers of the device
// differ, and so do the times: one in the place of another would be seen.
TEST_F(Nfs4Files, tell_the_attributes_of_stat_together_as_each_alone) {
  const v4::bitmap4 all{0x0010011a, 0x0030a23a};
  EXPECT_TRUE(is_stat(AttributeSet(all)));
  const auto told = [&](const v4::nfs_fh4& handle, const v4::bitmap4& asked) {
    return run({putfh(handle), getattr(asked)}).resarray[1].opgetattr().resok4().obj_attributes;
  };
  const vfs::Credentials administrator{0, 0, {}};
  vfs::SetAttributes set;
  set.accessed = {vfs::SetTime::How::To, {1'000'000'001, 2}};
  set.modified = {vfs::SetTime::How::To, {1'000'000'003, 4}};
  int made = 0;
  for (const auto& [uid, gid] : {std::pair(0u, 4'000'000'000u), std::pair(12'345u, 10u)}) {
    set.uid = uid;
    set.gid = gid;
    const std::string name = "device " + std::to_string(++made);
    auto node = store_->mknod({loop_, administrator}, store_->root(), name,
                              {vfs::FileType::BlockDevice, {5, 6}}, set);
    ASSERT_TRUE(node.ready() && node.value().ok());
    const v4::nfs_fh4 device = walk({"data", name.c_str()});
    const v4::fattr4 together = told(device, all);
    EXPECT_EQ(together.attrmask, all);
    std::string each;
    for (std::uint32_t number = 0; number < 64; ++number)
      if ((all[number / 32] >> number % 32 & 1) != 0)
        each += text(told(device, number < 32 ? v4::bitmap4{1u << number}
                                              : v4::bitmap4{0, 1u << (number - 32)})
                         .attr_vals);
    EXPECT_EQ(text(together.attr_vals), each);
  }
}

// RFC 8881 8.2.3: its seqid is taken for zero, but by CLOSE and OPEN_DOWNGRADE.
TEST_F(Nfs4Files, are_read_by_a_current_stateid_that_an_upgrade_has_made_old_and_not_closed_by_it) {
  const Opened file = create("file");
  run({putfh(file.handle), write_op(file.stateid, 0, "hello")});
  v4::stateid4 current;
  current.seqid = 1;
  v4::OPEN4args by_handle = open_args({}, v4::OPEN4_SHARE_ACCESS_READ, false);
  by_handle.claim.claim = v4::CLAIM_FH;
  const Op again = op(v4::OP_OPEN, &Op::opopen, by_handle);
  const auto after_an_upgrade = [&](Op last) {
    return run({putfh(file.handle), again, op(v4::OP_SAVEFH), putfh(file.handle), again,
                op(v4::OP_RESTOREFH), std::move(last)});
  };
  const Res read = after_an_upgrade(read_op(current, 0, 5));
  ASSERT_EQ(read.status, v4::NFS4_OK);
  EXPECT_EQ(text(read.resarray.back().opread().resok4().data), "hello");
  EXPECT_EQ(after_an_upgrade(op(v4::OP_OPEN_DOWNGRADE, &Op::opopen_downgrade,
                                {current, 0, v4::OPEN4_SHARE_ACCESS_READ, 0}))
                .status,
            v4::NFS4ERR_OLD_STATEID);
  const Op close = op(v4::OP_CLOSE, &Op::opclose, {0, current});
  EXPECT_EQ(after_an_upgrade(close).status, v4::NFS4ERR_OLD_STATEID);
  const Res closed = run({putfh(file.handle), again, close, read_op(current, 0, 5)});
  EXPECT_EQ(closed.resarray.size(), 4u) << "and it was closed";
  EXPECT_EQ(closed.status, v4::NFS4ERR_BAD_STATEID) << "where READ would be anonymous with seqid 0";
}

// RFC 8881 8.2.3, 18.38.3.
TEST_F(Nfs4Files, have_a_current_stateid_that_FREE_STATEID_means_too) {
  v4::stateid4 current;
  current.seqid = 1;
  const Op free = op(v4::OP_FREE_STATEID, &Op::opfree_stateid, v4::FREE_STATEID4args{current});
  const auto opened =
      op(v4::OP_OPEN, &Op::opopen, open_args("file", v4::OPEN4_SHARE_ACCESS_READ, true));
  EXPECT_EQ(run({putrootfh(), lookup("data"), opened, free}).status, v4::NFS4ERR_LOCKS_HELD);
  EXPECT_EQ(run({putrootfh(), free}).status, v4::NFS4ERR_BAD_STATEID);
}

TEST_F(Nfs4Files, opened_for_reading_are_not_written) {
  create("file");
  const Opened file = open(open_args("file", v4::OPEN4_SHARE_ACCESS_READ, false, "a reader"));
  ASSERT_EQ(file.status, v4::NFS4_OK);
  EXPECT_EQ(run({putfh(file.handle), write_op(file.stateid, 0, "x")}).status, v4::NFS4ERR_OPENMODE);
}

TEST_F(Nfs4Files, denied_by_a_share_are_not_opened) {
  v4::OPEN4args args = open_args("file", v4::OPEN4_SHARE_ACCESS_READ, true, "one");
  args.share_deny = v4::OPEN4_SHARE_DENY_WRITE;
  ASSERT_EQ(open(args).status, v4::NFS4_OK);
  EXPECT_EQ(open(open_args("file", v4::OPEN4_SHARE_ACCESS_WRITE, false, "two")).status,
            v4::NFS4ERR_SHARE_DENIED);
}

TEST_F(Nfs4Files, denied_by_a_client_that_fell_silent_are_opened_after_its_lease) {
  v4::OPEN4args args = open_args("file", v4::OPEN4_SHARE_ACCESS_READ, true, "one");
  args.share_deny = v4::OPEN4_SHARE_DENY_WRITE;
  ASSERT_EQ(open(args).status, v4::NFS4_OK);
  set_up_session("another client");
  const auto attempt = [&] {
    return open(open_args("file", v4::OPEN4_SHARE_ACCESS_WRITE, false, "two")).status;
  };
  EXPECT_EQ(attempt(), v4::NFS4ERR_SHARE_DENIED);
  // The other one renews its lease meanwhile.
  loop_.pass(std::chrono::seconds(60));
  EXPECT_EQ(attempt(), v4::NFS4ERR_SHARE_DENIED);
  loop_.pass(std::chrono::seconds(60));
  EXPECT_EQ(attempt(), v4::NFS4_OK);
}

TEST_F(Nfs4Files, OPEN_of_a_directory_is_ISDIR) {
  v4::CREATE4args args;
  args.objtype.type = v4::NF4DIR;
  args.objname = "dir";
  ASSERT_EQ(run({putrootfh(), lookup("data"), op(v4::OP_CREATE, &Op::opcreate, args)}).status,
            v4::NFS4_OK);
  EXPECT_EQ(open(open_args("dir", v4::OPEN4_SHARE_ACCESS_READ, false)).status, v4::NFS4ERR_ISDIR);
}

TEST_F(Nfs4Files, are_opened_by_other_users_as_the_mode_permits) {
  create("file");
  as(1000, 1000);
  set_up_session("another client");
  EXPECT_EQ(open(open_args("file", v4::OPEN4_SHARE_ACCESS_WRITE, false, "x")).status,
            v4::NFS4ERR_ACCESS);
}

TEST_F(Nfs4Files, give_the_attributes_asked_for_in_rising_order) {
  const Opened file = create("file");
  run({putfh(file.handle), write_op(file.stateid, 0, "hello")});
  const Res results =
      run({putfh(file.handle), getattr({1u << v4::FATTR4_SIZE | 1u << v4::FATTR4_TYPE})});
  ASSERT_EQ(results.status, v4::NFS4_OK);
  const v4::fattr4& found = results.resarray[1].opgetattr().resok4().obj_attributes;
  EXPECT_EQ(found.attrmask, (v4::bitmap4{1u << v4::FATTR4_SIZE | 1u << v4::FATTR4_TYPE}));
  xdr::Decoder values(found.attr_vals.flatten());
  std::uint32_t type = 0;
  std::uint64_t size = 0;
  EXPECT_TRUE(values.u32(type) && values.u64(size) && values.finish());
  EXPECT_EQ(type, v4::NF4REG);
  EXPECT_EQ(size, 5u);
}

TEST_F(Nfs4Files, are_truncated_by_an_open_that_creates_them_again) {
  const Opened file = create("file");
  run({putfh(file.handle), write_op(file.stateid, 0, "hello")});
  v4::OPEN4args args = open_args("file", v4::OPEN4_SHARE_ACCESS_BOTH, true, "another owner");
  v4::fattr4& attributes = args.openhow.how().createattrs();
  attributes.attrmask = {1u << v4::FATTR4_SIZE};
  attributes.attr_vals = Rope::copy_of(std::array<std::byte, 8>{});
  ASSERT_EQ(open(args).status, v4::NFS4_OK);
  const Res read = run({putfh(file.handle), read_op(file.stateid, 0, 10)});
  ASSERT_EQ(read.status, v4::NFS4_OK);
  EXPECT_EQ(text(read.resarray[1].opread().resok4().data), "");
}

// RFC 8881 18.16.3: of the attributes of an UNCHECKED4 create nothing but a size of 0 is used then.
TEST_F(Nfs4Files, keep_their_size_when_they_are_created_again_with_another) {
  const Opened file = create("file");
  run({putfh(file.handle), write_op(file.stateid, 0, "hello")});
  v4::OPEN4args args = open_args("file", v4::OPEN4_SHARE_ACCESS_BOTH, true, "another owner");
  v4::fattr4& attributes = args.openhow.how().createattrs();
  attributes.attrmask = {1u << v4::FATTR4_SIZE};
  attributes.attr_vals =
      Rope::copy_of(std::array{std::byte(0), std::byte(0), std::byte(0), std::byte(0), std::byte(0),
                               std::byte(0), std::byte(0), std::byte(2)});
  ASSERT_EQ(open(args).status, v4::NFS4_OK);
  const Res read = run({putfh(file.handle), read_op(file.stateid, 0, 10)});
  ASSERT_EQ(read.status, v4::NFS4_OK);
  EXPECT_EQ(text(read.resarray[1].opread().resok4().data), "hello");
}

// RFC 8881 18.16.3: who has made it sets anew what the verifier was kept in.
TEST_F(Nfs4Files, EXCLUSIVE4_1_returns_the_attributes_that_hold_the_verifier) {
  const auto made = [this](const std::string& name, v4::createmode4 mode, v4::bitmap4 asked) {
    v4::OPEN4args args = open_args(name, v4::OPEN4_SHARE_ACCESS_BOTH, true);
    v4::createhow4& how = args.openhow.how();
    how.mode = mode;
    if (mode == v4::EXCLUSIVE4) {
      how.createverf() = {};
    } else {
      v4::fattr4& attributes = how.ch_createboth().cva_attrs;
      if (!asked.empty()) attributes.attr_vals = Rope::copy_of(std::array<std::byte, 8>{});
      attributes.attrmask = std::move(asked);
    }
    return run({putrootfh(), lookup("data"), op(v4::OP_OPEN, &Op::opopen, std::move(args))});
  };
  constexpr std::uint32_t kTimes =
      1u << (v4::FATTR4_TIME_ACCESS - 32) | 1u << (v4::FATTR4_TIME_MODIFY - 32);
  const Res plain = made("plain", v4::EXCLUSIVE4, {});
  ASSERT_EQ(plain.status, v4::NFS4_OK);
  EXPECT_EQ(plain.resarray[2].opopen().resok4().attrset, (v4::bitmap4{0, kTimes}));
  const Res both = made("both", v4::EXCLUSIVE4_1, {});
  ASSERT_EQ(both.status, v4::NFS4_OK);
  EXPECT_EQ(both.resarray[2].opopen().resok4().attrset, (v4::bitmap4{0, kTimes}));
  EXPECT_EQ(made("sized", v4::EXCLUSIVE4_1, {1u << v4::FATTR4_SIZE}).status, v4::NFS4ERR_INVAL);
}

TEST_F(Nfs4Files, locked_by_one_owner_are_denied_to_another) {
  const Opened one = create("file");
  const Opened two = open(open_args("file", v4::OPEN4_SHARE_ACCESS_BOTH, false, "two"));
  const auto lock = [&](const Opened& by, const std::string& owner) {
    v4::LOCK4args args;
    args.locktype = v4::WRITE_LT;
    args.length = 10;
    args.locker.new_lock_owner = true;
    args.locker.open_owner() = {0, by.stateid, 0, {clientid_, Rope::copy_of(bytes_of(owner))}};
    return run({putfh(by.handle), op(v4::OP_LOCK, &Op::oplock, args)});
  };
  EXPECT_EQ(lock(one, "one").status, v4::NFS4_OK);
  const Res denied = lock(two, "two");
  ASSERT_EQ(denied.status, v4::NFS4ERR_DENIED);
  EXPECT_EQ(denied.resarray[1].oplock().denied().length, 10u);
}

// RFC 8881 18.3, 18.10.3, 18.11.3.
TEST_F(Nfs4Files, alone_have_byte_ranges_and_data_to_commit) {
  const auto made = [&](v4::nfs_ftype4 type, const std::string& name) {
    v4::CREATE4args args;
    args.objtype.type = type;
    if (type == v4::NF4LNK) args.objtype.linkdata() = Rope::copy_of(bytes_of("target"));
    args.objname = name;
    const Res results = run(
        {putrootfh(), lookup("data"), op(v4::OP_CREATE, &Op::opcreate, std::move(args)), getfh()});
    EXPECT_EQ(results.status, v4::NFS4_OK);
    return results.resarray.back().opgetfh().resok4().object;
  };
  const auto tested = [&](const v4::nfs_fh4& handle) {
    v4::LOCKT4args args;
    args.locktype = v4::READ_LT;
    args.length = 10;
    args.owner.clientid = clientid_;
    return run({putfh(handle), op(v4::OP_LOCKT, &Op::oplockt, args)}).status;
  };
  const Opened file = create("file");
  const auto locked = [&](const v4::nfs_fh4& handle) {
    v4::LOCK4args args;
    args.locktype = v4::READ_LT;
    args.length = 10;
    args.locker.new_lock_owner = true;
    args.locker.open_owner() = {0, file.stateid, 0, {clientid_, Rope::copy_of(bytes_of("o"))}};
    return run({putfh(handle), op(v4::OP_LOCK, &Op::oplock, args)}).status;
  };
  const auto committed = [&](const v4::nfs_fh4& handle) {
    return run({putfh(handle), op(v4::OP_COMMIT, &Op::opcommit, v4::COMMIT4args{})}).status;
  };
  const v4::nfs_fh4 folder = made(v4::NF4DIR, "folder"), link = made(v4::NF4LNK, "link"),
                    fifo = made(v4::NF4FIFO, "fifo");
  EXPECT_EQ(tested(folder), v4::NFS4ERR_ISDIR);
  EXPECT_EQ(tested(link), v4::NFS4ERR_SYMLINK);
  EXPECT_EQ(tested(fifo), v4::NFS4ERR_WRONG_TYPE);
  EXPECT_EQ(tested(file.handle), v4::NFS4_OK);
  EXPECT_EQ(locked(folder), v4::NFS4ERR_ISDIR);
  EXPECT_EQ(locked(link), v4::NFS4ERR_SYMLINK);
  EXPECT_EQ(locked(fifo), v4::NFS4ERR_WRONG_TYPE);
  EXPECT_EQ(locked(create("another file").handle), v4::NFS4ERR_BAD_STATEID);
  EXPECT_EQ(locked(file.handle), v4::NFS4_OK);
  EXPECT_EQ(committed(folder), v4::NFS4ERR_ISDIR);
  EXPECT_EQ(committed(link), v4::NFS4ERR_SYMLINK);
  EXPECT_EQ(committed(fifo), v4::NFS4ERR_WRONG_TYPE);
}

TEST_F(Nfs4Files, are_renamed_linked_and_removed) {
  create("a");
  const Op data = lookup("data");
  const Op save = op(v4::OP_SAVEFH);
  EXPECT_EQ(
      run({putrootfh(), data, save, op(v4::OP_RENAME, &Op::oprename, v4::RENAME4args{"a", "b"})})
          .status,
      v4::NFS4_OK);
  EXPECT_EQ(run({putrootfh(), data, lookup("b"), save, putrootfh(), data,
                 op(v4::OP_LINK, &Op::oplink, v4::LINK4args{"c"})})
                .status,
            v4::NFS4_OK);
  for (const char* name : {"b", "c"})
    EXPECT_EQ(
        run({putrootfh(), data, op(v4::OP_REMOVE, &Op::opremove, v4::REMOVE4args{name})}).status,
        v4::NFS4_OK);
  EXPECT_EQ(run({putrootfh(), data, lookup("c")}).status, v4::NFS4ERR_NOENT);
}

TEST_F(Nfs4Files, are_not_made_on_a_read_only_export) {
  EXPECT_EQ(run({putfh(walk({"srv", "fixed"})),
                 op(v4::OP_OPEN, &Op::opopen, open_args("x", v4::OPEN4_SHARE_ACCESS_BOTH, true))})
                .status,
            v4::NFS4ERR_ROFS);
}

TEST_F(Nfs4Files, listed_in_pages_are_each_listed_once) {
  for (int i = 0; i < 20; ++i) create("file" + std::to_string(i));
  std::vector<std::string> names;
  v4::READDIR4args args;
  args.dircount = args.maxcount = 200;
  args.attr_request = {1u << v4::FATTR4_FILEID};
  while (true) {
    const Res results =
        run({putrootfh(), lookup("data"), op(v4::OP_READDIR, &Op::opreaddir, args)});
    ASSERT_EQ(results.status, v4::NFS4_OK);
    const v4::READDIR4resok& page = results.resarray[2].opreaddir().resok4();
    for (const v4::entry4& entry : page.reply.entries) names.push_back(entry.name);
    args.cookieverf = page.cookieverf;
    if (page.reply.eof) break;
    ASSERT_FALSE(page.reply.entries.empty());
    args.cookie = page.reply.entries.back().cookie;
  }
  std::sort(names.begin(), names.end());
  EXPECT_EQ(names.size(), 20u);
  EXPECT_EQ(std::adjacent_find(names.begin(), names.end()), names.end());
}

// Linux's client sends this, and takes the error for the end of what it had open.
TEST_F(Nfs4Files, are_closed_by_a_COMPOUND_that_finds_them_gone_before_its_CLOSE) {
  const Opened file = create("file");
  ASSERT_EQ(
      run({putrootfh(), lookup("data"), op(v4::OP_REMOVE, &Op::opremove, v4::REMOVE4args{"file"})})
          .status,
      v4::NFS4_OK);
  const Op close_it = op(v4::OP_CLOSE, &Op::opclose, v4::CLOSE4args{0, file.stateid});
  const Res results = run({putfh(file.handle), getattr({1u << v4::FATTR4_SIZE}), close_it});
  EXPECT_EQ(results.status, v4::NFS4ERR_STALE);
  EXPECT_EQ(results.resarray.size(), 2u);
  EXPECT_EQ(run({putfh(file.handle), close_it}).status, v4::NFS4ERR_BAD_STATEID);
}

}  // namespace
}  // namespace stag::nfs::nfs4
