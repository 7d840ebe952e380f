// What COPY leaves to Offloads, and what it and OFFLOAD_STATUS hear of it (RFC 7862 15.2, 15.9).
//
// A copy from another server is Offloads' from its beginning: its COPY waits there for the first
// piece, or where it is synchronous, for the end. So a source that hangs holds nothing but its own
// copy.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "nfs/v4/callback/callbacks.h"
#include "nfs/v4/ops/copy_source.h"
#include "nfs/v4/ops/file_copy.h"

namespace stag::nfs::nfs4 {

class Compound;

// One COPY moves so many bytes at most before it is answered; the client asks for the rest.
inline constexpr std::uint64_t kLargestAnswer = 64 << 20;

// What COPY leaves to go on.
struct OffloadedCopy {
  FileCopy copy;
  // The COPY's, by which the exports admit the next pieces.
  rpc::Origin origin;
  rpc::Caller caller;
  state::LifePtr life;
  state::SlotRef asked_by;
  // What allows it, checked between any two pieces.
  v4::stateid4 from_stateid, to_stateid;
  std::uint64_t verifier = 0;          // of what it writes
  state::FileChange change;            // of the file it writes, from the COPY on
  std::optional<CopySource> source{};  // instead of `from_stateid`
};

// Of a COPY that writes the file of `to`; where it reads from is the caller's to say.
OffloadedCopy offloaded_copy(const Compound& compound, const FileCopy& copy, const v4::stateid4& to,
                             std::uint64_t verifier, const state::FileChange& change);

struct OffloadProgress {
  std::uint64_t count = 0;                 // bytes
  std::optional<v4::nfsstat4> complete{};  // how it ended
};

// What the COPY of a copy from another server says.
struct OffloadAnswer {
  std::uint64_t count = 0;  // bytes
  vfs::Stability committed = vfs::Stability::Unstable;
  v4::nfsstat4 status = v4::NFS4_OK;
  bool goes_on = false;
};

}  // namespace stag::nfs::nfs4
