#include "nfs/v4/compound/status.h"
#include "nfs/v4/ops/lock.h"
#include "nfs/v4/ops/stateids.h"

namespace stag::nfs::nfs4 {

Task<OpenForLocks> open_for_locks(const Compound& compound) {
  const auto* const file = std::get_if<ExportObject>(&compound.current());
  if (file == nullptr) co_return OpenForLocks{};
  const ExportObject object = *file;
  auto opened = co_await compound.shared().server.local_locks->open(
      object.key(), object.store(), object.caller(),
      compound.admission().call().origin().peer.host);
  if (opened) co_return OpenForLocks{v4::NFS4_OK, *std::move(opened)};
  // What is no file is refused for that.
  const bool no_file =
      opened.error() == vfs::Status::IsDirectory || opened.error() == vfs::Status::Invalid;
  co_return OpenForLocks{no_file ? v4::NFS4_OK : to_nfsstat4(opened.error())};
}

}  // namespace stag::nfs::nfs4
