#include "vfs/memory/memory.h"

#include "vfs/change_rules.h"
#include "vfs/memory/store.h"

namespace stag::vfs {

MemoryFileSystem::MemoryFileSystem(const memory::Options& options)
    : store_(std::make_unique<memory::Store>(options)) {}

MemoryFileSystem::~MemoryFileSystem() = default;

Handle MemoryFileSystem::root() const {
  return store_->root();
}

Limits MemoryFileSystem::limits() const {
  Limits limits;
  limits.max_file_size = kLargestFile;
  limits.max_links = memory::kMaxLinks;
  limits.xattrs = true;
  return limits;
}

Operation<Attributes> MemoryFileSystem::attributes(CallerContext, const Handle& object) {
  return store_->attributes(object);
}

Operation<Change> MemoryFileSystem::set_attributes(CallerContext caller, const Handle& object,
                                                   const SetAttributes& changes,
                                                   std::optional<Time> guard) {
  return store_->set_attributes(caller.credentials, object, changes, guard);
}

Operation<Found> MemoryFileSystem::lookup(CallerContext caller, const Handle& directory,
                                          std::string_view name) {
  return store_->lookup(caller.credentials, directory, name);
}

Operation<Access> MemoryFileSystem::access(CallerContext caller, const Handle& object,
                                           std::uint32_t asked) {
  return store_->access(caller.credentials, object, asked);
}

Operation<Link> MemoryFileSystem::readlink(CallerContext, const Handle& symlink) {
  return store_->readlink(symlink);
}

Operation<ReadResult> MemoryFileSystem::read(CallerContext caller, const Handle& file,
                                             std::uint64_t offset, std::uint32_t count) {
  return store_->read(caller.credentials, file, offset, count);
}

Operation<WriteResult> MemoryFileSystem::write(CallerContext caller, const Handle& file,
                                               std::uint64_t offset, Rope data, Stability) {
  return store_->write(caller.credentials, file, offset, std::move(data));
}

Operation<Change> MemoryFileSystem::commit(CallerContext, const Handle& file, std::uint64_t,
                                           std::uint32_t) {
  return store_->commit(file);
}

Operation<Created> MemoryFileSystem::create(CallerContext caller, const Handle& directory,
                                            std::string_view name, const CreateHow& how) {
  return store_->create(caller.credentials, directory, name, how);
}

Operation<Created> MemoryFileSystem::mkdir(CallerContext caller, const Handle& directory,
                                           std::string_view name, const SetAttributes& attributes) {
  return store_->mkdir(caller.credentials, directory, name, attributes);
}

Operation<Created> MemoryFileSystem::symlink(CallerContext caller, const Handle& directory,
                                             std::string_view name, std::string_view target,
                                             const SetAttributes& attributes) {
  return store_->symlink(caller.credentials, directory, name, target, attributes);
}

Operation<Created> MemoryFileSystem::mknod(CallerContext caller, const Handle& directory,
                                           std::string_view name, Special special,
                                           const SetAttributes& attributes) {
  return store_->mknod(caller.credentials, directory, name, special, attributes);
}

Operation<Linked> MemoryFileSystem::link(CallerContext caller, const Handle& file,
                                         const Handle& directory, std::string_view name) {
  return store_->link(caller.credentials, file, directory, name);
}

Operation<Change> MemoryFileSystem::remove(CallerContext caller, const Handle& directory,
                                           std::string_view name) {
  return store_->remove(caller.credentials, directory, name);
}

Operation<Change> MemoryFileSystem::rmdir(CallerContext caller, const Handle& directory,
                                          std::string_view name) {
  return store_->rmdir(caller.credentials, directory, name);
}

Operation<Renamed> MemoryFileSystem::rename(CallerContext caller, const Handle& from_directory,
                                            std::string_view from, const Handle& to_directory,
                                            std::string_view to) {
  return store_->rename(caller.credentials, from_directory, from, to_directory, to);
}

Operation<Listed> MemoryFileSystem::list(CallerContext caller, const Handle& directory,
                                         ListFrom from, DirectorySink& sink) {
  return store_->list(caller.credentials, directory, from, sink);
}

Operation<Usage> MemoryFileSystem::usage(CallerContext) {
  return store_->usage();
}

Operation<ObjectAcls> MemoryFileSystem::acls(CallerContext, const Handle& object) {
  return store_->acls(object);
}

Operation<Change> MemoryFileSystem::set_acls(CallerContext caller, const Handle& object,
                                             const SetAcls& changes) {
  return store_->set_acls(caller.credentials, object, changes);
}

Operation<Sought> MemoryFileSystem::seek(CallerContext caller, const Handle& file,
                                         std::uint64_t offset, SeekTo what) {
  return store_->seek(caller.credentials, file, offset, what);
}

Operation<Change> MemoryFileSystem::allocate(CallerContext caller, const Handle& file,
                                             std::uint64_t offset, std::uint64_t length) {
  return store_->allocate(caller.credentials, file, offset, length);
}

Operation<Change> MemoryFileSystem::deallocate(CallerContext caller, const Handle& file,
                                               std::uint64_t offset, std::uint64_t length) {
  return store_->deallocate(caller.credentials, file, offset, length);
}

Operation<Change> MemoryFileSystem::clone(CallerContext caller, const Handle& from,
                                          const Handle& to, CopyRange range) {
  return store_->clone(caller.credentials, from, to, range);
}

Operation<Copied> MemoryFileSystem::copy(CallerContext caller, const Handle& from, const Handle& to,
                                         CopyRange range) {
  return store_->copy(caller.credentials, from, to, range);
}

Operation<std::string> MemoryFileSystem::xattr(CallerContext caller, const Handle& object,
                                               std::string_view name) {
  return store_->xattr(caller.credentials, object, name);
}

Operation<Change> MemoryFileSystem::set_xattr(CallerContext caller, const Handle& object,
                                              std::string_view name, std::string_view value,
                                              XattrMode mode) {
  return store_->set_xattr(caller.credentials, object, name, value, mode);
}

Operation<std::vector<std::string>> MemoryFileSystem::list_xattrs(CallerContext,
                                                                  const Handle& object) {
  return store_->list_xattrs(object);
}

Operation<Change> MemoryFileSystem::remove_xattr(CallerContext caller, const Handle& object,
                                                 std::string_view name) {
  return store_->remove_xattr(caller.credentials, object, name);
}

}  // namespace stag::vfs
