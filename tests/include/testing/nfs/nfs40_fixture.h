// A client of NFSv4.0 (RFC 7530) of the server in nfs4_fixture.h: without a session, with owners
// that number their operations.
#pragma once

#include <string>
#include <vector>

#include "testing/nfs/nfs4_fixture.h"

namespace stag::testing {

class Nfs40Served : public Nfs4Served {
 protected:
  using Nfs4Served::Nfs4Served;
  void SetUp() override { client_ = set_up_client("a client"); }

  Res run(std::vector<Op> operations) { return compound(std::move(operations), 0); }

  nfs::v4::SETCLIENTID4resok setclientid(const std::string& id, std::uint8_t verifier = 1) {
    nfs::v4::SETCLIENTID4args args;
    args.client.id = Rope::copy_of(bytes_of(id));
    args.client.verifier.fill(std::byte{verifier});
    args.callback = callback_;
    args.callback_ident = callback_ident_;
    const Res set = run({op(nfs::v4::OP_SETCLIENTID, &Op::opsetclientid, std::move(args))});
    EXPECT_EQ(set.status, nfs::v4::NFS4_OK);
    return set.resarray.at(0).opsetclientid().resok4();
  }
  nfs::v4::clientid4 set_up_client(const std::string& id, std::uint8_t verifier = 1) {
    const nfs::v4::SETCLIENTID4resok set = setclientid(id, verifier);
    EXPECT_EQ(run({op(nfs::v4::OP_SETCLIENTID_CONFIRM, &Op::opsetclientid_confirm,
                      {set.clientid, set.setclientid_confirm})})
                  .status,
              nfs::v4::NFS4_OK);
    return set.clientid;
  }
  nfs::v4::nfsstat4 renew(nfs::v4::clientid4 clientid) {
    return run({op(nfs::v4::OP_RENEW, &Op::oprenew, nfs::v4::RENEW4args{clientid})}).status;
  }

  Op open_op(std::uint32_t seqid, const std::string& name, const std::string& owner,
             std::uint32_t access = nfs::v4::OPEN4_SHARE_ACCESS_BOTH) {
    nfs::v4::OPEN4args args = open_args(name, access, true, owner);
    args.owner.clientid = client_;
    args.seqid = seqid;
    return op(nfs::v4::OP_OPEN, &Op::opopen, std::move(args));
  }
  Res open_raw(std::uint32_t seqid, const std::string& name, const std::string& owner) {
    return run({putrootfh(), lookup("data"), open_op(seqid, name, owner), getfh()});
  }
  // Opened and confirmed; the owner's last seqid is `seqid` + 1 then.
  Opened open_file(std::uint32_t seqid, const std::string& name, const std::string& owner) {
    const Res opened = open_raw(seqid, name, owner);
    EXPECT_EQ(opened.status, nfs::v4::NFS4_OK);
    if (opened.status != nfs::v4::NFS4_OK) return {opened.status, {}, {}};
    Opened file{nfs::v4::NFS4_OK, opened.resarray[2].opopen().resok4().stateid,
                opened.resarray[3].opgetfh().resok4().object};
    EXPECT_NE(opened.resarray[2].opopen().resok4().rflags & nfs::v4::OPEN4_RESULT_CONFIRM, 0u);
    const Res confirmed = confirm(file, seqid + 1);
    EXPECT_EQ(confirmed.status, nfs::v4::NFS4_OK);
    if (confirmed.status == nfs::v4::NFS4_OK)
      file.stateid = confirmed.resarray[1].opopen_confirm().resok4().open_stateid;
    return file;
  }
  Res confirm(const Opened& file, std::uint32_t seqid) {
    return run({putfh(file.handle), op(nfs::v4::OP_OPEN_CONFIRM, &Op::opopen_confirm,
                                       nfs::v4::OPEN_CONFIRM4args{file.stateid, seqid})});
  }
  Res close(const Opened& file, std::uint32_t seqid) {
    return run({putfh(file.handle),
                op(nfs::v4::OP_CLOSE, &Op::opclose, nfs::v4::CLOSE4args{seqid, file.stateid})});
  }
  nfs::v4::LOCK4args lock_args(std::uint64_t offset) {
    nfs::v4::LOCK4args args;
    args.locktype = nfs::v4::WRITE_LT;
    args.offset = offset;
    args.length = 10;
    return args;
  }
  // By a new lock owner.
  Res lock(const Opened& file, std::uint32_t open_seqid, std::uint32_t lock_seqid,
           const std::string& owner, std::uint64_t offset = 0) {
    nfs::v4::LOCK4args args = lock_args(offset);
    args.locker.new_lock_owner = true;
    args.locker.open_owner() = {
        open_seqid, file.stateid, lock_seqid, {client_, Rope::copy_of(bytes_of(owner))}};
    return run({putfh(file.handle), op(nfs::v4::OP_LOCK, &Op::oplock, std::move(args))});
  }
  Res relock(const Opened& file, const nfs::v4::stateid4& stateid, std::uint32_t seqid,
             std::uint64_t offset) {
    nfs::v4::LOCK4args args = lock_args(offset);
    args.locker.lock_owner() = {stateid, seqid};
    return run({putfh(file.handle), op(nfs::v4::OP_LOCK, &Op::oplock, std::move(args))});
  }
  Res unlock(const Opened& file, const nfs::v4::stateid4& stateid, std::uint32_t seqid) {
    return run(
        {putfh(file.handle), op(nfs::v4::OP_LOCKU, &Op::oplocku,
                                {nfs::v4::WRITE_LT, seqid, stateid, 0, 0xffffffffffffffff})});
  }
  nfs::v4::nfsstat4 release(const std::string& owner) {
    return run({op(nfs::v4::OP_RELEASE_LOCKOWNER, &Op::oprelease_lockowner,
                   nfs::v4::RELEASE_LOCKOWNER4args{{client_, Rope::copy_of(bytes_of(owner))}})})
        .status;
  }
  static nfs::v4::stateid4 lock_stateid(const Res& locked) {
    return locked.resarray.at(1).oplock().resok4().lock_stateid;
  }
  // The last Call once more, under its XID.
  Res last_call_again() {
    rpc::IncomingCall call;
    call.origin = std::make_shared<rpc::Origin>(channel_.origin());
    call.payload = channel_.last_call;
    const auto reply = loop_.run(server_.serve(call));
    Res results;
    if (!reply || !*reply) return results;
    xdr::Decoder decoder((*reply)->stream.rope().flatten());
    EXPECT_TRUE(oncrpc::decode_reply(decoder).ok());
    EXPECT_TRUE(decode(decoder, results));
    return results;
  }

  nfs::v4::clientid4 client_ = 0;
  // What SETCLIENTID says.
  nfs::v4::cb_client4 callback_;
  std::uint32_t callback_ident_ = 0;
};

}  // namespace stag::testing
