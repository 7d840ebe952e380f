#include "cli/control/removed_exports.h"

namespace stag::cli {
namespace {

using nfs::lock::LockService;
using nfs::nfs4::Administration;
using nfs::state::FileKey;

bool is_of_removed(const Administration& clients, const FileKey& file, const std::string& path) {
  return !clients.is_served(file) && clients.export_of(file) == path;
}

// With an open its locks go, which were made through the same export.
Task<std::size_t> revoke_page(Administration& clients, const nfs::state::StatePage& page,
                              const std::string& path, Loop& loop) {
  std::size_t revoked = 0;
  for (const nfs::state::StateInfo& state : page.rows()) {
    const bool held = state.revoked == nfs::state::Status::Ok;
    if (!held || state.type == nfs::state::StateInfo::Type::Lock ||
        !is_of_removed(clients, state.file, path))
      continue;
    if (co_await clients.revoke(state.stateid, loop)) ++revoked;
  }
  co_return revoked;
}

}  // namespace

void set_export(Json& row, const Administration& clients, const FileKey& file) {
  if (const auto path = clients.export_of(file)) row.set_bytes("export", *path);
  if (!clients.is_served(file)) row.set("removed", true);
}

Task<RevokedOfExport> revoke_removed(Administration clients, LockService& locks, std::string path,
                                     Loop& loop) {
  RevokedOfExport revoked;
  nfs::state::StateCursor at;
  nfs::state::StatePage page;
  for (bool more = true; more;) {
    more = clients.states(at, {}, page);
    revoked.states += co_await revoke_page(clients, page, path, loop);
    co_await resume_on(loop);
  }
  for (const FileKey& file : locks.files()) {
    if (!is_of_removed(clients, file, path)) continue;
    revoked.locks += locks.release(file);
    co_await resume_on(loop);
  }
  co_return revoked;
}

}  // namespace stag::cli
