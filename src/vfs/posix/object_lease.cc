// The lease on an object, and the descriptors beside it.
#include <fcntl.h>

#include "vfs/posix/object.h"

namespace stag::vfs::posix {

Outcome<std::shared_ptr<KernelLease>> Object::join_lease(LeaseKind kind, std::uint32_t owner) {
  std::lock_guard leasing(leasing_);
  if (auto shared = lease()) {
    if (kind == LeaseKind::Write || shared->kind() == LeaseKind::Write || shared->is_wanted())
      return Failure{Status::Delay};
    ++joined_;
    return shared;
  }
  const auto descriptor = prepare_for(kind);
  if (!descriptor) return Failure{Status::Delay};
  auto lease = KernelLease::take(*descriptor, kind, owner);
  if (!lease) {
    if (kind == LeaseKind::Write) close(*descriptor);
    return lease;
  }
  joined_ = 1;
  std::lock_guard lock(mutex_);
  lease_ = *lease;
  return lease;
}

// A user of another descriptor just now keeps it open, and there is no lease.
Outcome<SharedDescriptor> Object::prepare_for(LeaseKind kind) {
  if (kind == LeaseKind::Read) {
    close_writer();
    return open_reader();
  }
  SharedDescriptor kept = for_locks_.lock();
  if (kept == nullptr) {
    auto opened = open_file(O_RDWR);
    if (!opened) return opened;
    kept = *std::move(opened);
  }
  static_cast<void>(close_all_but(kept));
  return kept;
}

// What was open is closed by the caller, without the mutex.
Object::Slots Object::close_all_but(const SharedDescriptor& kept) {
  Slots closed;
  std::lock_guard lock(mutex_);
  closed.mapping.swap(mapping_);
  closed.reader = std::exchange(reader_, kept);
  closed.writer = std::exchange(writer_, kept);
  return closed;
}

void Object::close(const SharedDescriptor& descriptor) {
  Slots closed;
  std::lock_guard lock(mutex_);
  if (reader_ == descriptor) closed.reader.swap(reader_);
  if (writer_ == descriptor) closed.writer.swap(writer_);
  if (closed.reader != nullptr) closed.mapping.swap(mapping_);
}

// A descriptor for writing goes with its lease: a file that is open for writing cannot be executed.
void Object::leave_lease() {
  std::lock_guard leasing(leasing_);
  if (--joined_ != 0) return;
  std::shared_ptr<KernelLease> ended;
  {
    std::lock_guard lock(mutex_);
    ended.swap(lease_);
  }
  if (ended->kind() == LeaseKind::Write) close(ended->descriptor());
}

Outcome<SharedDescriptor> Object::open_for_locks() {
  std::lock_guard leasing(leasing_);
  if (const auto leased = lease()) {
    if (leased->kind() == LeaseKind::Write) {
      for_locks_ = leased->descriptor();
      return leased->descriptor();
    }
    leased->give_up();
  }
  auto opened = open_file(O_RDWR);
  if (opened) for_locks_ = *opened;
  if (opened || opened.error() == Status::TooManyObjects) return opened;
  return open_file(O_RDONLY);
}

}  // namespace stag::vfs::posix
