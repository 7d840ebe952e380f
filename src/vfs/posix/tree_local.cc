// What the tree has to do with local programs: leases and locks.
#include "vfs/posix/ofd_locks.h"
#include "vfs/posix/tree.h"

namespace stag::vfs::posix {
namespace {

class ObjectLease final : public Lease {
 public:
  ObjectLease(ObjectRef object, std::shared_ptr<KernelLease> lease, LeaseWanted wanted,
              std::shared_ptr<Executor> workers)
      : object_(std::move(object)),
        lease_(std::move(lease)),
        workers_(std::move(workers)),
        listener_(lease_->listen(std::move(wanted))) {}
  // To close a descriptor may block.
  ~ObjectLease() override {
    lease_->unlisten(listener_);
    auto leave = [object = std::move(object_), lease = std::move(lease_)]() mutable {
      lease.reset();
      object->leave_lease();
    };
    if (workers_ == nullptr) {
      leave();
      return;
    }
    Executor::Job job{std::move(leave), {}, [](void*, Executor::Function) {}};
    job.must_run = true;
    // Without a thread for it the kernel's wish would be nobody's to hear.
    if (!workers_->submit(std::move(job))) job.work();
  }
  std::optional<Duration> wanted() const override {
    if (!lease_->is_wanted()) return std::nullopt;
    return KernelLease::patience();
  }

 private:
  ObjectRef object_;
  std::shared_ptr<KernelLease> lease_;
  const std::shared_ptr<Executor> workers_;
  const KernelLease::Listener listener_;
};

}  // namespace

Outcome<std::shared_ptr<Lease>> Tree::lease(const Handle& file, LeaseKind kind, LeaseWanted wanted,
                                            const std::shared_ptr<Executor>& workers) {
  if (!sees_local_programs_) return Failure{Status::NotSupported};
  auto opened = resolve_file(file);
  if (!opened) return Failure{opened.error()};
  auto lease = opened->object->join_lease(kind, opened->attributes.uid);
  if (!lease) return Failure{lease.error()};
  return std::shared_ptr<Lease>(std::make_shared<ObjectLease>(
      std::move(opened->object), *std::move(lease), std::move(wanted), workers));
}

// Elsewhere a lock may wait for another machine.
Outcome<std::unique_ptr<LocalLocks>> Tree::local_locks(const Handle& file,
                                                       const std::shared_ptr<Executor>& workers) {
  if (!sees_local_programs_ || !is_local_) return Failure{Status::NotSupported};
  auto opened = resolve_file(file);
  if (!opened) return Failure{opened.error()};
  auto descriptor = opened->object->open_for_locks();
  if (!descriptor) return Failure{descriptor.error()};
  return make_ofd_locks(std::move(opened->object), *std::move(descriptor), workers);
}

}  // namespace stag::vfs::posix
