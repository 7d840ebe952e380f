// What clients hold of exports that were removed, and keep a disk in use with: locks, and
// delegations until they are given back. Listings show it with the path that the export had.
#pragma once

#include <string>

#include "cli/control/control_socket.h"
#include "nfs/lock/lock_service.h"
#include "nfs/v4/administration.h"

namespace stag::cli {

// The members of a row about a file: "export", the path, and "removed" where that is so.
void set_export(Json& row, const nfs::nfs4::Administration& clients,
                const nfs::state::FileKey& file);

struct RevokedOfExport {
  std::size_t states = 0;  // opens, with their locks, and delegations
  std::size_t locks = 0;   // by NLM
};
// Takes away all that anybody holds of files of removed exports that had this path, in normal form.
// What is served is left alone. Others on the loop have their turn meanwhile.
Task<RevokedOfExport> revoke_removed(nfs::nfs4::Administration clients,
                                     nfs::lock::LockService& locks, std::string path, Loop& loop);

}  // namespace stag::cli
