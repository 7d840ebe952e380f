#include "vfs/posix/kernel_lease.h"

#include <fcntl.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <fstream>
#include <new>

#include "vfs/posix/credentials.h"
#include "vfs/posix/lease_watcher.h"

namespace stag::vfs::posix {
namespace {

int type_of(LeaseKind kind) {
  return kind == LeaseKind::Read ? F_RDLCK : F_WRLCK;
}

// The owner of a file may take a lease without CAP_LEASE, which not every root has.
bool set_lease(int descriptor, LeaseKind kind, std::uint32_t owner) {
  if (::fcntl(descriptor, F_SETLEASE, type_of(kind)) == 0) return true;
  if (errno != EACCES || !can_switch_users()) return false;
  const Credentials as_owner{owner, 65534, {}};
  const CredentialScope scope(as_owner);
  return scope.ok() && ::fcntl(descriptor, F_SETLEASE, type_of(kind)) == 0;
}

}  // namespace

// Read each time: an administrator may change it. 0 is no limit.
Duration KernelLease::patience() {
  using std::chrono::seconds;
  constexpr Duration kReserve = seconds(5);
  long limit = 0;
  std::ifstream("/proc/sys/fs/lease-break-time") >> limit;
  if (limit <= 0) return std::chrono::hours(24);
  return std::max<Duration>(seconds(limit) - kReserve, seconds(limit) / 2);
}

Outcome<std::shared_ptr<KernelLease>> KernelLease::take(std::shared_ptr<const UniqueFd> descriptor,
                                                        LeaseKind kind, std::uint32_t owner) {
  auto watcher = LeaseWatcher::of_process();
  if (watcher == nullptr) return Failure{Status::Delay};
  std::shared_ptr<KernelLease> lease(
      new KernelLease(std::move(watcher), std::move(descriptor), kind));
  if (const auto refused = lease->begin(owner)) return Failure{*refused};
  return lease;
}

KernelLease::KernelLease(std::shared_ptr<LeaseWatcher> watcher,
                         std::shared_ptr<const UniqueFd> descriptor, LeaseKind kind)
    : watcher_(std::move(watcher)), descriptor_(std::move(descriptor)), kind_(kind) {}

std::optional<Status> KernelLease::begin(std::uint32_t owner) {
  if (!watcher_->add(descriptor_->fd(), *this)) return Status::TooManyObjects;
  if (set_lease(descriptor_->fd(), kind_, owner)) return std::nullopt;
  return errno == EAGAIN ? Status::Delay : Status::Access;
}

// Others may use the descriptor for a while yet.
KernelLease::~KernelLease() {
  watcher_->remove(descriptor_->fd());
  ::fcntl(descriptor_->fd(), F_SETLEASE, F_UNLCK);
}

KernelLease::Listener KernelLease::listen(LeaseWanted wanted) {
  Listener listener = 0;
  {
    const std::scoped_lock lock(mutex_);
    listener = ++last_listener_;
    listeners_.emplace_back(listener, std::move(wanted));
  }
  if (is_wanted()) tell();
  return listener;
}

void KernelLease::unlisten(Listener listener) {
  const std::scoped_lock lock(mutex_);
  std::erase_if(listeners_, [&](const auto& one) { return one.first == listener; });
}

void KernelLease::give_up() {
  ::fcntl(descriptor_->fd(), F_SETLEASE, F_UNLCK);
  tell();
}

void KernelLease::look() {
  if (::fcntl(descriptor_->fd(), F_GETLEASE) != type_of(kind_)) tell();
}

void KernelLease::tell() {
  wanted_ = true;
  const Duration waits = patience();
  for (;;) {
    std::pair<Listener, LeaseWanted> next;
    {
      const std::scoped_lock lock(mutex_);
      if (listeners_.empty()) return;
      next = std::move(listeners_.back());
      listeners_.pop_back();
    }
    try {
      next.second(waits);
    } catch (const std::bad_alloc&) {
      untell(std::move(next));
      throw;
    }
  }
}

// Its place is still there, unless another began to listen meanwhile.
void KernelLease::untell(std::pair<Listener, LeaseWanted> listener) {
  const std::scoped_lock lock(mutex_);
  listeners_.push_back(std::move(listener));
}

}  // namespace stag::vfs::posix
