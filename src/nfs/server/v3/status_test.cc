#include "nfs/server/v3/status.h"

#include <gtest/gtest.h>

#include <string>

namespace stag::nfs::nfs3 {
namespace {

using enum v3::nfsstat3;

constexpr std::uint32_t kGetattr = 1, kSetattr = 2, kLookup = 3, kReadlink = 5, kRead = 6,
                        kWrite = 7, kCreate = 8, kMkdir = 9, kMknod = 11, kRemove = 12, kRmdir = 13,
                        kRename = 14, kLink = 15, kReaddir = 16, kFsinfo = 19, kCommit = 21;

TEST(Nfs3Status, is_always_one_that_the_procedure_may_return) {
  for (std::uint32_t procedure = 1; procedure <= 21; ++procedure)
    for (int i = 0; i <= static_cast<int>(vfs::Status::Delay); ++i) {
      const auto status = to_nfsstat3(procedure, static_cast<vfs::Status>(i));
      EXPECT_TRUE(may_return(procedure, status)) << procedure << " " << i;
      EXPECT_NE(status, NFS3_OK);
    }
}

TEST(Nfs3Status, is_that_of_the_store_where_the_procedure_may_return_it) {
  EXPECT_EQ(to_nfsstat3(kLookup, vfs::Status::NoEntry), NFS3ERR_NOENT);
  EXPECT_EQ(to_nfsstat3(kLookup, vfs::Status::NotDirectory), NFS3ERR_NOTDIR);
  EXPECT_EQ(to_nfsstat3(kLookup, vfs::Status::NameTooLong), NFS3ERR_NAMETOOLONG);
  EXPECT_EQ(to_nfsstat3(kSetattr, vfs::Status::Perm), NFS3ERR_PERM);
  EXPECT_EQ(to_nfsstat3(kSetattr, vfs::Status::NotSync), NFS3ERR_NOT_SYNC);
  EXPECT_EQ(to_nfsstat3(kSetattr, vfs::Status::NotSupported), NFS3ERR_NOTSUPP);
  EXPECT_EQ(to_nfsstat3(kMknod, vfs::Status::NotSupported), NFS3ERR_NOTSUPP);
  EXPECT_EQ(to_nfsstat3(kWrite, vfs::Status::FileTooBig), NFS3ERR_FBIG);
  EXPECT_EQ(to_nfsstat3(kWrite, vfs::Status::NoSpace), NFS3ERR_NOSPC);
  EXPECT_EQ(to_nfsstat3(kWrite, vfs::Status::QuotaExceeded), NFS3ERR_DQUOT);
  EXPECT_EQ(to_nfsstat3(kCommit, vfs::Status::NoSpace), NFS3ERR_NOSPC);
  EXPECT_EQ(to_nfsstat3(kCommit, vfs::Status::QuotaExceeded), NFS3ERR_DQUOT);
  EXPECT_EQ(to_nfsstat3(kCreate, vfs::Status::ReadOnly), NFS3ERR_ROFS);
  EXPECT_EQ(to_nfsstat3(kRename, vfs::Status::CrossDevice), NFS3ERR_XDEV);
  EXPECT_EQ(to_nfsstat3(kRename, vfs::Status::IsDirectory), NFS3ERR_ISDIR);
  EXPECT_EQ(to_nfsstat3(kRmdir, vfs::Status::NotEmpty), NFS3ERR_NOTEMPTY);
  EXPECT_EQ(to_nfsstat3(kLink, vfs::Status::TooManyLinks), NFS3ERR_MLINK);
  EXPECT_EQ(to_nfsstat3(kReaddir, vfs::Status::BadCookie), NFS3ERR_BAD_COOKIE);
  EXPECT_EQ(to_nfsstat3(kMknod, vfs::Status::BadType), NFS3ERR_BADTYPE);
  EXPECT_EQ(to_nfsstat3(kRead, vfs::Status::Delay), NFS3ERR_JUKEBOX);
  EXPECT_EQ(to_nfsstat3(kRead, vfs::Status::TooManyObjects), NFS3ERR_JUKEBOX);
}

TEST(Nfs3Status, says_that_an_entry_is_protected_as_the_system_does) {
  for (const std::uint32_t procedure : {kRemove, kRmdir, kRename})
    EXPECT_EQ(to_nfsstat3(procedure, vfs::Status::Perm), NFS3ERR_PERM) << procedure;
}

TEST(Nfs3Status, is_INVAL_where_RFC_1813_says_so) {
  EXPECT_EQ(to_nfsstat3(kRead, vfs::Status::IsDirectory), NFS3ERR_INVAL);
  EXPECT_EQ(to_nfsstat3(kWrite, vfs::Status::IsDirectory), NFS3ERR_INVAL);
  EXPECT_EQ(to_nfsstat3(kReadlink, vfs::Status::NotSymlink), NFS3ERR_INVAL);
}

TEST(Nfs3Status, asks_a_client_whose_name_is_not_known_yet_to_come_back) {
  EXPECT_EQ(to_nfsstat3(Refusal::Undecided), NFS3ERR_JUKEBOX);
  for (std::uint32_t procedure = 1; procedure <= 21; ++procedure)
    EXPECT_TRUE(may_return(procedure, NFS3ERR_JUKEBOX)) << procedure;
  EXPECT_EQ(to_nfsstat3(Refusal::NotAdmitted), NFS3ERR_ACCES);
}

TEST(Nfs3Status, becomes_the_nearest_that_the_procedure_may_return) {
  EXPECT_EQ(to_nfsstat3(kRemove, vfs::Status::IsDirectory), NFS3ERR_ACCES);
  EXPECT_EQ(to_nfsstat3(kCommit, vfs::Status::IsDirectory), NFS3ERR_IO);
  EXPECT_EQ(to_nfsstat3(kGetattr, vfs::Status::Access), NFS3ERR_STALE);
  EXPECT_EQ(to_nfsstat3(kFsinfo, vfs::Status::Io), NFS3ERR_SERVERFAULT);
  EXPECT_EQ(to_nfsstat3(kMkdir, vfs::Status::TooManyLinks), NFS3ERR_MLINK);
  EXPECT_EQ(to_nfsstat3(kCreate, vfs::Status::Perm), NFS3ERR_ACCES);
  EXPECT_EQ(permitted(kRead, NFS3ERR_NODEV), NFS3ERR_NXIO);
}

}  // namespace
}  // namespace stag::nfs::nfs3
