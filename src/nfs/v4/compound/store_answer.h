// What a store is asked about one object for its attributes. It takes no Call, so that a question
// may outlast the one that asked it.
#pragma once

#include <optional>

#include "nfs/export/admission.h"
#include "nfs/v4/attributes/attributes.h"

namespace stag::nfs::nfs4 {

struct StoreAnswer {
  vfs::Attributes attributes;
  // Each as far as the attributes that were asked for take it.
  std::optional<vfs::Usage> usage{};
  std::optional<vfs::Acls> acls{};
};
using StoreAnswered = Result<StoreAnswer, v4::nfsstat4>;

// `attributes` are those of the object, asked of its store; it outlives the Task.
Task<StoreAnswered> ask_store(const ExportObject& object, AttributeSet asked,
                              vfs::Operation<vfs::Attributes> attributes);

}  // namespace stag::nfs::nfs4
