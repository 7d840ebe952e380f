// The turn of an open or lock owner of version 4.0 (RFC 7530 9.1.7): its operation runs once, and a
// retransmission gets the same results.
#pragma once

#include <utility>

#include "nfs/proto/owner_seqid.h"
#include "nfs/v4/compound/compound.h"
#include "nfs/v4/compound/state_status.h"
#include "nfs/v4/ops/stateids.h"

namespace stag::nfs::nfs4 {

// Whether the current filehandle is one of the pseudo file system, where nothing is open.
bool on_pseudo_fs(const Compound& compound);

// They are told to the same principal only (state::OwnerArgs), who may have lost what it had then.
template <class Results>
struct KeptResults final : state::Reply {
  Results results;
  FileHandles::Sealed opened;  // of OPEN: the current filehandle behind it
};

// One operation's turn; given back on every way out.
class OwnerTurn {
 public:
  // args.principal is the caller's, whatever it was.
  OwnerTurn(Compound& compound, const state::OwnerArgs& args)
      : compound_(compound),
        args_(by_caller(compound, args)),
        turn_(compound.shared().owners.begin(args_)) {
    // A thread that ended the client meanwhile did not see this owner.
    if (compound.life() != nullptr && compound.life()->ended())
      compound.shared().owners.release(compound.life()->clientid);
    if (turn_.cancelled) compound.shared().files.cancel(*turn_.cancelled);
  }
  // The turn of an operation that does not run.
  OwnerTurn(Compound& compound, state::OwnerTurn turn)
      : compound_(compound), turn_(std::move(turn)) {}
  OwnerTurn(const OwnerTurn&) = delete;
  ~OwnerTurn() {
    if (holds()) compound_.shared().owners.abandoned(turn_.owner);
  }

  bool runs() const { return turn_.kind == state::OwnerTurn::Kind::Run; }
  // The results of an operation that does not run: the same again, or why not.
  template <class Results>
  Results instead(v4::nfsstat4 Results::*status) const {
    Results results{};
    if (turn_.reply == nullptr) {
      results.*status = to_nfsstat4(turn_.status);
      return results;
    }
    const auto& kept = static_cast<const KeptResults<Results>&>(*turn_.reply);
    if (kept.opened.size == 0) return kept.results;
    results.*status = compound_.put(kept.opened.bytes());
    return results.*status == v4::NFS4_OK ? kept.results : results;
  }
  void finish(v4::nfsstat4 status, const state::ReplyPtr& reply) {
    if (!holds()) return;
    const state::OwnerRef owner = std::exchange(turn_.owner, nullptr);
    if (advances_seqid(status))
      compound_.shared().owners.finished(owner, args_, reply);
    else
      compound_.shared().owners.abandoned(owner);
  }
  // Null: unknown.
  const state::OwnerRef& owner() const { return turn_.owner; }
  bool confirmed() const { return turn_.confirmed; }
  bool fresh() const { return turn_.fresh; }

 private:
  static state::OwnerArgs by_caller(const Compound& compound, state::OwnerArgs args) {
    args.principal = compound.principal_number();
    return args;
  }
  bool holds() const { return turn_.owner != nullptr; }

  Compound& compound_;
  state::OwnerArgs args_;
  state::OwnerTurn turn_;
};

template <class Results>
state::ReplyPtr kept(const Results& results, const FileHandles::Sealed& opened = {}) {
  auto reply = std::make_shared<KeptResults<Results>>();
  reply->results = results;
  reply->opened = opened;
  return reply;
}

}  // namespace stag::nfs::nfs4
