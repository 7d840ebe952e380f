#include "nfs/client/v4/callback_service.h"

#include <algorithm>

namespace stag::nfs::client::nfs4 {
namespace {

// Operations of one CB_COMPOUND: more are refused before any is executed.
constexpr std::size_t kMostOperations = 8;

// RFC 5662 (the XDR) has version 1 of the callback program, RFC 8881 18.36.3 asks servers for 4.
struct CbCompoundOfVersion4 : v4::CB_COMPOUND {
  static constexpr std::uint32_t version = v4::NFS_V4;
};

// Where the status of a result is, whatever the operation.
v4::nfsstat4 set_status(v4::nfs_cb_resop4& result, v4::nfsstat4 status) {
  switch (result.resop) {
    case v4::OP_CB_GETATTR:
      result.opcbgetattr().status = status;
      break;
    case v4::OP_CB_RECALL:
      result.opcbrecall().status = status;
      break;
    case v4::OP_CB_LAYOUTRECALL:
      result.opcblayoutrecall().clorr_status = status;
      break;
    case v4::OP_CB_NOTIFY:
      result.opcbnotify().cnr_status = status;
      break;
    case v4::OP_CB_PUSH_DELEG:
      result.opcbpush_deleg().cpdr_status = status;
      break;
    case v4::OP_CB_RECALL_ANY:
      result.opcbrecall_any().crar_status = status;
      break;
    case v4::OP_CB_RECALLABLE_OBJ_AVAIL:
      result.opcbrecallable_obj_avail().croa_status = status;
      break;
    case v4::OP_CB_RECALL_SLOT:
      result.opcbrecall_slot().rsr_status = status;
      break;
    case v4::OP_CB_SEQUENCE:
      result.opcbsequence().csr_status = status;
      break;
    case v4::OP_CB_WANTS_CANCELLED:
      result.opcbwants_cancelled().cwcr_status = status;
      break;
    case v4::OP_CB_NOTIFY_LOCK:
      result.opcbnotify_lock().cnlr_status = status;
      break;
    case v4::OP_CB_NOTIFY_DEVICEID:
      result.opcbnotify_deviceid().cndr_status = status;
      break;
    case v4::OP_CB_OFFLOAD:
      result.opcboffload().cor_status = status;
      break;
    default:
      result.resop = v4::OP_CB_ILLEGAL;
      result.opcbillegal().status = status;
  }
  return status;
}

// RFC 8881 20.1.3: `change` and size, as far as they are asked for.
v4::fattr4 attributes_of(const Delegations::Now& now, const v4::bitmap4& asked) {
  const std::uint32_t mask = asked.empty() ? 0 : asked[0];
  v4::fattr4 attributes;
  attributes.attrmask = {mask & (1u << v4::FATTR4_CHANGE | 1u << v4::FATTR4_SIZE)};
  xdr::Encoder values;
  if ((mask & 1u << v4::FATTR4_CHANGE) != 0) values.u64(now.change);
  if ((mask & 1u << v4::FATTR4_SIZE) != 0) values.u64(now.size);
  attributes.attr_vals = std::move(values).finish().rope();
  return attributes;
}

// Those that follow CB_SEQUENCE, in memory of their own: their message's goes back to the
// transport.
Buffer operations_of(const v4::CB_COMPOUND4args& args) {
  xdr::Encoder operations;
  for (std::size_t i = 1; i < args.argarray.size(); ++i) encode(operations, args.argarray[i]);
  return Buffer::copy_of(std::move(operations).finish().rope().flatten().bytes());
}

}  // namespace

CallbackService::CallbackService() {
  const auto serve = [this]<class Compound>(Compound) {
    rpc::Program program(kProgram, Compound::version);
    program.add<Compound>(
        [this](rpc::CallContext&, v4::CB_COMPOUND4args args) -> Task<v4::CB_COMPOUND4res> {
          co_return answered(args);
        });
    server_.add(std::move(program));
  };
  serve(v4::CB_COMPOUND{});
  serve(CbCompoundOfVersion4{});
}

void CallbackService::begin(const v4::sessionid4& session, std::uint32_t slots, Recalled* holder) {
  back_.reset(session, slots);
  holder_ = holder;
}

v4::CB_COMPOUND4res CallbackService::answered(const v4::CB_COMPOUND4args& args) {
  v4::CB_COMPOUND4res results;
  results.tag = args.tag;
  const auto fail = [&results](v4::nfsstat4 status) {
    results.status = status;
    return results;
  };
  // A minor version has its own operations; CB_SEQUENCE stands in front of them
  // in those with a session (RFC 8881 20.9.3).
  if (args.minorversion < 1 || args.minorversion > 2) return fail(v4::NFS4ERR_MINOR_VERS_MISMATCH);
  if (args.argarray.empty()) return results;
  if (args.argarray.size() > kMostOperations) return fail(v4::NFS4ERR_TOO_MANY_OPS);
  v4::nfs_cb_resop4& first = results.resarray.emplace_back();
  first.resop = args.argarray.front().argop;
  if (first.resop != v4::OP_CB_SEQUENCE)
    return fail(set_status(first, v4::NFS4ERR_OP_NOT_IN_SESSION));
  const v4::CB_SEQUENCE4args& sequence = args.argarray.front().opcbsequence();
  Buffer operations = operations_of(args);
  const session::BackChannel::Turn turn = back_.begin(sequence, operations);
  if (turn.kept != nullptr) return *turn.kept;
  if (turn.status != v4::NFS4_OK) return fail(set_status(first, turn.status));
  first.opcbsequence().csr_resok4() = back_.answer_to(sequence);
  for (std::size_t i = 1; i < args.argarray.size() && results.status == v4::NFS4_OK; ++i) {
    v4::nfs_cb_resop4& result = results.resarray.emplace_back();
    results.status = answered(sequence, args.argarray[i], result);
  }
  back_.end(sequence, std::move(operations), results);
  return results;
}

// RFC 8881 2.10.6.3: the recall may have overtaken the answer to the OPEN that gave the delegation.
v4::nfsstat4 CallbackService::recalled(const v4::CB_SEQUENCE4args& sequence,
                                       const v4::stateid4& stateid) {
  if (holder_ == nullptr) return v4::NFS4ERR_BAD_STATEID;
  const v4::nfsstat4 status = holder_->recall(stateid);
  const bool early = status == v4::NFS4ERR_BAD_STATEID && holder_->awaits(sequence);
  return early ? v4::NFS4ERR_DELAY : status;
}

v4::nfsstat4 CallbackService::answered(const v4::CB_SEQUENCE4args& sequence,
                                       const v4::nfs_cb_argop4& operation,
                                       v4::nfs_cb_resop4& result) {
  result.resop = operation.argop;
  const auto say = [&result](v4::nfsstat4 status) { return set_status(result, status); };
  switch (operation.argop) {
    case v4::OP_CB_RECALL:
      return say(recalled(sequence, operation.opcbrecall().stateid));
    case v4::OP_CB_RECALL_ANY:
      if (holder_ != nullptr) holder_->recall_any(operation.opcbrecall_any().craa_objects_to_keep);
      return say(v4::NFS4_OK);
    case v4::OP_CB_RECALL_SLOT:
      if (holder_ != nullptr)
        holder_->recall_slots(operation.opcbrecall_slot().rsa_target_highest_slotid);
      return say(v4::NFS4_OK);
    case v4::OP_CB_NOTIFY_LOCK:
    case v4::OP_CB_RECALLABLE_OBJ_AVAIL:
    case v4::OP_CB_WANTS_CANCELLED:
      return say(v4::NFS4_OK);
    case v4::OP_CB_GETATTR: {
      const v4::CB_GETATTR4args& asked = operation.opcbgetattr();
      const auto now = holder_ == nullptr ? std::nullopt : holder_->written(asked.fh);
      if (!now) return say(v4::NFS4ERR_BADHANDLE);
      result.opcbgetattr().resok4().obj_attributes = attributes_of(*now, asked.attr_request);
      return v4::NFS4_OK;
    }
    case v4::OP_CB_OFFLOAD:
      if (holder_ == nullptr) return say(v4::NFS4ERR_BAD_STATEID);
      return say(holder_->copy_ended(operation.opcboffload()));
    case v4::OP_CB_LAYOUTRECALL:
      return say(v4::NFS4ERR_NOMATCHING_LAYOUT);
    case v4::OP_CB_SEQUENCE:
      return say(v4::NFS4ERR_SEQUENCE_POS);
    case v4::OP_CB_NOTIFY:
    case v4::OP_CB_PUSH_DELEG:
    case v4::OP_CB_NOTIFY_DEVICEID:
      return say(v4::NFS4ERR_NOTSUPP);
    default:
      return say(v4::NFS4ERR_OP_ILLEGAL);
  }
}

}  // namespace stag::nfs::client::nfs4
