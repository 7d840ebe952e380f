#include "fuse/values.h"

#define FUSE_USE_VERSION 314
#include <fcntl.h>
#include <fuse_lowlevel.h>
#include <gtest/gtest.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <cerrno>
#include <set>

namespace stag::fuse {
namespace {

using nfs::client::Attributes;
using nfs::client::Error;
using nfs::client::FileType;
using nfs::client::SetTime;
using nfs::client::Status;
using nfs::client::Time;
namespace access = nfs::client::access;

int of(Status status) {
  return errno_of(Error::of_status({"try", "name"}, status));
}

TEST(FuseErrno, is_that_of_the_servers_status) {
  EXPECT_EQ(of(Status::NoEntry), ENOENT);
  EXPECT_EQ(of(Status::NotEmpty), ENOTEMPTY);
  EXPECT_EQ(of(Status::Stale), ESTALE);
  EXPECT_EQ(of(Status::QuotaExceeded), EDQUOT);
  EXPECT_EQ(of(Status::NotSupported), EOPNOTSUPP);
  EXPECT_EQ(of(Status::ServerFault), EIO);
  EXPECT_EQ(of(Status::InUse), EBUSY);
  EXPECT_EQ(of(Status::Moved), EREMOTE);
  EXPECT_EQ(of(Status::Delay), EIO) << "EAGAIN is for what does not wait";
}

TEST(FuseErrno, is_EIO_for_a_call_without_an_answer_and_EINTR_for_a_cancelled_one) {
  EXPECT_EQ(errno_of(Error::of_call({"read", ""}, rpc::CallError::transport(Reason::TimedOut))),
            EIO);
  EXPECT_EQ(errno_of(Error::of_call({"read", ""}, rpc::CallError::transport(Reason::Cancelled))),
            EINTR);
  EXPECT_EQ(errno_of(Error::of_protocol({"read", ""}, "more bytes than asked for")), EIO);
}

TEST(FuseErrno, is_that_of_Linuxs_client_for_a_user_without_a_good_ticket) {
  const auto of_reason = [](Reason reason) {
    return errno_of(Error::of_call({"read", ""}, rpc::CallError::transport(reason)));
  };
  EXPECT_EQ(of_reason(Reason::GssTicketExpired), EKEYEXPIRED);
  for (const Reason reason :
       {Reason::GssNoTicket, Reason::GssClockSkew, Reason::GssWrongRealm, Reason::GssKdcUnreachable,
        Reason::GssServerUnknown, Reason::GssNoKeytab, Reason::GssServerKeyWrong,
        Reason::GssServerRefused, Reason::GssFailed})
    EXPECT_EQ(of_reason(reason), EACCES) << info(reason).name;
  EXPECT_EQ(errno_of(Error::of_call({"read", ""},
                                    rpc::CallError::answered(oncrpc::ReplyStatus::auth_error(
                                        oncrpc::AuthStat::AUTH_TOOWEAK)))),
            EACCES);
}

TEST(FuseErrno, is_never_0_for_a_failure) {
  for (int status = 1; status <= static_cast<int>(Status::Unknown); ++status)
    EXPECT_NE(of(static_cast<Status>(status)), 0) << status;
}

TEST(FuseStat, has_what_the_attributes_say) {
  Attributes attributes;
  attributes.type = FileType::CharacterDevice;
  attributes.mode = 04751;
  attributes.links = 3;
  attributes.size = 1ull << 40;
  attributes.used = 1025;
  attributes.device = {5, 300};
  attributes.file_id = ~0ull;
  attributes.modified = {-1, 999'999'999};
  const struct stat found = stat_of(attributes, 65536, 0);
  EXPECT_EQ(found.st_mode, static_cast<mode_t>(S_IFCHR | 04751));
  EXPECT_EQ(found.st_nlink, 3u);
  EXPECT_EQ(found.st_size, 1ll << 40);
  EXPECT_EQ(found.st_blocks, 3) << "of 512 bytes, each begun one";
  EXPECT_EQ(found.st_rdev, makedev(5, 300));
  EXPECT_EQ(found.st_ino, ~0ull);
  EXPECT_EQ(found.st_mtim.tv_sec, -1);
  EXPECT_EQ(found.st_mtim.tv_nsec, 999'999'999);
  EXPECT_EQ(found.st_blksize, 65536);
}

TEST(FuseStat, gives_files_of_several_file_systems_different_numbers) {
  const auto number = [](std::uint64_t file_system, std::uint64_t file, std::uint64_t home) {
    Attributes attributes;
    attributes.file_system_id = file_system;
    attributes.file_id = file;
    return stat_of(attributes, 4096, home).st_ino;
  };
  EXPECT_EQ(number(7, 2, 7), 2u) << "as the server has it, where the mount's root is";
  std::set<std::uint64_t> numbers;
  for (std::uint64_t file_system = 0; file_system < 100; ++file_system)
    for (std::uint64_t file = 1; file <= 100; ++file) numbers.insert(number(file_system, file, 7));
  EXPECT_EQ(numbers.size(), 10'000u);
}

// readdir(3) leaves out what has no inode number.
TEST(FuseStat, has_a_number_where_the_server_tells_none) {
  EXPECT_EQ(stat_of(Attributes{}, 4096, 0).st_ino, 1u);
  EXPECT_EQ(stat_of_untold(0).st_ino, 1u);
  EXPECT_EQ(stat_of_untold(7).st_ino, 7u);
  EXPECT_EQ(stat_of_untold(7).st_mode, 0u) << "DT_UNKNOWN";
}

TEST(FuseChanges, are_those_that_are_asked_for) {
  struct stat wanted {};
  wanted.st_mode = S_IFREG | 0640;
  wanted.st_uid = 7;
  wanted.st_size = 100;
  wanted.st_mtim = {.tv_sec = 5, .tv_nsec = 6};
  const auto mode = changes_of(wanted, FUSE_SET_ATTR_MODE);
  EXPECT_EQ(mode.mode, 0640u);
  EXPECT_FALSE(mode.uid || mode.gid || mode.size);
  EXPECT_EQ(mode.modified.how, SetTime::How::Keep);
  const auto rest = changes_of(wanted, FUSE_SET_ATTR_UID | FUSE_SET_ATTR_SIZE |
                                           FUSE_SET_ATTR_MTIME | FUSE_SET_ATTR_ATIME_NOW);
  EXPECT_FALSE(rest.mode);
  EXPECT_EQ(rest.uid, 7u);
  EXPECT_EQ(rest.size, 100u);
  EXPECT_EQ(rest.modified.how, SetTime::How::To);
  EXPECT_EQ(rest.modified.time, (Time{5, 6}));
  EXPECT_EQ(rest.accessed.how, SetTime::How::Now);
}

TEST(FuseSeek, finds_in_a_file_without_holes_data_and_its_end) {
  EXPECT_EQ(sought_in_data(10, 3, SEEK_DATA), 3u);
  EXPECT_EQ(sought_in_data(10, 3, SEEK_HOLE), 10u);
  EXPECT_EQ(sought_in_data(10, 9, SEEK_DATA), 9u);
  EXPECT_EQ(sought_in_data(10, 10, SEEK_DATA), std::nullopt);
  EXPECT_EQ(sought_in_data(10, 10, SEEK_HOLE), std::nullopt);
  EXPECT_EQ(sought_in_data(0, 0, SEEK_HOLE), std::nullopt);
}

TEST(FuseList, has_its_entries_in_the_kernels_order_whatever_that_of_the_server) {
  using Entry = nfs::client::AclEntry;
  constexpr std::string_view kSorted(
      "\2\0\0\0"
      "\1\0\6\0\xff\xff\xff\xff"
      "\2\0\4\0\xdc\5\0\0"
      "\4\0\0\0\xff\xff\xff\xff"
      "\x10\0\7\0\xff\xff\xff\xff",
      4 + 4 * 8);
  EXPECT_EQ(xattr_of({{Entry::kMask, 0, 7},
                      {Entry::kGroupObject, 0, 0},
                      {Entry::kUser, 1500, 4},
                      {Entry::kUserObject, 0, 6}}),
            kSorted);
}

using ClientList = std::vector<nfs::client::AclEntry>;

TEST(FuseList, is_read_from_what_the_kernel_has) {
  using Entry = nfs::client::AclEntry;
  const ClientList list{{Entry::kUserObject, 0, 6},  {Entry::kUser, 1500, 4},
                        {Entry::kGroupObject, 0, 0}, {Entry::kGroup, 0x1234'5678, 1},
                        {Entry::kMask, 0, 7},        {Entry::kOther, 0, 0}};
  EXPECT_EQ(list_of_xattr(xattr_of(list)), list);
  EXPECT_EQ(list_of_xattr(xattr_of({})), ClientList());
}

TEST(FuseList, that_is_cut_or_has_what_no_list_has_is_none) {
  const auto is_none = [](std::string_view entry, char version = 2) {
    std::string bytes(1, version);
    bytes.append(3, '\0').append(entry);
    return !list_of_xattr(bytes);
  };
  using namespace std::string_view_literals;
  constexpr std::string_view kGood = "\2\0\7\0\1\0\0\0"sv;
  EXPECT_FALSE(is_none(kGood));
  EXPECT_TRUE(is_none(kGood, 1)) << "another version";
  for (std::size_t size = 1; size < kGood.size(); ++size)
    EXPECT_TRUE(is_none(kGood.substr(0, size))) << size;
  EXPECT_TRUE(is_none("\3\0\7\0\1\0\0\0"sv)) << "two tags";
  EXPECT_TRUE(is_none("\2\1\7\0\1\0\0\0"sv)) << "no tag";
  EXPECT_TRUE(is_none("\2\0\10\0\1\0\0\0"sv)) << "no permission";
  EXPECT_TRUE(is_none("\2\0\7\0\xff\xff\xff\xff"sv)) << "nobody's number";
  EXPECT_FALSE(list_of_xattr("")) << "no version";
  EXPECT_FALSE(list_of_xattr("\2\0\0"sv)) << "no version";
}

TEST(FuseAccess, is_what_the_flags_of_an_open_need) {
  EXPECT_EQ(access_of_open(O_RDONLY), access::kRead);
  EXPECT_EQ(access_of_open(O_WRONLY | O_APPEND), access::kModify);
  EXPECT_EQ(access_of_open(O_RDWR), access::kRead | access::kModify);
}

TEST(FuseAccess, takes_entering_a_directory_for_looking_up_in_it) {
  EXPECT_EQ(access_of_mask(X_OK, true), access::kLookup);
  EXPECT_EQ(access_of_mask(X_OK, false), access::kExecute);
  EXPECT_TRUE(grants(access::kLookup, X_OK, true));
  EXPECT_FALSE(grants(access::kLookup, X_OK, false));
  EXPECT_TRUE(grants(access::kExtend, W_OK, true));
  EXPECT_FALSE(grants(access::kModify, R_OK | W_OK, false));
}

}  // namespace
}  // namespace stag::fuse
