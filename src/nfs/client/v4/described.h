// What a COMPOUND says of an object that it has found or made; included by .cc files of this
// folder.
#pragma once

#include "nfs/client/protocol/protocol.h"
#include "nfs/client/v4/attributes.h"
#include "nfs/client/v4/operations.h"

namespace stag::nfs::client::nfs4 {

inline Error no_object(OperationContext context) {
  return Error::of_protocol(context, "sent no usable handle and attributes of the object");
}

inline DirectoryChange change_of(const v4::change_info4& info) {
  return {info.before, info.after, info.atomic};
}

// What an OPEN says that has made a file, which was to get `wanted`.
inline void note_creation(Made& made, const v4::OPEN4resok& opened, const SetAttributes& wanted) {
  made.directory = change_of(opened.cinfo);
  made.attributes_set = !wanted.uid && !wanted.gid && wanted.size.value_or(0) == 0 &&
                        (!wanted.mode || has(opened.attrset, v4::FATTR4_MODE));
}

// GETFH and GETATTR of the current filehandle.
struct Described {
  explicit Described(Request& request)
      : handle(request.add(v4::OP_GETFH)),
        attributes(request.add(v4::OP_GETATTR, &Op::opgetattr, {node_attributes()})) {}

  std::optional<Found> found(Reply& reply) const {
    auto* of_handle = reply.get(handle, &OpResult::opgetfh);
    auto* of_attributes = reply.get(attributes, &OpResult::opgetattr);
    if (of_handle == nullptr || of_attributes == nullptr) return std::nullopt;
    const std::optional<Values> values = values_of(of_attributes->resok4().obj_attributes);
    if (!values || !values->has_type) return std::nullopt;
    return Found{*Handle::from(of_handle->resok4().object.bytes()), values->attributes};
  }

  std::size_t handle;
  std::size_t attributes;
};

}  // namespace stag::nfs::client::nfs4
