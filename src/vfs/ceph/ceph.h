// vfs/ceph: a FileSystem that exports a directory of a CephFS, which servers on several machines
// export at the same time (docs/scale.md). It loads libcephfs when it is opened.
//
// Threads. Any number of loops may share one CephFileSystem. libcephfs blocks, so every operation
// runs on workers (Options::workers, sync_workers); when their queue is full, an operation fails
// with Delay. A cluster that does not answer holds these workers and nobody else. The destructor
// passes the mount to them, because to leave the cluster blocks too.
//
// Users. Operations run with the caller's user and groups; uid 0 is root to CephFS. What the Ceph
// user of the mount may do bounds all of them.
//
// Sharing. Handles are the same in every server that exports the same directory. Other clients of
// the file system change it unseen: there are no leases here, so the server delegates nothing, and
// byte-range locks stay within one server.
//
// Durability. Unstable writes are in the memory of this process until they are committed. When that
// fails, write_verifier_epoch() rises, so that the server's write verifier changes and clients
// write again (RFC 1813 3.3.7). It begins with a number by chance: what one CephFileSystem has not
// committed another one, opened in its place, does not know.
#pragma once

#include <memory>
#include <string>

#include "vfs/ceph/options.h"
#include "vfs/vfs.h"

namespace stag::vfs {
namespace ceph {
class Tree;
}

class CephFileSystem final : public FileSystem {
 public:
  using Options = ceph::Options;

  // Mounts the file system. Blocks for as long as the cluster does. Fails with one sentence for the
  // user.
  static Result<std::unique_ptr<CephFileSystem>, std::string> open(const Options& options);
  ~CephFileSystem() override;

  Handle root() const override;
  std::string identity() const override;
  std::string handle_space() const override;
  Limits limits() const override;
  std::uint64_t write_verifier_epoch() const override;
  void close_unused() noexcept override;
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
  // The only operation on ranges that it has: CephFS knows no holes, promises nobody space, and
  // shares none between files.
  Operation<Change> deallocate(CallerContext caller, const Handle& file, std::uint64_t offset,
                               std::uint64_t length) override;
  Operation<std::string> xattr(CallerContext caller, const Handle& object,
                               std::string_view name) override;
  Operation<Change> set_xattr(CallerContext caller, const Handle& object, std::string_view name,
                              std::string_view value, XattrMode mode) override;
  Operation<std::vector<std::string>> list_xattrs(CallerContext caller,
                                                  const Handle& object) override;
  Operation<Change> remove_xattr(CallerContext caller, const Handle& object,
                                 std::string_view name) override;
  // Access, as where there are no leases: other clients of the cluster are not told to wait.
  Operation<std::shared_ptr<Lease>> lease(CallerContext caller, const Handle& file, LeaseKind kind,
                                          LeaseWanted wanted) override;

 private:
  CephFileSystem(std::unique_ptr<ceph::Tree> tree, const Options& options);
  // The Executor for operations that change names or attributes.
  Executor* changers() const;

  std::shared_ptr<ceph::Tree> tree_;  // its last owner may block
  const std::shared_ptr<Executor> workers_;
  const std::shared_ptr<Executor> sync_workers_;
  std::weak_ptr<const int> closing_;  // lasts as long as a job of close_unused()
};

}  // namespace stag::vfs
