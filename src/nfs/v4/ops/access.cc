// ACCESS (RFC 8881 18.1).
#include "nfs/v4/compound/status.h"
#include "nfs/v4/ops/operations.h"

namespace stag::nfs::nfs4 {

// The bits have the values of RFC 1813 3.3.4.
static_assert(v4::ACCESS4_READ == vfs::access::kRead && v4::ACCESS4_LOOKUP == vfs::access::kLookup);
static_assert(v4::ACCESS4_MODIFY == vfs::access::kModify &&
              v4::ACCESS4_EXTEND == vfs::access::kExtend);
static_assert(v4::ACCESS4_DELETE == vfs::access::kDelete &&
              v4::ACCESS4_EXECUTE == vfs::access::kExecute);

Task<v4::ACCESS4res> access(Compound& compound, v4::ACCESS4args& args) {
  v4::ACCESS4res results;
  const std::uint32_t asked = args.access & vfs::access::kAll;
  if (std::holds_alternative<const PseudoFs::Node*>(compound.current())) {
    results.resok4() = {asked, asked & (v4::ACCESS4_READ | v4::ACCESS4_LOOKUP)};
    co_return results;
  }
  const ExportObject object = compound.object();
  const auto found = co_await object.store().access(object.caller(), object.handle, asked);
  if (!found) co_return v4::ACCESS4res{to_nfsstat4(found.error()), {}};
  std::uint32_t granted = found->granted;
  if (object.read_only())
    granted &= ~(vfs::access::kModify | vfs::access::kExtend | vfs::access::kDelete);
  results.resok4() = {asked, granted};
  co_return results;
}

}  // namespace stag::nfs::nfs4
