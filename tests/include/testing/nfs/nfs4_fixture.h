// An NFSv4.1 server on a memory store with one client that has a session, called in-process through
// whole RPC messages.
#pragma once

#include <gtest/gtest.h>

#include <initializer_list>
#include <memory>
#include <string>
#include <vector>

#include "nfs/export/export_table.h"
#include "nfs/export/server_context.h"
#include "nfs/proto/nfs4.h"
#include "nfs/ulb/nfs4.h"
#include "nfs/v4/nfs4_server.h"
#include "rpc/client.h"
#include "rpc/server.h"
#include "testing/loopback_channel.h"
#include "testing/manual_loop.h"
#include "testing/proves.h"
#include "vfs/memory/memory.h"

namespace stag::testing {

using Op = nfs::v4::nfs_argop4;

inline Op op(nfs::v4::nfs_opnum4 number) {
  Op made;
  made.argop = number;
  return made;
}
// The arguments of an operation: with<&Op::opputfh>(OP_PUTFH, {handle}).
template <class Args>
Op op(nfs::v4::nfs_opnum4 number, Args& (Op::*arguments)(), Args value) {
  Op made = op(number);
  (made.*arguments)() = std::move(value);
  return made;
}
inline Op putrootfh() {
  return op(nfs::v4::OP_PUTROOTFH);
}
inline Op getfh() {
  return op(nfs::v4::OP_GETFH);
}
inline Op lookup(std::string name) {
  return op(nfs::v4::OP_LOOKUP, &Op::oplookup, {std::move(name)});
}
inline Op putfh(const nfs::v4::nfs_fh4& handle) {
  return op(nfs::v4::OP_PUTFH, &Op::opputfh, {handle});
}
inline Op getattr(nfs::v4::bitmap4 asked) {
  return op(nfs::v4::OP_GETATTR, &Op::opgetattr, {std::move(asked)});
}

class Nfs4Served : public ::testing::Test {
 protected:
  using Res = nfs::v4::COMPOUND4res;

  // Serves a store as /data (every user as is) and another one, read-only, as /srv/fixed.
  explicit Nfs4Served(nfs::nfs4::Nfs4Options options = {},
                      std::shared_ptr<vfs::MemoryFileSystem> store = nullptr)
      : store_(store != nullptr ? std::move(store) : std::make_shared<vfs::MemoryFileSystem>()),
        nfs4_(context_, std::move(options)) {
    nfs::ExportOptions open;
    open.root_squash = false;
    nfs::ExportOptions fixed = open;
    fixed.read_only = true;
    nfs::Exports exports;
    STAG_CHECK(exports.add(1, {"/data", store_, open}).ok());
    STAG_CHECK(exports.add(2, {"/srv/fixed", fixed_store_, fixed}).ok());
    context_.exports.replace(std::move(exports));
    nfs4_.add_program(server_);
    as(0, 0);
  }
  void SetUp() override { set_up_session(); }

  void as(std::uint32_t uid, std::uint32_t gid) {
    credentials_ = rpc::Credentials::sys("tests", uid, gid, {});
  }

  // As it is, without a SEQUENCE.
  Res compound(std::vector<Op> operations) { return compound(std::move(operations), minor_); }
  Res compound(std::vector<Op> operations, std::uint32_t minor) {
    rpc::Client client(*via_, nfs::ulb::nfs4(), credentials_);
    nfs::v4::COMPOUND4args args{"tag", minor, std::move(operations)};
    auto result = loop_.run(client.call<nfs::v4::NFSPROC4_COMPOUND>(args));
    STAG_CHECK(result.has_value());
    if (!*result) {
      ADD_FAILURE() << result->error().message();
      return {};
    }
    return **result;
  }

  Op sequence(bool cachethis = false) {
    nfs::v4::SEQUENCE4args args;
    args.sa_sessionid = session_;
    args.sa_sequenceid = ++sequenceid_;
    args.sa_cachethis = cachethis;
    return op(nfs::v4::OP_SEQUENCE, &Op::opsequence, args);
  }
  // In the session, behind a SEQUENCE; the results without that.
  Res run(std::vector<Op> operations) {
    operations.insert(operations.begin(), sequence());
    Res results = compound(std::move(operations));
    EXPECT_FALSE(results.resarray.empty());
    if (!results.resarray.empty()) results.resarray.erase(results.resarray.begin());
    return results;
  }

  nfs::v4::EXCHANGE_ID4resok exchange_id(const std::string& owner, std::uint8_t verifier = 1) {
    nfs::v4::EXCHANGE_ID4args args;
    args.eia_clientowner.co_ownerid = Rope::copy_of(bytes_of(owner));
    args.eia_clientowner.co_verifier.fill(std::byte{verifier});
    const Res results =
        compound({op(nfs::v4::OP_EXCHANGE_ID, &Op::opexchange_id, std::move(args))});
    EXPECT_EQ(results.status, nfs::v4::NFS4_OK);
    if (results.status != nfs::v4::NFS4_OK) return {};
    return results.resarray[0].opexchange_id().eir_resok4();
  }
  nfs::v4::CREATE_SESSION4args session_args(nfs::v4::clientid4 clientid,
                                            nfs::v4::sequenceid4 sequence) {
    nfs::v4::CREATE_SESSION4args args;
    args.csa_clientid = clientid;
    args.csa_sequence = sequence;
    args.csa_fore_chan_attrs = {0, 1 << 20, 1 << 20, 4096, 16, 16, {}};
    args.csa_back_chan_attrs = {0, 4096, 4096, 0, 2, 1, {}};
    return args;
  }
  void set_up_session(const std::string& owner = "a client", bool complete = true) {
    const auto client = exchange_id(owner);
    clientid_ = client.eir_clientid;
    const Res made = compound({op(nfs::v4::OP_CREATE_SESSION, &Op::opcreate_session,
                                  session_args(clientid_, client.eir_sequenceid))});
    ASSERT_EQ(made.status, nfs::v4::NFS4_OK);
    session_ = made.resarray[0].opcreate_session().csr_resok4().csr_sessionid;
    sequenceid_ = 0;
    if (complete) {
      ASSERT_EQ(reclaim_complete(), nfs::v4::NFS4_OK);
    }
  }
  nfs::v4::nfsstat4 reclaim_complete() {
    const Op complete =
        op(nfs::v4::OP_RECLAIM_COMPLETE, &Op::opreclaim_complete, nfs::v4::RECLAIM_COMPLETE4args{});
    return run({complete}).status;
  }

  nfs::v4::nfsstat4 destroy_session() {
    return compound({op(nfs::v4::OP_DESTROY_SESSION, &Op::opdestroy_session,
                        nfs::v4::DESTROY_SESSION4args{session_})})
        .status;
  }
  nfs::v4::nfsstat4 destroy_clientid() {
    return compound({op(nfs::v4::OP_DESTROY_CLIENTID, &Op::opdestroy_clientid,
                        nfs::v4::DESTROY_CLIENTID4args{clientid_})})
        .status;
  }

  // The filehandle where a walk from the root ends.
  nfs::v4::nfs_fh4 walk(std::initializer_list<const char*> names) {
    std::vector<Op> operations{putrootfh()};
    for (const char* name : names) operations.push_back(lookup(name));
    operations.push_back(getfh());
    const Res results = run(std::move(operations));
    EXPECT_EQ(results.status, nfs::v4::NFS4_OK);
    if (results.status != nfs::v4::NFS4_OK) return {};
    return results.resarray.back().opgetfh().resok4().object;
  }

  struct Opened {
    nfs::v4::nfsstat4 status = nfs::v4::NFS4_OK;
    nfs::v4::stateid4 stateid;
    nfs::v4::nfs_fh4 handle;
  };
  nfs::v4::OPEN4args open_args(const std::string& name, std::uint32_t access, bool create,
                               const std::string& owner = "an owner") {
    nfs::v4::OPEN4args args;
    args.share_access = access;
    args.owner = {clientid_, Rope::copy_of(bytes_of(owner))};
    if (create) {
      args.openhow.opentype = nfs::v4::OPEN4_CREATE;
      args.openhow.how().mode = nfs::v4::UNCHECKED4;
      args.openhow.how().createattrs() = {};
    }
    args.claim.claim = nfs::v4::CLAIM_NULL;
    args.claim.file() = name;
    return args;
  }
  Opened open(nfs::v4::OPEN4args args) {
    const Res results = run(
        {putrootfh(), lookup("data"), op(nfs::v4::OP_OPEN, &Op::opopen, std::move(args)), getfh()});
    if (results.status != nfs::v4::NFS4_OK) return {results.status, {}, {}};
    return {results.status, results.resarray[2].opopen().resok4().stateid,
            results.resarray[3].opgetfh().resok4().object};
  }
  Opened create(const std::string& name) {
    return open(open_args(name, nfs::v4::OPEN4_SHARE_ACCESS_BOTH, true));
  }
  static Op write_op(const nfs::v4::stateid4& stateid, std::uint64_t offset,
                     std::string_view text) {
    return op(nfs::v4::OP_WRITE, &Op::opwrite,
              {stateid, offset, nfs::v4::FILE_SYNC4, Rope::copy_of(bytes_of(text))});
  }
  static Op read_op(const nfs::v4::stateid4& stateid, std::uint64_t offset, std::uint32_t count) {
    return op(nfs::v4::OP_READ, &Op::opread, {stateid, offset, count});
  }
  static std::string text(const Rope& rope) {
    const Buffer flat = rope.flatten();
    return std::string(text_of(flat.bytes()));
  }

  ManualLoop loop_;
  const std::shared_ptr<vfs::MemoryFileSystem> store_;
  std::shared_ptr<vfs::MemoryFileSystem> fixed_store_ = std::make_shared<vfs::MemoryFileSystem>();
  nfs::ServerContext context_{nfs::ServerState::ephemeral(7)};
  nfs::nfs4::Nfs4Server nfs4_;
  rpc::Server server_;
  LoopbackChannel channel_{loop_, server_};
  rpc::Channel* via_ = &channel_;  // what compound() calls through
  rpc::Credentials credentials_;
  std::uint32_t minor_ = 1;
  nfs::v4::clientid4 clientid_ = 0;
  nfs::v4::sessionid4 session_{};
  std::uint32_t sequenceid_ = 0;
};

}  // namespace stag::testing
