// The slot of a session that one COMPOUND occupies, from SEQUENCE to its end (RFC 8881 2.10.6): it
// is given back on every way out.
#pragma once

#include <optional>

#include "nfs/v4/compound/compound.h"
#include "nfs/v4/operation_list.h"
#include "xdr/stream.h"

namespace stag::nfs::nfs4 {

class SessionSlot {
 public:
  explicit SessionSlot(Compound& compound) : compound_(compound) {}
  SessionSlot(const SessionSlot&) = delete;
  ~SessionSlot() { give_back(nullptr); }

  struct Begun {
    v4::SEQUENCE4res result;
    // The results of the whole COMPOUND, which this SessionSlot has, when it is one that ran
    // before.
    const xdr::Stream* replay = nullptr;
    // It ran before and its results were not kept (2.10.6.1.3).
    bool uncached = false;
  };
  // SEQUENCE, the first of `list`. nullopt: a retry of a request that still runs.
  std::optional<Begun> begin(const OperationList& list);
  // The same of such a retry, which waits for that request.
  Task<Begun> begin_after_the_first(const OperationList& list);

  // Whether finish() is to be called with the results, for retries.
  bool keeps_results() const { return compound_.slot() != nullptr && compound_.slot()->cache_this; }
  // Keeps them; the same, to be sent.
  const xdr::Stream& finish(xdr::Stream results);

  // The connection is gone of a COMPOUND that waits in `running`.
  void lost_connection(const OperationList::Entry& running);

 private:
  struct KeptResults;
  std::optional<Begun> judge(const v4::SEQUENCE4args& args, state::Sequenced&& sequenced);
  Task<bool> wait(const state::SlotRef& slot);
  void give_back(state::ReplyPtr results);

  Compound& compound_;
  std::shared_ptr<const KeptResults> kept_;
};

}  // namespace stag::nfs::nfs4
