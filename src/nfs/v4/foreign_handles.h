// Filehandles of other servers in a COMPOUND (RFC 7862 15.2.3): "a PUTFH followed by a SAVEFH MUST
// NOT return NFS4ERR_STALE", where COPY copies from another server. They are found before they are
// put, so that no other filehandle is taken for one.
#pragma once

#include "nfs/v4/operation_list.h"

namespace stag::nfs::nfs4 {

// Whether the operation at `index` is a PUTFH, and what it puts is saved by the next one to be the
// source of a COPY from another server.
bool saves_source(const OperationList::Entries& entries, std::size_t index);
// The same, known at once where nothing is saved behind it.
inline bool names_source(const OperationList::Entries& entries, std::size_t index) {
  return index + 1 < entries.size() && entries[index + 1].number == v4::OP_SAVEFH &&
         saves_source(entries, index);
}

// Whether an operation finds a foreign filehandle where it needs one of this server.
bool meets_foreign(const Operation& row, const Compound& compound);

}  // namespace stag::nfs::nfs4
