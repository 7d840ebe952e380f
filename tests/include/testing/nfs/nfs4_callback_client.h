// A client of NFS version 4 that is called back: what was asked of it, and what it answers. In
// version 4.1 on its own connection, which has a reverse direction; in version 4.0 where it
// listens. For tests on Nfs4Served.
#pragma once

#include <deque>
#include <functional>
#include <vector>

#include "testing/nfs/nfs4_fixture.h"

namespace stag::testing {

class CallbackClient {
 public:
  using Asked = nfs::v4::CB_COMPOUND4args;
  using Answer = nfs::v4::CB_COMPOUND4res;

  CallbackClient(ManualLoop& loop, rpc::Server& server) : channel(loop, server), loop_(loop) {
    rpc::Program program(nfs::v4::NFS4_CALLBACK, nfs::v4::NFS_CB);
    program.add<nfs::v4::CB_NULL>([this](rpc::CallContext&, xdr::Void) { return probed(); });
    program.add<nfs::v4::CB_COMPOUND>(
        [this](rpc::CallContext& call, Asked args) { return answered(call, std::move(args)); });
    callbacks_.add(std::move(program));
    connect();
  }

  // A connection that is there, after the last one went.
  void connect() {
    reverse_ = std::make_shared<LoopbackChannel>(loop_, callbacks_);
    connection_ = std::make_shared<rpc::Connection>();
    channel.origin().reverse = reverse_;
    channel.origin().connection = connection_;
  }
  void disconnect() {
    reverse_.reset();
    connection_->end();
  }

  // Of recalls, the delegation's.
  const nfs::v4::CB_RECALL4args& recall(std::size_t index) {
    return asked.at(index).argarray.back().opcbrecall();
  }
  const nfs::v4::CB_SEQUENCE4args& sequence(std::size_t index) {
    return asked.at(index).argarray.at(0).opcbsequence();
  }

  rpc::Service& service() { return callbacks_; }
  // Of the last callback on this connection: how long the server expects the Reply to be at most,
  // and how long it was.
  std::uint32_t reply_max() const { return reverse_->last_reply_max; }
  std::size_t reply_size() const { return reverse_->last_reply.size(); }

  LoopbackChannel channel;
  int probes = 0;
  bool answers = true;  // else no Reply comes
  std::vector<Asked> asked;
  std::vector<rpc::Caller> callers;
  // Statuses of the operations to come, then NFS4_OK; and of CB_SEQUENCE.
  std::deque<nfs::v4::nfsstat4> statuses, sequence_statuses;
  std::function<void()> on_recall, on_probe;
  // What CB_GETATTR finds.
  std::uint64_t change = 0, size = 0;
  std::size_t bitmap_words = 2;  // as Linux says it

 private:
  static nfs::v4::nfsstat4 next(std::deque<nfs::v4::nfsstat4>& statuses) {
    if (statuses.empty()) return nfs::v4::NFS4_OK;
    const nfs::v4::nfsstat4 status = statuses.front();
    statuses.pop_front();
    return status;
  }
  using Refusable = Result<Answer, rpc::CallRefusal>;
  Task<Result<xdr::Void, rpc::CallRefusal>> probed() {
    ++probes;
    if (on_probe) on_probe();
    if (!answers) co_return Failure{rpc::CallRefusal{.drop = true}};
    co_return xdr::Void{};
  }
  Task<Refusable> answered(rpc::CallContext& call, Asked args) {
    asked.push_back(args);
    callers.push_back(call.caller());
    if (!answers) co_return Failure{rpc::CallRefusal{.drop = true}};
    Answer answer;
    if (args.minorversion == 0) {
      answer.resarray.push_back(
          result_of(args.argarray.at(0).argop, answer.status = next(statuses)));
      co_return answer;
    }
    answer.resarray.resize(1);
    answer.resarray[0].resop = nfs::v4::OP_CB_SEQUENCE;
    nfs::v4::CB_SEQUENCE4res& sequence = answer.resarray[0].opcbsequence();
    sequence.csr_status = answer.status = next(sequence_statuses);
    if (sequence.csr_status != nfs::v4::NFS4_OK) co_return answer;
    const auto& in = args.argarray.at(0).opcbsequence();
    sequence.csr_resok4() = {in.csa_sessionid, in.csa_sequenceid, in.csa_slotid,
                             in.csa_highest_slotid, in.csa_highest_slotid};
    answer.resarray.resize(2);
    answer.resarray[1] = result_of(args.argarray.at(1).argop, answer.status = next(statuses));
    co_return answer;
  }
  nfs::v4::nfs_cb_resop4 result_of(nfs::v4::nfs_cb_opnum4 number, nfs::v4::nfsstat4 status) {
    nfs::v4::nfs_cb_resop4 result;
    result.resop = number;
    if (number == nfs::v4::OP_CB_GETATTR) {
      result.opcbgetattr().status = status;
      if (status == nfs::v4::NFS4_OK) result.opcbgetattr().resok4().obj_attributes = attributes();
    } else if (number == nfs::v4::OP_CB_OFFLOAD) {
      result.opcboffload().cor_status = status;
    } else {
      result.opcbrecall().status = status;
      if (on_recall) on_recall();
    }
    return result;
  }
  nfs::v4::fattr4 attributes() const {
    xdr::Encoder values;
    values.u64(change);
    values.u64(size);
    nfs::v4::bitmap4 bitmap{1u << nfs::v4::FATTR4_CHANGE | 1u << nfs::v4::FATTR4_SIZE};
    bitmap.resize(bitmap_words);
    return {std::move(bitmap), std::move(values).finish().rope()};
  }

  ManualLoop& loop_;
  rpc::Server callbacks_;
  std::shared_ptr<LoopbackChannel> reverse_;
  std::shared_ptr<rpc::Connection> connection_;
};

}  // namespace stag::testing
