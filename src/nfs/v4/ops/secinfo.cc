// SECINFO and SECINFO_NO_NAME (RFC 8881 18.29, 18.45): the security flavors that an object takes.
// Both consume the current filehandle (2.6.3.1.1.8).
#include "nfs/v4/ops/operations.h"

namespace stag::nfs::nfs4 {

namespace {

v4::SECINFO4res answer(Compound& compound, const ExportOptions& options) {
  v4::SECINFO4res results;
  for (const oncrpc::AuthFlavor flavor : options.flavors) {
    v4::secinfo4 entry;
    entry.flavor = static_cast<std::uint32_t>(flavor);
    results.resok4().push_back(entry);
  }
  compound.set_current({});
  return results;
}

// Folders of the pseudo file system are open to whatever a server without exports would take.
v4::SECINFO4res answer(Compound& compound) {
  const auto* of_export = std::get_if<ExportObject>(&compound.current());
  return answer(compound, of_export != nullptr ? *of_export->options : ExportOptions{});
}

// 2.6.3.1.1.5: of an export that the caller's own flavor does not lead into, too.
v4::SECINFO4res answer(Compound& compound, const Export& mounted) {
  const ExportOptions* options = mounted.options_for(compound.admission().call().origin());
  if (options == nullptr) return {v4::NFS4ERR_ACCESS, {}};
  return answer(compound, *options);
}

// Where the current filehandle is in the pseudo file system; null: within an export.
const PseudoFs::Node* node_here(const Compound& compound) {
  if (const auto* folder = std::get_if<const PseudoFs::Node*>(&compound.current())) return *folder;
  const ExportObject& object = compound.object();
  if (object.handle != object.store().root()) return nullptr;
  return &compound.pseudo_fs().node_of(*object.export_);
}

}  // namespace

Task<v4::SECINFO4res> secinfo(Compound& compound, v4::SECINFO4args& args) {
  const PseudoFs::Node* here = node_here(compound);
  const PseudoFs::Node* child = here != nullptr ? here->child(args.name) : nullptr;
  if (child != nullptr && child->mounted != nullptr) co_return answer(compound, *child->mounted);
  v4::LOOKUP4args name{args.name};
  const v4::LOOKUP4res found = co_await lookup(compound, name);
  if (found.status != v4::NFS4_OK) co_return v4::SECINFO4res{found.status, {}};
  co_return answer(compound);
}

Task<v4::SECINFO_NO_NAME4res> secinfo_no_name(Compound& compound, v4::SECINFO_NO_NAME4args& style) {
  if (style != v4::SECINFO_STYLE4_PARENT) co_return answer(compound);
  const PseudoFs::Node* here = node_here(compound);
  const PseudoFs::Node* parent = here != nullptr ? here->parent : nullptr;
  if (parent != nullptr && parent->mounted != nullptr) co_return answer(compound, *parent->mounted);
  const v4::LOOKUPP4res above = co_await lookupp(compound);
  if (above.status != v4::NFS4_OK) co_return v4::SECINFO_NO_NAME4res{above.status, {}};
  co_return answer(compound);
}

}  // namespace stag::nfs::nfs4
