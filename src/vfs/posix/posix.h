// vfs/posix: a FileSystem that exports a folder of this machine (posix/tree.h says how it keeps
// what it promises).
//
// Threads. One PosixFileSystem serves any number of loops. What cannot block runs on the caller's
// loop (attributes of an open object, cached data with RWF_NOWAIT, cached names), provided that the
// file system is in memory or on a disk of this machine; everything else goes to workers
// (Options::at_once, workers, sync_workers). When they have no room, an operation is Delay. The
// destructor leaves what is open to the workers, too.
//
// A loop's thread that writes loses CAP_SYS_RESOURCE: quotas are for everybody. Of a file system in
// memory, files that are read again and again are mapped, and the process gets a handler for SIGBUS
// (posix/mapping.h).
//
// Users. As root, every operation runs as the caller's user and groups: the thread that executes
// it, a worker or the loop, is that user for the length of the system calls and never over a
// co_await (posix/credentials.h). Without root, everybody is the user the server runs as, whatever
// the credentials say (serves_all_as_one()).
//
// `Unstable` writes are in the page cache; a sync that fails raises write_verifier_epoch(), for the
// write verifier to follow.
#pragma once

#include <memory>
#include <string>

#include "vfs/posix/tree.h"
#include "vfs/vfs.h"

namespace stag::vfs {

class PosixFileSystem final : public FileSystem {
 public:
  using Options = posix::Options;

  // Fails with one sentence for the user: no such folder, no state directory.
  // Blocks.
  static Result<std::unique_ptr<PosixFileSystem>, std::string> open(const Options& options);
  ~PosixFileSystem() override;

  // Whether callers are not told apart because the server does not run as root.
  static bool serves_all_as_one();
  bool uses_kernel_handles() const { return tree_->uses_kernel_handles(); }
  // Whether anything is answered on the caller's loop.
  bool answers_at_once() const { return tree_->answers_at_once(); }

  Handle root() const override { return tree_->root(); }
  std::string identity() const override { return tree_->identity(); }
  Limits limits() const override { return tree_->limits(); }
  std::uint64_t write_verifier_epoch() const override { return tree_->write_verifier_epoch(); }
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
  PosixFileSystem(std::unique_ptr<posix::Tree> tree, const Options& options);
  // Of what changes names and attributes.
  Executor* changers() const;

  std::unique_ptr<posix::Tree> tree_;
  const std::shared_ptr<Executor> workers_;
  const std::shared_ptr<Executor> sync_workers_;
};

}  // namespace stag::vfs
