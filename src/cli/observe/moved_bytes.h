// How much of files a Call, or an operation of NFSv4, has read or written, as its results say.
#pragma once

#include <cstdint>

#include "nfs/v4/operation_observer.h"
#include "rpc/observer.h"

namespace stag::cli {

struct MovedBytes {
  std::uint64_t read = 0;
  std::uint64_t written = 0;
};

// Of a Call of NFSv2 or NFSv3 that has worked.
MovedBytes moved_by(const rpc::EndedCall& call);
// Copies within a server, and from another one, move none.
MovedBytes moved_by(const nfs::nfs4::EndedOperation& operation);

}  // namespace stag::cli
