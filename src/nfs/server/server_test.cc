// The server as a whole: export options, file system facts, and the RPC around the procedures.
#include "nfs/server/server.h"

#include <gtest/gtest.h>

#include "testing/nfs/server_fixture.h"

namespace stag::nfs {
namespace {

using namespace v3;

class NfsServerPrograms : public testing::NfsServerTest {};
class Nfs3Fsinfo : public NfsServerPrograms {};
class Nfs3Fsstat : public NfsServerPrograms {};
class Nfs3Pathconf : public NfsServerPrograms {};

class NfsServerReadOnlyExport : public testing::NfsServerTest {
 protected:
  NfsServerReadOnlyExport() : NfsServerTest(*parse_export_options("ro,no_root_squash")) {}
};

TEST_F(NfsServerReadOnlyExport, is_read_but_never_changed) {
  const nfs_fh3 writable = create(root(), "file");
  ASSERT_EQ(write(writable, 0, "data").status, NFS3_OK);
  const nfs_fh3 dir = mounted("/odd");
  const nfs_fh3 file = call<NFSPROC3_LOOKUP>({{dir, "file"}}).resok().object;
  EXPECT_EQ(text(call<NFSPROC3_READ>({file, 0, 9}).resok().data), "data");
  EXPECT_EQ(call<NFSPROC3_ACCESS>({file, 0x3f}).resok().access, ACCESS3_READ);

  const auto refused = write(file, 0, "x");
  EXPECT_EQ(refused.status, NFS3ERR_ROFS);
  EXPECT_TRUE(refused.resfail().file_wcc.after.attributes_follow);
  EXPECT_EQ(call<NFSPROC3_SETATTR>({file, mode(0), {}}).status, NFS3ERR_ROFS);
  CREATE3args made;
  made.where = {dir, "x"};
  made.how.obj_attributes() = {};
  EXPECT_EQ(call<NFSPROC3_CREATE>(made).status, NFS3ERR_ROFS);
  EXPECT_EQ(call<NFSPROC3_MKDIR>({{dir, "x"}, {}}).status, NFS3ERR_ROFS);
  EXPECT_EQ(call<NFSPROC3_SYMLINK>({{dir, "x"}, {{}, "t"}}).status, NFS3ERR_ROFS);
  MKNOD3args fifo;
  fifo.where = {dir, "x"};
  fifo.what.type = NF3FIFO;
  fifo.what.pipe_attributes() = {};
  EXPECT_EQ(call<NFSPROC3_MKNOD>(fifo).status, NFS3ERR_ROFS);
  EXPECT_EQ(call<NFSPROC3_REMOVE>({{dir, "file"}}).status, NFS3ERR_ROFS);
  EXPECT_EQ(call<NFSPROC3_RMDIR>({{dir, "file"}}).status, NFS3ERR_ROFS);
  EXPECT_EQ(call<NFSPROC3_RENAME>({{dir, "file"}, {dir, "x"}}).status, NFS3ERR_ROFS);
  EXPECT_EQ(call<NFSPROC3_LINK>({file, {dir, "x"}}).status, NFS3ERR_ROFS);
  EXPECT_EQ(text(call<NFSPROC3_READ>({writable, 0, 9}).resok().data), "data");
}

TEST_F(NfsServerPrograms, squashes_root_where_the_export_says_so) {
  create(root(), "secret", 0600);
  const nfs_fh3 odd = mounted("/odd");
  const nfs_fh3 secret = call<NFSPROC3_LOOKUP>({{odd, "secret"}}).resok().object;
  EXPECT_EQ(call<NFSPROC3_READ>({secret, 0, 1}).status, NFS3ERR_ACCES);
  const nfs_fh3 own = create(odd, "own");
  const fattr3 attributes = call<NFSPROC3_GETATTR>({own}).resok().obj_attributes;
  EXPECT_EQ(attributes.uid, 65534u);
  EXPECT_EQ(attributes.gid, 65534u);
}

TEST_F(NfsServerPrograms, treats_a_caller_without_credentials_as_anonymous) {
  create(root(), "secret", 0600);
  as_nobody_known();
  const nfs_fh3 secret = call<NFSPROC3_LOOKUP>({{root(), "secret"}}).resok().object;
  EXPECT_EQ(call<NFSPROC3_READ>({secret, 0, 1}).status, NFS3ERR_ACCES);
}

TEST_F(NfsServerPrograms, gives_no_handle_of_one_export_power_in_another) {
  const nfs_fh3 here = root();
  const nfs_fh3 there = mounted("/odd");
  EXPECT_NE(here, there);
}

TEST_F(Nfs3Fsinfo, returns_one_MiB_and_the_limits_of_the_store) {
  const auto res = call<NFSPROC3_FSINFO>({root()});
  ASSERT_EQ(res.status, NFS3_OK);
  const FSINFO3resok& info = res.resok();
  EXPECT_TRUE(info.obj_attributes.attributes_follow);
  EXPECT_EQ(info.rtmax, 1u << 20);
  EXPECT_EQ(info.wtmax, 1u << 20);
  EXPECT_EQ(info.dtpref, 128u << 10);
  EXPECT_EQ(info.maxfilesize, store_->limits().max_file_size);
  EXPECT_EQ(info.time_delta, (nfstime3{0, store_->limits().time_granularity.nanoseconds}));
  EXPECT_EQ(info.properties, FSF3_LINK | FSF3_SYMLINK | FSF3_HOMOGENEOUS | FSF3_CANSETTIME);
  EXPECT_EQ(call<NFSPROC3_FSINFO>({nfs_fh3{}}).status, NFS3ERR_BADHANDLE);
}

TEST_F(Nfs3Pathconf, returns_the_limits_of_names_and_links) {
  const auto res = call<NFSPROC3_PATHCONF>({root()});
  ASSERT_EQ(res.status, NFS3_OK);
  EXPECT_EQ(res.resok().name_max, 255u);
  EXPECT_EQ(res.resok().linkmax, store_->limits().max_links);
  EXPECT_TRUE(res.resok().no_trunc);
  EXPECT_TRUE(res.resok().case_preserving);
  EXPECT_FALSE(res.resok().case_insensitive);
}

TEST_F(Nfs3Fsstat, returns_space_and_object_counts) {
  const auto before = call<NFSPROC3_FSSTAT>({root()});
  ASSERT_EQ(before.status, NFS3_OK);
  EXPECT_TRUE(before.resok().obj_attributes.attributes_follow);
  EXPECT_GT(before.resok().tbytes, before.resok().fbytes - 1);
  EXPECT_GE(before.resok().fbytes, before.resok().abytes);
  const nfs_fh3 file = create(root(), "file");
  ASSERT_EQ(write(file, 0, std::string(1 << 16, 'x')).status, NFS3_OK);
  EXPECT_LT(call<NFSPROC3_FSSTAT>({root()}).resok().fbytes, before.resok().fbytes);
}

TEST_F(NfsServerPrograms, answers_a_repeated_Call_from_its_replay_cache) {
  const nfs_fh3 dir = root();
  mkdir(dir, "once");
  rpc::IncomingCall again;
  again.origin = std::make_shared<rpc::Origin>(channel_.origin());
  again.payload = channel_.last_call;
  const xdr::Stream first = channel_.last_reply;
  const auto reply = loop_.run(server_.serve(again));
  ASSERT_TRUE(reply.has_value() && reply->has_value());
  // Executed again it would be EXIST.
  EXPECT_EQ((**reply).stream.rope(), first.rope());
}

TEST_F(NfsServerPrograms, knows_no_procedure_and_no_program_beyond_its_own) {
  const auto status_of = [this](std::uint32_t program, std::uint32_t version,
                                std::uint32_t procedure) {
    xdr::Encoder encoder;
    oncrpc::CallHeader header;
    header.program = program;
    header.version = version;
    header.procedure = procedure;
    oncrpc::encode(encoder, header);
    rpc::IncomingCall call;
    call.origin = std::make_shared<rpc::Origin>(channel_.origin());
    call.payload = std::move(encoder).finish().rope().flatten();
    const auto reply = loop_.run(server_.serve(call));
    xdr::Decoder decoder((**reply).stream.rope().flatten());
    return oncrpc::decode_reply(decoder)->status;
  };
  using oncrpc::AcceptStat;
  EXPECT_TRUE(status_of(100003, 3, 0).success());
  EXPECT_TRUE(status_of(100005, 3, 0).success());
  EXPECT_EQ(status_of(100003, 3, 22).accept, AcceptStat::PROC_UNAVAIL);
  EXPECT_EQ(status_of(100003, 7, 0).accept, AcceptStat::PROG_MISMATCH);
  EXPECT_EQ(status_of(100227, 1, 0).accept, AcceptStat::PROG_MISMATCH);
  EXPECT_EQ(status_of(100003, 3, 1).accept, AcceptStat::GARBAGE_ARGS);
  channel_.origin().transport = rpc::TransportKind::Rdma;
  EXPECT_TRUE(status_of(100003, 3, 0).success());
  EXPECT_EQ(status_of(100005, 3, 0).accept, AcceptStat::PROG_UNAVAIL) << "MOUNT is a TCP service";
}

TEST_F(NfsServerPrograms, says_why_an_export_cannot_be) {
  const auto twice = nfs_.add_export("/data/", store_, {});
  ASSERT_FALSE(twice.ok());
  EXPECT_NE(twice.error().message.find("given twice"), std::string::npos);
  EXPECT_EQ(nfs_.exports()->all().size(), 2u);
}

}  // namespace
}  // namespace stag::nfs
