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
class Described {
 public:
  explicit Described(Request& request) : handle_(request.add(v4::OP_GETFH)) {
    request.add_getattr(node_attributes(), values_);
  }
  Described(const Described&) = delete;
  Described& operator=(const Described&) = delete;

  std::optional<Found> found(Reply& reply) const {
    const std::optional<Handle> is = handle(reply);
    if (!is || !values_.describe_node()) return std::nullopt;
    return Found{*is, values_.attributes};
  }
  // Also where GETATTR failed.
  std::optional<Handle> handle(Reply& reply) const {
    auto* const got = reply.get(handle_, &OpResult::opgetfh);
    return got == nullptr ? std::nullopt : Handle::from(got->resok4().object.bytes());
  }

 private:
  std::size_t handle_;
  Values values_;
};

}  // namespace stag::nfs::client::nfs4
