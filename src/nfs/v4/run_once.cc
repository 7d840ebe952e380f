#include "nfs/v4/run_once.h"

#include <algorithm>
#include <utility>

namespace stag::nfs::nfs4 {

namespace {

bool changes_each_time(std::uint32_t number) {
  switch (number) {
    case v4::OP_CREATE:
    case v4::OP_LINK:
    case v4::OP_REMOVE:
    case v4::OP_RENAME:
    case v4::OP_SETATTR:
    case v4::OP_OPEN:
    case v4::OP_OPEN_CONFIRM:
    case v4::OP_OPEN_DOWNGRADE:
    case v4::OP_CLOSE:
    case v4::OP_LOCK:
    case v4::OP_LOCKU:
    case v4::OP_SETCLIENTID:
    case v4::OP_SETCLIENTID_CONFIRM:
    case v4::OP_RELEASE_LOCKOWNER:
      return true;
    default:
      return false;
  }
}

}  // namespace

bool must_run_once(const OperationList& list) {
  return list.minor() == 0 && std::ranges::any_of(list.entries(), [](const auto& entry) {
           return changes_each_time(entry.number);
         });
}

Task<rpc::ReplayCache::Admitted> RunOnce::admit() {
  rpc::ReplayCache::Admitted admitted = co_await cache_.admit(key_, loop_);
  runs_ = admitted.admission == rpc::ReplayCache::Admission::Run;
  co_return admitted;
}

xdr::Stream RunOnce::finish(xdr::Stream results) {
  runs_ = false;
  const rpc::CallResults kept{{}, std::move(results)};
  cache_.finish(key_, loop_, kept);
  return kept.results;
}

}  // namespace stag::nfs::nfs4
