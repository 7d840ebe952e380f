// vfs/memory: a FileSystem that keeps everything in memory; its content ends with the object. It
// supports every operation and is the reference for the behaviour of other stores.
//
// Data. File data lies in reference-counted extents that do not change while references to them
// exist: read() yields references, write() keeps large owned Buffers as they are, so that a payload
// which a transport has placed into a Block of placement() is stored without a copy. Writes are
// FileSync: a crash of the process loses the whole store, durable or not.
//
// Threads. Any number of loops may share one MemoryFileSystem. Every operation ends before its call
// returns, on the caller's thread.
//
// Errors. Beyond Options::max_bytes operations fail with NoSpace. Handles of another or an earlier
// store are Stale (Options::instance).
#pragma once

#include <memory>

#include "vfs/memory/options.h"
#include "vfs/vfs.h"

namespace stag::vfs {
namespace memory {
class Store;
}

class MemoryFileSystem final : public FileSystem {
 public:
  // An empty root directory. Throws std::bad_alloc.
  explicit MemoryFileSystem(const memory::Options& options = {});
  ~MemoryFileSystem() override;

  Handle root() const override;
  // Handles begin with the number of their store.
  std::string handle_space() const override { return "memory"; }
  Limits limits() const override;
  Operation<Attributes> attributes(CallerContext caller, const Handle& object) override;
  Operation<Change> set_attributes(CallerContext caller, const Handle& object,
                                   const SetAttributes& changes,
                                   std::optional<Time> guard) override;
  Operation<Found> lookup(CallerContext caller, const Handle& directory,
                          std::string_view name) override;
  Operation<Access> access(CallerContext caller, const Handle& object,
                           std::uint32_t asked) override;
  Operation<Link> readlink(CallerContext caller, const Handle& symlink) override;
  Operation<ReadResult> read(CallerContext caller, const Handle& file, std::uint64_t offset,
                             std::uint32_t count) override;
  Operation<WriteResult> write(CallerContext caller, const Handle& file, std::uint64_t offset,
                               Rope data, Stability stability) override;
  Operation<Change> commit(CallerContext caller, const Handle& file, std::uint64_t offset,
                           std::uint32_t count) override;
  Operation<Created> create(CallerContext caller, const Handle& directory, std::string_view name,
                            const CreateHow& how) override;
  Operation<Created> mkdir(CallerContext caller, const Handle& directory, std::string_view name,
                           const SetAttributes& attributes) override;
  Operation<Created> symlink(CallerContext caller, const Handle& directory, std::string_view name,
                             std::string_view target, const SetAttributes& attributes) override;
  Operation<Created> mknod(CallerContext caller, const Handle& directory, std::string_view name,
                           Special special, const SetAttributes& attributes) override;
  Operation<Linked> link(CallerContext caller, const Handle& file, const Handle& directory,
                         std::string_view name) override;
  Operation<Change> remove(CallerContext caller, const Handle& directory,
                           std::string_view name) override;
  Operation<Change> rmdir(CallerContext caller, const Handle& directory,
                          std::string_view name) override;
  Operation<Renamed> rename(CallerContext caller, const Handle& from_directory,
                            std::string_view from, const Handle& to_directory,
                            std::string_view to) override;
  Operation<Listed> list(CallerContext caller, const Handle& directory, ListFrom from,
                         DirectorySink& sink) override;
  Operation<Usage> usage(CallerContext caller) override;
  Operation<ObjectAcls> acls(CallerContext caller, const Handle& object) override;
  Operation<Change> set_acls(CallerContext caller, const Handle& object,
                             const SetAcls& changes) override;
  Operation<Sought> seek(CallerContext caller, const Handle& file, std::uint64_t offset,
                         SeekTo what) override;
  Operation<Change> allocate(CallerContext caller, const Handle& file, std::uint64_t offset,
                             std::uint64_t length) override;
  Operation<Change> deallocate(CallerContext caller, const Handle& file, std::uint64_t offset,
                               std::uint64_t length) override;
  Operation<Change> clone(CallerContext caller, const Handle& from, const Handle& to,
                          CopyRange range) override;
  Operation<Copied> copy(CallerContext caller, const Handle& from, const Handle& to,
                         CopyRange range) override;
  Operation<std::string> xattr(CallerContext caller, const Handle& object,
                               std::string_view name) override;
  Operation<Change> set_xattr(CallerContext caller, const Handle& object, std::string_view name,
                              std::string_view value, XattrMode mode) override;
  Operation<std::vector<std::string>> list_xattrs(CallerContext caller,
                                                  const Handle& object) override;
  Operation<Change> remove_xattr(CallerContext caller, const Handle& object,
                                 std::string_view name) override;

 private:
  const std::unique_ptr<memory::Store> store_;
};

}  // namespace stag::vfs
