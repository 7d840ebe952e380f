// What clients of version 2 hear when the store fails.
#include <gtest/gtest.h>

#include <functional>
#include <string_view>
#include <vector>

#include "nfs/proto/nfs2.h"
#include "testing/nfs/faulty_store.h"
#include "testing/nfs/server_fixture.h"

namespace stag::nfs {
namespace {

using namespace v2;

class Nfs2Faults : public testing::NfsServerTest {
 protected:
  struct Procedure {
    std::string_view name;
    std::function<nfsstat()> heard;
  };

  Nfs2Faults() {
    ExportOptions open;
    open.root_squash = false;
    EXPECT_TRUE(nfs_.add_export("/faulty", faulty_, open).ok());
    const auto mounted = call<mount3::MOUNTPROC1_MNT>("/faulty");
    if (mounted.status == 0) dir_ = mounted.directory();
    const auto made = call<NFSPROC_CREATE>({{dir_, "file"}, keep()});
    EXPECT_EQ(made.status, NFS_OK);
    if (made.status == NFS_OK) file_ = made.diropok().file;
  }

  static sattr keep() {
    constexpr std::uint32_t kLeave = 0xffffffff;
    return {kLeave, kLeave, kLeave, kLeave, {kLeave, kLeave}, {kLeave, kLeave}};
  }
  sattr with_mode() const {
    sattr attributes = keep();
    attributes.mode = 0600;
    return attributes;
  }
  nfsstat written() {
    return call<NFSPROC_WRITE>({file_, 0, 0, 0, Rope::copy_of(bytes_of("12345"))}).status;
  }
  readdirres listed() { return call<NFSPROC_READDIR>({dir_, {}, 4096}); }
  std::vector<Procedure> procedures() {
    return {
        {"SETATTR",
         [&] {
           return call<NFSPROC_SETATTR>({file_, with_mode()}).status;
         }},
        {"LOOKUP",
         [&] {
           return call<NFSPROC_LOOKUP>({dir_, "x"}).status;
         }},
        {"READLINK", [&] { return call<NFSPROC_READLINK>(file_).status; }},
        {"READ",
         [&] {
           return call<NFSPROC_READ>({file_, 0, 1, 0}).status;
         }},
        {"WRITE", [&] { return written(); }},
        {"CREATE",
         [&] {
           return call<NFSPROC_CREATE>({{dir_, "x"}, keep()}).status;
         }},
        {"REMOVE",
         [&] {
           return call<NFSPROC_REMOVE>({dir_, "x"});
         }},
        {"RENAME",
         [&] {
           return call<NFSPROC_RENAME>({{dir_, "x"}, {dir_, "y"}});
         }},
        {"LINK",
         [&] {
           return call<NFSPROC_LINK>({file_, {dir_, "x"}});
         }},
        {"SYMLINK",
         [&] {
           return call<NFSPROC_SYMLINK>({{dir_, "x"}, "t", keep()});
         }},
        {"MKDIR",
         [&] {
           return call<NFSPROC_MKDIR>({{dir_, "x"}, keep()}).status;
         }},
        {"RMDIR",
         [&] {
           return call<NFSPROC_RMDIR>({dir_, "x"});
         }},
        {"READDIR", [&] { return listed().status; }},
        {"STATFS", [&] { return call<NFSPROC_STATFS>(dir_).status; }},
    };
  }

  std::shared_ptr<testing::FaultyStore> faulty_ = std::make_shared<testing::FaultyStore>(store_);
  fhandle dir_{};
  fhandle file_{};
};

// RFC 1094 2.3.1 has one word for several of them, and none for "later".
nfsstat expected_of(vfs::Status status) {
  using enum vfs::Status;
  switch (status) {
    case Perm:
    case BadType:
    case NotSupported:
      return NFSERR_PERM;
    case NoEntry:
      return NFSERR_NOENT;
    case Access:
    case Invalid:
    case NotSymlink:
      return NFSERR_ACCES;
    case Exists:
      return NFSERR_EXIST;
    case CrossDevice:
      return NFSERR_NODEV;
    case NotDirectory:
      return NFSERR_NOTDIR;
    case IsDirectory:
      return NFSERR_ISDIR;
    case FileTooBig:
      return NFSERR_FBIG;
    case NoSpace:
    case TooManyLinks:
      return NFSERR_NOSPC;
    case ReadOnly:
      return NFSERR_ROFS;
    case NameTooLong:
      return NFSERR_NAMETOOLONG;
    case NotEmpty:
      return NFSERR_NOTEMPTY;
    case QuotaExceeded:
      return NFSERR_DQUOT;
    case Stale:
    case BadHandle:
      return NFSERR_STALE;
    case Io:
    case BadCookie:
    case NotSync:
    case TooManyObjects:
    case Delay:
      return NFSERR_IO;
  }
  return NFS_OK;
}

TEST_F(Nfs2Faults, become_statuses_of_version_2) {
  for (const Procedure& procedure : procedures())
    for (int i = 0; i <= static_cast<int>(vfs::Status::Delay); ++i) {
      faulty_->fault = static_cast<vfs::Status>(i);
      EXPECT_EQ(procedure.heard(), expected_of(*faulty_->fault))
          << procedure.name << " " << to_string(*faulty_->fault);
    }
}

TEST_F(Nfs2Faults, leave_no_entries_of_a_listing_that_fails_half_way) {
  faulty_->cut_list = {2, vfs::Status::Io};
  EXPECT_EQ(listed().status, NFSERR_IO);
  faulty_->cut_list = {2, std::nullopt};
  const readdirres cut = listed();
  ASSERT_EQ(cut.status, NFS_OK);
  EXPECT_EQ(cut.readdirok().entries.size(), 2u);
  EXPECT_FALSE(cut.readdirok().eof);
}

// RFC 1094 2.2.9: all of the data is written, or it is an error.
TEST_F(Nfs2Faults, make_a_partial_WRITE_return_NOSPC) {
  faulty_->cut_write = {3, std::nullopt};
  EXPECT_EQ(written(), NFSERR_NOSPC);
  faulty_->cut_write = {3, vfs::Status::Io};
  EXPECT_EQ(written(), NFSERR_IO);
}

TEST_F(Nfs2Faults, are_reported_after_a_change_that_happened_and_the_change_stays) {
  faulty_->fault_when_happened = vfs::Status::Io;
  EXPECT_EQ(call<NFSPROC_MKDIR>({{dir_, "d"}, keep()}).status, NFSERR_IO);
  faulty_->fault_when_happened.reset();
  EXPECT_EQ(call<NFSPROC_LOOKUP>({dir_, "d"}).status, NFS_OK);
}

}  // namespace
}  // namespace stag::nfs
