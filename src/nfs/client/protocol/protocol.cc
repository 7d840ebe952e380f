// What only some versions of NFS have.
#include "nfs/client/protocol/protocol.h"

namespace stag::nfs::client {
namespace {

template <class T>
Task<Outcome<T>> not_in_this_version(OperationContext context) {
  co_return Failure{Error::of_status(context, Status::NotSupported)};
}

}  // namespace

Task<Outcome<std::optional<std::uint64_t>>> Protocol::seek(OperationContext context, Handle,
                                                           std::uint64_t, Content) {
  return not_in_this_version<std::optional<std::uint64_t>>(context);
}
Task<Outcome<Ok>> Protocol::allocate(OperationContext context, Handle, FileRange) {
  return not_in_this_version<Ok>(context);
}
Task<Outcome<Ok>> Protocol::deallocate(OperationContext context, Handle, FileRange) {
  return not_in_this_version<Ok>(context);
}
Task<Outcome<CopyPart>> Protocol::copy(OperationContext context, Handle, FileRange, Handle,
                                       std::uint64_t) {
  return not_in_this_version<CopyPart>(context);
}
Task<Outcome<Ok>> Protocol::clone(OperationContext context, Handle, FileRange, Handle,
                                  std::uint64_t) {
  return not_in_this_version<Ok>(context);
}
Task<Outcome<std::string>> Protocol::xattr(OperationContext context, Handle, std::string_view) {
  return not_in_this_version<std::string>(context);
}
Task<Outcome<Ok>> Protocol::set_xattr(OperationContext context, Handle, std::string_view, Bytes,
                                      XattrMode) {
  return not_in_this_version<Ok>(context);
}
Task<Outcome<std::vector<std::string>>> Protocol::list_xattrs(OperationContext context, Handle) {
  return not_in_this_version<std::vector<std::string>>(context);
}
Task<Outcome<Ok>> Protocol::remove_xattr(OperationContext context, Handle, std::string_view) {
  return not_in_this_version<Ok>(context);
}

}  // namespace stag::nfs::client
