// What clients hear when the store fails.
#include <gtest/gtest.h>

#include <functional>
#include <set>
#include <utility>
#include <vector>

#include "nfs/server/v3/status.h"
#include "testing/nfs/faulty_store.h"
#include "testing/nfs/server_fixture.h"

namespace stag::nfs {
namespace {

using namespace v3;

class Nfs3Faults : public testing::NfsServerTest {
 protected:
  // One Call of a procedure: the status heard, and whether attributes came with the error.
  struct Heard {
    nfsstat3 status;
    bool attributes;
  };
  struct Procedure {
    std::uint32_t number;
    std::function<Heard()> heard;
  };

  Nfs3Faults() {
    ExportOptions open;
    open.root_squash = false;
    EXPECT_TRUE(nfs_.add_export("/faulty", faulty_, open).ok());
    dir_ = mounted("/faulty");
    file_ = create(dir_, "file");
  }

  std::vector<Procedure> reading() {
    return {
        {3,
         [&] {
           return fail(call<NFSPROC3_LOOKUP>({{dir_, "x"}}), &LOOKUP3resfail::dir_attributes);
         }},
        {4,
         [&] {
           return fail(call<NFSPROC3_ACCESS>({file_, 1}), &ACCESS3resfail::obj_attributes);
         }},
        {5,
         [&] {
           return fail(call<NFSPROC3_READLINK>({file_}), &READLINK3resfail::symlink_attributes);
         }},
        {6,
         [&] {
           return fail(call<NFSPROC3_READ>({file_, 0, 1}), &READ3resfail::file_attributes);
         }},
        {16,
         [&] {
           return fail(call<NFSPROC3_READDIR>({dir_, 0, {}, 4096}),
                       &READDIR3resfail::dir_attributes);
         }},
        {17,
         [&] {
           return fail(call<NFSPROC3_READDIRPLUS>({dir_, 0, {}, 4096, 4096}),
                       &READDIRPLUS3resfail::dir_attributes);
         }},
        {18, [&] { return fail(call<NFSPROC3_FSSTAT>({dir_}), &FSSTAT3resfail::obj_attributes); }},
    };
  }
  std::vector<Procedure> changing() {
    return {
        {2,
         [&] {
           return changed(call<NFSPROC3_SETATTR>({file_, {}, {}}), &SETATTR3resfail::obj_wcc);
         }},
        {7, [&] { return changed(write(file_, 0, "x"), &WRITE3resfail::file_wcc); }},
        {8, [&] { return changed(made(), &CREATE3resfail::dir_wcc); }},
        {9,
         [&] {
           return changed(call<NFSPROC3_MKDIR>({{dir_, "x"}, {}}), &MKDIR3resfail::dir_wcc);
         }},
        {10,
         [&] {
           return changed(call<NFSPROC3_SYMLINK>({{dir_, "x"}, {{}, "t"}}),
                          &SYMLINK3resfail::dir_wcc);
         }},
        {11, [&] { return changed(node(), &MKNOD3resfail::dir_wcc); }},
        {12,
         [&] {
           return changed(call<NFSPROC3_REMOVE>({{dir_, "x"}}), &REMOVE3resfail::dir_wcc);
         }},
        {13,
         [&] {
           return changed(call<NFSPROC3_RMDIR>({{dir_, "x"}}), &RMDIR3resfail::dir_wcc);
         }},
        {14,
         [&] {
           return changed(call<NFSPROC3_RENAME>({{dir_, "x"}, {dir_, "y"}}),
                          &RENAME3resfail::todir_wcc);
         }},
        {15,
         [&] {
           return changed(call<NFSPROC3_LINK>({file_, {dir_, "x"}}), &LINK3resfail::linkdir_wcc);
         }},
        {21,
         [&] {
           return changed(call<NFSPROC3_COMMIT>({file_, 0, 0}), &COMMIT3resfail::file_wcc);
         }},
    };
  }

  template <class Res, class Fail>
  static Heard fail(const Res& res, post_op_attr Fail::*attributes) {
    if (res.status == NFS3_OK) return {NFS3_OK, false};
    return {res.status, (res.resfail().*attributes).attributes_follow};
  }
  template <class Res, class Fail>
  static Heard changed(const Res& res, wcc_data Fail::*wcc) {
    if (res.status == NFS3_OK) return {NFS3_OK, false};
    return {res.status, (res.resfail().*wcc).after.attributes_follow};
  }
  CREATE3res made() {
    CREATE3args args;
    args.where = {dir_, "x"};
    args.how.obj_attributes() = {};
    return call<NFSPROC3_CREATE>(args);
  }
  MKNOD3res node() {
    MKNOD3args args;
    args.where = {dir_, "x"};
    args.what.type = NF3FIFO;
    args.what.pipe_attributes() = {};
    return call<NFSPROC3_MKNOD>(args);
  }

  void expect_every_fault_is_heard(const std::vector<Procedure>& procedures) {
    for (const Procedure& procedure : procedures)
      for (int i = 0; i <= static_cast<int>(vfs::Status::Delay); ++i) {
        faulty_->fault = static_cast<vfs::Status>(i);
        const Heard heard = procedure.heard();
        EXPECT_EQ(heard.status, nfs3::to_nfsstat3(procedure.number, *faulty_->fault))
            << procedure.number << " " << to_string(*faulty_->fault);
        EXPECT_TRUE(heard.attributes) << procedure.number << " " << to_string(*faulty_->fault);
      }
  }

  std::shared_ptr<testing::FaultyStore> faulty_ = std::make_shared<testing::FaultyStore>(store_);
  nfs_fh3 dir_;
  nfs_fh3 file_;
};

TEST_F(Nfs3Faults, reach_readers_with_the_attributes) {
  expect_every_fault_is_heard(reading());
}

TEST_F(Nfs3Faults, reach_writers_with_the_attributes_after) {
  expect_every_fault_is_heard(changing());
}

// None of its operations ends when it is called.
TEST_F(Nfs3Faults, are_not_that_a_store_takes_its_time) {
  ASSERT_EQ(write(file_, 0, "12345").status, NFS3_OK);
  const auto attributes = call<NFSPROC3_GETATTR>({file_});
  ASSERT_EQ(attributes.status, NFS3_OK);
  EXPECT_EQ(attributes.resok().obj_attributes.size, 5u);
  const auto data = call<NFSPROC3_READ>({file_, 1, 3});
  ASSERT_EQ(data.status, NFS3_OK);
  EXPECT_EQ(text_of(data.resok().data.flatten().bytes()), "234");
  EXPECT_EQ(data.resok().file_attributes.attributes().size, 5u);
}

TEST_F(Nfs3Faults, become_the_status_of_a_MOUNT_whose_walk_fails) {
  using namespace mount3;
  const auto mounting = [this](vfs::Status status) {
    faulty_->fault = status;
    return call<MOUNTPROC3_MNT>("/faulty/x").fhs_status;
  };
  EXPECT_EQ(mounting(vfs::Status::Access), MNT3ERR_ACCES);
  EXPECT_EQ(mounting(vfs::Status::Stale), MNT3ERR_NOENT);
  EXPECT_EQ(mounting(vfs::Status::Io), MNT3ERR_IO);
}

// A listing that fails after some entries is no shorter listing: a client would take it for all.
TEST_F(Nfs3Faults, leave_no_entries_of_a_listing_that_fails_half_way) {
  for (int i = 0; i < 5; ++i) create(dir_, "f" + std::to_string(i));
  faulty_->cut_list = {3, vfs::Status::Io};
  const auto plain = call<NFSPROC3_READDIR>({dir_, 0, {}, 4096});
  EXPECT_EQ(plain.status, NFS3ERR_IO);
  EXPECT_TRUE(plain.resfail().dir_attributes.attributes_follow);
  EXPECT_EQ(call<NFSPROC3_READDIRPLUS>({dir_, 0, {}, 4096, 4096}).status, NFS3ERR_IO);
  faulty_->cut_list = {3, vfs::Status::Delay};
  EXPECT_EQ(call<NFSPROC3_READDIR>({dir_, 0, {}, 4096}).status, NFS3ERR_JUKEBOX);
}

TEST_F(Nfs3Faults, a_listing_that_the_store_cuts_short_goes_on_where_it_ended) {
  std::set<std::string> expected{".", "..", "file"};
  for (int i = 0; i < 5; ++i) {
    create(dir_, "f" + std::to_string(i));
    expected.insert("f" + std::to_string(i));
  }
  faulty_->cut_list = {3, std::nullopt};
  std::set<std::string> seen;
  READDIR3args args{dir_, 0, {}, 4096};
  for (bool eof = false; !eof;) {
    const auto res = call<NFSPROC3_READDIR>(args);
    ASSERT_EQ(res.status, NFS3_OK);
    eof = res.resok().reply.eof;
    args.cookieverf = res.resok().cookieverf;
    for (const entry3& entry : res.resok().reply.entries) {
      EXPECT_TRUE(seen.insert(entry.name).second) << entry.name;
      args.cookie = entry.cookie;
    }
    ASSERT_TRUE(eof || !res.resok().reply.entries.empty());
  }
  EXPECT_EQ(seen, expected);
}

TEST_F(Nfs3Faults, make_a_partial_WRITE_return_its_count) {
  faulty_->cut_write = {3, std::nullopt};
  const auto written = write(file_, 0, "12345");
  ASSERT_EQ(written.status, NFS3_OK);
  EXPECT_EQ(written.resok().count, 3u);
  EXPECT_EQ(written.resok().file_wcc.after.attributes().size, 3u);
}

TEST_F(Nfs3Faults, show_the_present_attributes_of_a_WRITE_that_fails_half_way) {
  for (const auto& [status, heard] :
       {std::pair(vfs::Status::Io, NFS3ERR_IO), std::pair(vfs::Status::NoSpace, NFS3ERR_NOSPC)}) {
    faulty_->cut_write = {3, status};
    const auto written = write(file_, 0, "12345");
    ASSERT_EQ(written.status, heard);
    const wcc_data& wcc = written.resfail().file_wcc;
    EXPECT_FALSE(wcc.before.attributes_follow) << "it does not belong to this change alone";
    ASSERT_TRUE(wcc.after.attributes_follow);
    EXPECT_EQ(wcc.after.attributes().size, 3u);
  }
}

// The store has done it and lost the answer: what is reported must not look as if it had not.
TEST_F(Nfs3Faults, come_with_the_attributes_of_a_change_that_happened) {
  faulty_->fault_when_happened = vfs::Status::Io;
  const auto made = call<NFSPROC3_MKDIR>({{dir_, "d"}, {}});
  ASSERT_EQ(made.status, NFS3ERR_IO);
  ASSERT_TRUE(made.resfail().dir_wcc.after.attributes_follow);
  const auto after = made.resfail().dir_wcc.after.attributes();
  CREATE3args args;
  args.where = {dir_, "once"};
  args.how.mode = EXCLUSIVE;
  args.how.verf().fill(std::byte{5});
  EXPECT_EQ(call<NFSPROC3_CREATE>(args).status, NFS3ERR_IO);
  EXPECT_EQ(call<NFSPROC3_REMOVE>({{dir_, "file"}}).status, NFS3ERR_IO);
  faulty_->fault_when_happened.reset();
  EXPECT_EQ(after.nlink, call<NFSPROC3_GETATTR>({dir_}).resok().obj_attributes.nlink);
  EXPECT_EQ(call<NFSPROC3_CREATE>(args).status, NFS3_OK) << "a repeat of the exclusive create";
  EXPECT_EQ(call<NFSPROC3_LOOKUP>({{dir_, "file"}}).status, NFS3ERR_NOENT);
}

TEST_F(Nfs3Faults, change_the_write_verifier_when_data_was_lost) {
  const auto before = write(file_, 0, "x", UNSTABLE).resok().verf;
  faulty_->lost = 1;
  EXPECT_NE(call<NFSPROC3_COMMIT>({file_, 0, 0}).resok().verf, before);
  EXPECT_NE(write(file_, 0, "x", UNSTABLE).resok().verf, before);
}

}  // namespace
}  // namespace stag::nfs
