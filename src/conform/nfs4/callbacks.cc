#include "conform/nfs4/callbacks.h"

#include <algorithm>

#include "base/pause.h"
#include "rpc/program.h"

namespace stag::conform::nfs4 {
namespace {

constexpr auto kPause = std::chrono::milliseconds(10);

v4::CB_SEQUENCE4resok answer_to(const v4::CB_SEQUENCE4args& asked) {
  return {asked.csa_sessionid, asked.csa_sequenceid, asked.csa_slotid, asked.csa_highest_slotid,
          asked.csa_highest_slotid};
}

struct CbCompoundOfVersion4 : v4::CB_COMPOUND {
  static constexpr std::uint32_t version = v4::NFS_V4;
};

// Of all operations but CB_SEQUENCE and CB_OFFLOAD.
v4::nfsstat4 answer(v4::nfs_cb_resop4& result) {
  switch (result.resop) {
    case v4::OP_CB_RECALL:
    case v4::OP_CB_RECALL_ANY:
    case v4::OP_CB_RECALL_SLOT:
    case v4::OP_CB_NOTIFY_LOCK:
      return v4::NFS4_OK;
    case v4::OP_CB_GETATTR:
      // No case changes a file under a delegation.
      return result.opcbgetattr().status = v4::NFS4ERR_BADHANDLE;
    default:
      result.resop = v4::OP_CB_ILLEGAL;
      return result.opcbillegal().status = v4::NFS4ERR_OP_ILLEGAL;
  }
}

}  // namespace

Callbacks::Callbacks(Loop& loop, CancelToken cancel) : loop_(loop), cancel_(cancel) {
  const auto serve = [this]<class Compound>(Compound) {
    rpc::Program program(v4::NFS4_CALLBACK, Compound::version);
    program.add<Compound>(
        [this](rpc::CallContext&, v4::CB_COMPOUND4args args) { return answered(std::move(args)); });
    server_.add(std::move(program));
  };
  serve(v4::CB_COMPOUND{});
  serve(CbCompoundOfVersion4{});
}

Task<v4::CB_COMPOUND4res> Callbacks::answered(v4::CB_COMPOUND4args args) {
  v4::CB_COMPOUND4res results;
  results.tag = args.tag;
  for (const v4::nfs_cb_argop4& asked : args.argarray) {
    if (results.status != v4::NFS4_OK) break;
    v4::nfs_cb_resop4& result = results.resarray.emplace_back();
    result.resop = asked.argop;
    if (asked.argop == v4::OP_CB_SEQUENCE)
      result.opcbsequence().csr_resok4() = answer_to(asked.opcbsequence());
    else if (asked.argop == v4::OP_CB_OFFLOAD)
      co_await acknowledge(asked.opcboffload());
    else
      results.status = answer(result);
    if (asked.argop == v4::OP_CB_RECALL) recalls_.push_back(asked.opcbrecall());
  }
  co_return results;
}

Task<void> Callbacks::acknowledge(v4::CB_OFFLOAD4args args) {
  ended_.push_back(args.coa_stateid);
  ++waiting_;
  while (held_ && !cancel_.cancelled()) co_await pause(loop_, kPause, cancel_);
  --waiting_;
}

Task<void> Callbacks::release() {
  held_ = false;
  while (waiting_ > 0) co_await pause(loop_, kPause, {});
}

Task<std::optional<v4::CB_RECALL4args>> Callbacks::wait_for_recall(v4::stateid4 delegation,
                                                                   Duration longest) {
  const TimePoint until = loop_.now() + longest;
  for (;;) {
    for (const v4::CB_RECALL4args& recall : recalls_)
      if (recall.stateid.other == delegation.other) co_return recall;
    if (loop_.now() >= until || cancel_.cancelled()) co_return std::nullopt;
    co_await pause(loop_, kPause, cancel_);
  }
}

Task<void> Callbacks::wait_for_end(v4::stateid4 copy, Duration longest) {
  const TimePoint until = loop_.now() + longest;
  while (std::ranges::find(ended_, copy) == ended_.end() && loop_.now() < until &&
         !cancel_.cancelled())
    co_await pause(loop_, kPause, cancel_);
}

}  // namespace stag::conform::nfs4
