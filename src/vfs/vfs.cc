// What a store need not have.
#include "vfs/vfs.h"

namespace stag::vfs {

Operation<Sought> FileSystem::seek(CallerContext, const Handle&, std::uint64_t, SeekTo) {
  return Failure{Status::NotSupported};
}
Operation<Change> FileSystem::allocate(CallerContext, const Handle&, std::uint64_t, std::uint64_t) {
  return Failure{Status::NotSupported};
}
Operation<Change> FileSystem::deallocate(CallerContext, const Handle&, std::uint64_t,
                                         std::uint64_t) {
  return Failure{Status::NotSupported};
}
Operation<Change> FileSystem::clone(CallerContext, const Handle&, const Handle&, CopyRange) {
  return Failure{Status::NotSupported};
}
Operation<Copied> FileSystem::copy(CallerContext, const Handle&, const Handle&, CopyRange) {
  return Failure{Status::NotSupported};
}
Operation<std::string> FileSystem::xattr(CallerContext, const Handle&, std::string_view) {
  return Failure{Status::NotSupported};
}
Operation<Change> FileSystem::set_xattr(CallerContext, const Handle&, std::string_view,
                                        std::string_view, XattrMode) {
  return Failure{Status::NotSupported};
}
Operation<std::vector<std::string>> FileSystem::list_xattrs(CallerContext, const Handle&) {
  return Failure{Status::NotSupported};
}
Operation<Change> FileSystem::remove_xattr(CallerContext, const Handle&, std::string_view) {
  return Failure{Status::NotSupported};
}

Operation<std::shared_ptr<Lease>> FileSystem::lease(CallerContext, const Handle&, LeaseKind,
                                                    LeaseWanted) {
  return Failure{Status::NotSupported};
}
Operation<std::unique_ptr<LocalLocks>> FileSystem::local_locks(CallerContext, const Handle&) {
  return Failure{Status::NotSupported};
}

}  // namespace stag::vfs
