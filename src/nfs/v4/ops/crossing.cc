#include "nfs/v4/ops/crossing.h"

namespace stag::nfs::nfs4 {

namespace {

// What an export shows to whom does not depend on who walks by.
const vfs::Credentials kServer{0, 0, {}};

// Where these names lead from the root of the object's export; nullopt: nowhere.
Task<std::optional<vfs::Handle>> walk(ExportObject object, std::vector<std::string_view> names) {
  const vfs::CallerContext server{*object.loop, kServer, object.connection, object.worker_time};
  vfs::Handle at = object.store().root();
  for (const std::string_view name : names) {
    const auto found = co_await object.store().lookup(server, at, name);
    if (!found) co_return std::nullopt;
    at = found->node.handle;
  }
  co_return at;
}

}  // namespace

Task<const PseudoFs::Node*> node_at(const Compound& compound, ExportObject directory,
                                    std::optional<std::string_view> name) {
  const PseudoFs::Node* const top = compound.pseudo_fs().node_of(*directory.export_);
  if (top == nullptr) co_return nullptr;
  const auto leads_on = [&](const PseudoFs::Node& node) {
    return name ? node.child(*name) != nullptr : !node.children.empty();
  };
  if (is_root(directory)) co_return leads_on(*top) ? top : nullptr;
  for (const PseudoFs::Node* node : top->inner) {
    if (!leads_on(*node)) continue;
    const auto there = co_await walk(directory, PseudoFs::way(*top, *node));
    if (there == directory.handle) co_return node;
  }
  co_return nullptr;
}

const PseudoFs::Node* node_here(const Compound& compound) {
  if (const auto* folder = std::get_if<const PseudoFs::Node*>(&compound.current())) return *folder;
  if (!is_root(compound.object())) return nullptr;
  return compound.pseudo_fs().node_of(*compound.object().export_);
}

Task<const PseudoFs::Node*> child_here(const Compound& compound, std::string_view name) {
  const PseudoFs::Node* here = node_here(compound);
  if (here == nullptr && compound.has_nested_exports())
    here = co_await node_at(compound, compound.object(), name);
  co_return here == nullptr ? nullptr : here->child(name);
}

Task<Result<Object, v4::nfsstat4>> parent_of_root(const Compound& compound,
                                                  const PseudoFs::Node& node) {
  const PseudoFs::Node& parent = *node.parent;
  const PseudoFs::Node* const above = PseudoFs::export_above(node);
  const auto entered = compound.enter(above == nullptr ? parent : *above);
  if (!entered || above == nullptr || above == &parent) co_return entered;
  if (!std::holds_alternative<ExportObject>(*entered)) co_return compound.enter(parent);
  ExportObject object = std::get<ExportObject>(*entered);
  const auto there = co_await walk(object, PseudoFs::way(*above, parent));
  // A folder that only the exports' names speak of is one of the pseudo file system.
  if (!there) co_return compound.enter(parent);
  object.handle = *there;
  co_return Object{object};
}

}  // namespace stag::nfs::nfs4
