// What only some versions of NFS have.
#include "nfs/client/protocol/protocol.h"

namespace stag::nfs::client {
namespace {

template <class T>
Task<Outcome<T>> not_in_this_version(OperationContext context) {
  co_return Failure{Error::of_status(context, Status::NotSupported)};
}

}  // namespace

Task<Outcome<Opened>> Protocol::open(OperationContext context, Handle file, std::uint32_t asked) {
  const Outcome<std::uint32_t> granted = co_await access(context, file, asked);
  if (!granted) co_return Failure{granted.error()};
  if ((*granted & asked) != asked) co_return Failure{Error::of_status(context, Status::Access)};
  const Outcome<Attributes> attributes = co_await getattr(context, file);
  if (!attributes) co_return Failure{attributes.error()};
  co_return Opened{file, *attributes};
}
Task<Outcome<std::vector<ReadPart>>> Protocol::read_several(OperationContext context, File file,
                                                            std::vector<ReadRange> ranges) {
  const Outcome<ReadPart> part =
      co_await read(context, file, ranges.front().offset, ranges.front().to);
  if (!part) co_return Failure{part.error()};
  co_return std::vector<ReadPart>{*part};
}
Task<Outcome<Made>> Protocol::create_open(OperationContext context, Handle directory,
                                          std::string_view name, SetAttributes attributes,
                                          CreateMode mode, std::uint32_t) {
  return create(context, directory, name, attributes, mode);
}
Task<Outcome<Ok>> Protocol::close(OperationContext, File) {
  co_return Ok{};
}
std::vector<LockPiece> Protocol::locks_within(const std::vector<File>&, LockOwner, FileLock) const {
  return {};
}
Task<Outcome<Ok>> Protocol::lock(OperationContext context, File, LockOwner, FileLock) {
  return not_in_this_version<Ok>(context);
}
Task<Outcome<Ok>> Protocol::unlock(OperationContext context, File, LockOwner, FileLock) {
  return not_in_this_version<Ok>(context);
}
Task<Outcome<std::optional<FileLock>>> Protocol::test_lock(OperationContext context, File,
                                                           LockOwner, FileLock) {
  return not_in_this_version<std::optional<FileLock>>(context);
}

Task<Outcome<Nfs4Acl>> Protocol::nfs4_acl(OperationContext context, Handle, std::uint32_t) {
  return not_in_this_version<Nfs4Acl>(context);
}
Task<Outcome<Ok>> Protocol::set_nfs4_acl(OperationContext context, Handle, Nfs4Acl) {
  return not_in_this_version<Ok>(context);
}

Task<Outcome<std::optional<std::uint64_t>>> Protocol::seek(OperationContext context, Handle,
                                                           std::uint64_t, Content) {
  return not_in_this_version<std::optional<std::uint64_t>>(context);
}
Task<Outcome<SparsePart>> Protocol::read_plus(OperationContext context, Handle, std::uint64_t,
                                              MutableBytes) {
  return not_in_this_version<SparsePart>(context);
}
Task<Outcome<Ok>> Protocol::allocate(OperationContext context, File, FileRange) {
  return not_in_this_version<Ok>(context);
}
Task<Outcome<Ok>> Protocol::deallocate(OperationContext context, File, FileRange) {
  return not_in_this_version<Ok>(context);
}
Task<Outcome<CopySource>> Protocol::notify_copy(OperationContext context, File, Address) {
  return not_in_this_version<CopySource>(context);
}
Task<Outcome<ReadPart>> Protocol::read_notified(OperationContext context, CopySource, std::uint64_t,
                                                MutableBytes) {
  return not_in_this_version<ReadPart>(context);
}
Task<Outcome<CopyPart>> Protocol::copy(OperationContext context, CopySource, FileRange, File,
                                       std::uint64_t, const CopyWatch&) {
  return not_in_this_version<CopyPart>(context);
}
Task<Outcome<Ok>> Protocol::clone(OperationContext context, Handle, FileRange, File,
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
