#include "cli/copy/acl_support.h"

#include "nfs/client/acl.h"

namespace stag::cli {

using nfs::client::Error;

namespace {

// A server may name a file system for each file. Those beyond are asked for each file.
constexpr std::size_t kMostKnown = 1024;

}  // namespace

std::optional<Error> AclSupport::why_none(std::uint64_t fsid) const {
  if (on_server_) return on_server_;
  const auto at = known_.find(fsid);
  return at == known_.end() ? std::nullopt : at->second;
}

void AclSupport::note(std::uint64_t fsid, const Error* why) {
  const bool none = why != nullptr && nfs::client::means_no_acls(*why);
  // NFSACL is a program of the server, not of a file system.
  if (none && why->kind == Error::Kind::Call) {
    on_server_ = *why;
    return;
  }
  // Another error is that of one file.
  if ((why != nullptr && !none) || known_.size() >= kMostKnown) return;
  known_[fsid] = none ? std::optional(*why) : std::nullopt;
}

}  // namespace stag::cli
