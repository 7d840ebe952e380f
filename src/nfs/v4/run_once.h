// What keeps a retransmitted COMPOUND of version 4.0 from running twice (RFC 7530 16.33.5): the
// results of those that change names, clients or owners are kept, as version 3 does it.
#pragma once

#include "nfs/v4/operation_list.h"
#include "rpc/program.h"
#include "rpc/replay_cache.h"

namespace stag::nfs::nfs4 {

// Whether one of its operations is another one when it runs again. WRITE is not: the same bytes
// are written.
bool must_run_once(const OperationList& list);

// One COMPOUND's place in the cache; given back on every way out. It is unknown how far one came
// that ended by an exception: it is not to run again, and a retransmission that waits for it must
// get a Reply (RFC 7530 3.1.1).
class RunOnce {
 public:
  RunOnce(rpc::ReplayCache& cache, rpc::CallContext& call)
      : cache_(cache), key_(call.replay_key()), loop_(call.loop()) {}
  RunOnce(const RunOnce&) = delete;
  ~RunOnce() {
    using oncrpc::AcceptStat;
    if (runs_)
      cache_.finish(key_, loop_,
                    rpc::CallResults{oncrpc::ReplyStatus::accepted(AcceptStat::SYSTEM_ERR)});
  }
  // After Run finish() is due.
  Task<rpc::ReplayCache::Admitted> admit();
  // Keeps the results; the same, to be sent.
  xdr::Stream finish(xdr::Stream results);

 private:
  rpc::ReplayCache& cache_;
  const rpc::ReplayKey key_;
  Loop& loop_;
  bool runs_ = false;
};

}  // namespace stag::nfs::nfs4
