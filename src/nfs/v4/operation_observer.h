// OperationObserver: who is told of the operations that COMPOUNDs run, to count and trace them. A
// rpc::Observer is told of the COMPOUND as a whole.
#pragma once

#include <cstdint>

#include "base/loop.h"

namespace stag::rpc {
class CallContext;
}
namespace stag::nfs {
struct Export;
}

namespace stag::nfs::nfs4 {

// An operation that has ended, or was refused.
struct EndedOperation {
  const rpc::CallContext& call;
  std::uint32_t number = 0;    // nfs_opnum4, as the client sent it
  std::uint32_t status = 0;    // nfsstat4
  const Export* at = nullptr;  // that the current filehandle is of; null: of none
  // Whether it has worked on a filehandle. The time of others is not of interest.
  bool on_filehandle = false;
  std::uint32_t moved = 0;  // bytes of a file that it has read or written
  TimePoint began{};        // of such a one: by the loop's clock, or when the one before it ended
};

// Thread: the loop of the Call; several at a time. It never waits.
class OperationObserver {
 public:
  // Yields the time, if it has read a clock: when the next operation begins.
  virtual TimePoint on_operation(const EndedOperation& operation) noexcept = 0;

 protected:
  ~OperationObserver() = default;
};

}  // namespace stag::nfs::nfs4
