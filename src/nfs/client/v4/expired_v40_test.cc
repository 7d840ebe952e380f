// A server of version 4.0 that has given the locks of one file to others, and nothing else of the
// client (RFC 7530 9.6.3.1).
#include <gtest/gtest.h>

#include <string>

#include "testing/nfs/lying_server.h"

namespace stag::nfs::client {
namespace {

using testing::Compound4Results;
using testing::LyingServer;

class ExpiringServer : public LyingServer {
 public:
  ExpiringServer() : LyingServer(0) {
    lie = [this](const v4::COMPOUND4args& args, Compound4Results& results) {
      std::string at;
      for (std::size_t i = 0; i < args.argarray.size(); ++i) {
        results.status = answer(args.argarray[i], results.resarray[i], at);
        if (results.status == v4::NFS4_OK) continue;
        return results.resarray.resize(i + 1);
      }
    };
  }
  std::string expired;          // the file
  bool client_expired = false;  // until there is another client ID
  int client_ids = 0;

 private:
  static constexpr std::byte kOfLocks{2};

  v4::nfsstat4 answer(const v4::nfs_argop4& asked, v4::nfs_resop4& result, std::string& at) {
    switch (asked.argop) {
      case v4::OP_SETCLIENTID:
        result.opsetclientid().resok4().clientid = 7;
        ++client_ids;
        client_expired = false;
        return v4::NFS4_OK;
      case v4::OP_PUTFH:
        at = text_of(asked.opputfh().object.bytes());
        return v4::NFS4_OK;
      case v4::OP_OPEN:
        if (asked.opopen().claim.claim == v4::CLAIM_PREVIOUS)
          return result.opopen().status = v4::NFS4ERR_NO_GRACE;
        at = asked.opopen().claim.file();
        result.opopen().resok4().stateid.other[0] = std::byte{1};
        return v4::NFS4_OK;
      case v4::OP_GETFH:
        result.opgetfh().resok4().object = v4::nfs_fh4(bytes_of(std::string_view(at)));
        return v4::NFS4_OK;
      case v4::OP_GETATTR:
        if (at.size() == 1)
          result.opgetattr().resok4().obj_attributes = nfs4::type_is(FileType::Regular);
        return v4::NFS4_OK;
      case v4::OP_LOCK:
        result.oplock().resok4().lock_stateid.other[0] = kOfLocks;
        return v4::NFS4_OK;
      case v4::OP_LOCKT:
        return result.oplockt().status = client_expired ? v4::NFS4ERR_EXPIRED : v4::NFS4_OK;
      case v4::OP_LOCKU:
        return result.oplocku().status = by(asked.oplocku().lock_stateid, at);
      case v4::OP_WRITE:
        result.opwrite().resok4().count = static_cast<std::uint32_t>(asked.opwrite().data.size());
        return result.opwrite().status = by(asked.opwrite().stateid, at);
      default:
        return v4::NFS4_OK;
    }
  }
  v4::nfsstat4 by(const v4::stateid4& stateid, const std::string& at) const {
    return stateid.other[0] == kOfLocks && at == expired ? v4::NFS4ERR_EXPIRED : v4::NFS4_OK;
  }
};

class Nfs40Expired : public ::testing::Test {
 protected:
  File opened(std::string name) {
    const auto made = server.run(files.create_open(files.root(), std::move(name), {},
                                                   CreateMode::Unchecked, access::kModify));
    STAG_CHECK(made.ok());
    return made->file;
  }
  File locked(std::string name) {
    const File file = opened(std::move(name));
    EXPECT_TRUE(server.run(files.lock(file, {1, 1}, {0, 10, true})).ok());
    return file;
  }
  Status write(const File& file) {
    const auto wrote = server.run(files.write(file, 0, bytes_of("text")));
    return wrote ? Status::Ok : wrote.error().status;
  }
  ExpiringServer server;
  FileSystem files = server.files();
};

TEST_F(Nfs40Expired, locks_of_one_file_leave_those_of_others_when_it_is_written) {
  const File a = locked("a");
  const File b = locked("b");
  server.expired = "a";
  EXPECT_EQ(write(a), Status::StateLost);
  EXPECT_EQ(write(b), Status::Ok);
  EXPECT_EQ(server.client_ids, 1);
}

TEST_F(Nfs40Expired, locks_of_one_file_leave_those_of_others_when_it_is_unlocked) {
  const File a = locked("a");
  const File b = locked("b");
  server.expired = "a";
  static_cast<void>(server.run(files.unlock(a, {1, 1}, {0, 0, true})));
  EXPECT_EQ(write(b), Status::Ok);
  EXPECT_EQ(write(a), Status::Ok) << "has no locks any more";
  EXPECT_EQ(server.client_ids, 1);
}

// LOCKT goes by no state: it tells of the client.
TEST_F(Nfs40Expired, client_ID_is_made_again_when_locks_are_asked_for) {
  const File a = opened("a");
  server.client_expired = true;
  EXPECT_TRUE(server.run(files.test_lock(a, {1, 2}, {0, 0, true})).ok());
  EXPECT_EQ(server.client_ids, 2);
}

}  // namespace
}  // namespace stag::nfs::client
