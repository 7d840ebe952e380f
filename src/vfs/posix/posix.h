// vfs/posix: a FileSystem that exports a folder of this machine.
//
// Threads. Any number of loops may share one PosixFileSystem. Operations that cannot block run on
// the caller's loop (attributes of an open object, cached data with RWF_NOWAIT, cached names), if
// the file system is in memory or on a disk of this machine. All others run on workers
// (Options::at_once, workers, sync_workers); when the queue of the workers is full, an operation
// fails with Delay. The destructor passes the open descriptors to the workers, because close(2) may
// block too.
//
// Effects on the process. A loop's thread that writes loses CAP_SYS_RESOURCE, so that quotas hold
// for root, too. Files of a file system in memory that are read again and again are mapped, and the
// process gets a handler for SIGBUS: a thread that reads a mapped file receives SIGBUS if the file
// is truncated meanwhile.
//
// Local programs. A lease on a file has the kernel keep other programs of this machine waiting. The
// first one starts a thread, which the kernel tells of them by a signal of its own.
//
// Users. If the process runs as root, every operation runs as the caller's user and groups: the
// thread that executes it, a worker or the loop, takes on that user for the length of the system
// calls and never over a co_await. Without root, every operation runs as the user of the process,
// whatever the credentials say (serves_all_as_one()). A root that may not take on other users opens
// no folder.
//
// Durability. Unstable writes are in the page cache. When a sync fails, write_verifier_epoch()
// rises, of all stores on that file system, so that the server's write verifier changes and clients
// write again (RFC 1813 3.3.7). A file is not closed with writes that no sync has covered, but for
// those of a store that is closed itself, whose epoch rises (decision 0081).
#pragma once

#include <memory>
#include <string>

#include "vfs/posix/options.h"
#include "vfs/vfs.h"

namespace stag::vfs {
namespace posix {
class Tree;
}

class PosixFileSystem final : public FileSystem {
 public:
  using Options = posix::Options;

  // Opens the folder. Blocks. Fails with one sentence for the user, for example because the folder
  // or the state directory does not exist, or because one of them lies in the other.
  static Result<std::unique_ptr<PosixFileSystem>, std::string> open(const Options& options);
  ~PosixFileSystem() override;

  // Whether all callers act as the user of this process, because it does not run as root.
  static bool serves_all_as_one();
  // Whether handles are the kernel's (HandleKind::Kernel) and not those of a table.
  bool uses_kernel_handles() const;
  // Whether the caller's loop executes operations that cannot block (AtOnce).
  bool answers_at_once() const;

  Handle root() const override;
  std::string identity() const override;
  std::string handle_space() const override;
  Limits limits() const override;
  std::uint64_t write_verifier_epoch() const override;
  // Without workers it blocks.
  void close_unused() noexcept override;
  const Credentials& acting_as(const Credentials& caller) const override;
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
  Operation<std::shared_ptr<Lease>> lease(CallerContext caller, const Handle& file, LeaseKind kind,
                                          LeaseWanted wanted) override;
  Operation<std::unique_ptr<LocalLocks>> local_locks(CallerContext caller,
                                                     const Handle& file) override;

 private:
  PosixFileSystem(std::shared_ptr<posix::Tree> tree, const Options& options);
  // The Executor for operations that change names or attributes.
  Executor* changers() const;

  std::shared_ptr<posix::Tree> tree_;
  const std::shared_ptr<Executor> workers_;
  const std::shared_ptr<Executor> sync_workers_;
};

}  // namespace stag::vfs
