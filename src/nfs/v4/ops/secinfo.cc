// SECINFO and SECINFO_NO_NAME (RFC 8881 18.29, 18.45): the security flavors that an object takes.
// Both consume the current filehandle (2.6.3.1.1.8).
#include "nfs/v4/ops/operations.h"

namespace stag::nfs::nfs4 {

namespace {

// Folders of the pseudo file system are open to whatever a server without exports would take.
const std::vector<oncrpc::AuthFlavor>& flavors_of(const Object& object) {
  static const std::vector<oncrpc::AuthFlavor> kOfFolders = ExportOptions{}.flavors;
  const auto* of_export = std::get_if<ExportObject>(&object);
  return of_export != nullptr ? of_export->options->flavors : kOfFolders;
}

v4::SECINFO4res answer(Compound& compound) {
  v4::SECINFO4res results;
  for (const oncrpc::AuthFlavor flavor : flavors_of(compound.current())) {
    v4::secinfo4 entry;
    entry.flavor = static_cast<std::uint32_t>(flavor);
    results.resok4().push_back(entry);
  }
  compound.set_current({});
  return results;
}

}  // namespace

Task<v4::SECINFO4res> secinfo(Compound& compound, v4::SECINFO4args& args) {
  v4::LOOKUP4args name{args.name};
  const v4::LOOKUP4res found = co_await lookup(compound, name);
  if (found.status != v4::NFS4_OK) co_return v4::SECINFO4res{found.status, {}};
  co_return answer(compound);
}

Task<v4::SECINFO_NO_NAME4res> secinfo_no_name(Compound& compound, v4::SECINFO_NO_NAME4args& style) {
  if (style == v4::SECINFO_STYLE4_PARENT) {
    const v4::LOOKUPP4res above = co_await lookupp(compound);
    if (above.status != v4::NFS4_OK) co_return v4::SECINFO_NO_NAME4res{above.status, {}};
  }
  co_return answer(compound);
}

}  // namespace stag::nfs::nfs4
