// Crossing from one export into another below it, at any depth (RFC 8881 7.5): /srv and /srv/a/b.
//
// Which folder of a store is the one that leads to an export is told by its path, as the exports
// are. A client has a filehandle only, so the path is walked from the root of the export, and the
// handle at its end compared. That takes look-ups only where exports are nested, and of LOOKUP only
// where the name is one that leads on.
#pragma once

#include <string_view>

#include "nfs/v4/compound/compound.h"

namespace stag::nfs::nfs4 {

inline bool is_root(const ExportObject& object) {
  return object.handle == object.store().root();
}

// The node of the pseudo file system at this folder of an export, if it has children; null: it
// leads to no export. With `name`: only if it has a child of that name.
Task<const PseudoFs::Node*> node_at(const Compound& compound, ExportObject directory,
                                    std::optional<std::string_view> name);
// Where the current filehandle is in the pseudo file system; null: within an export.
const PseudoFs::Node* node_here(const Compound& compound);
// What of the pseudo file system has this name here; null: nothing.
Task<const PseudoFs::Node*> child_here(const Compound& compound, std::string_view name);
// The folder that the parent of an export's root is for a client: of the export above, or of the
// pseudo file system. The node has a parent.
Task<Result<Object, v4::nfsstat4>> parent_of_root(const Compound& compound,
                                                  const PseudoFs::Node& node);

}  // namespace stag::nfs::nfs4
