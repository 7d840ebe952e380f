// vfs/memory: a FileSystem that lives in memory and is gone with it. Complete, fast, and the
// reference for what the other stores do.
//
// File data is kept in reference-counted extents that do not change while anybody refers to them:
// read() hands out references, write() keeps large owned Buffers as they are, so a payload that a
// transport placed into a Block of placement() is stored without a copy. Every operation completes
// at once, on the caller's thread; many loops may share one MemoryFileSystem (memory/store.h says
// how). Writes are always FileSync: nothing is lost that would survive.
#pragma once

#include "vfs/memory/store.h"
#include "vfs/vfs.h"

namespace stag::vfs {

class MemoryFileSystem final : public FileSystem {
 public:
  explicit MemoryFileSystem(const memory::Options& options = {}) : store_(options) {}

  Handle root() const override { return store_.root(); }
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

 private:
  memory::Store store_;
};

}  // namespace stag::vfs
