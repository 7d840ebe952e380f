// Changes of attributes.
#include <ctime>

#include "vfs/ceph/tree.h"
#include "vfs/change_rules.h"
#include "vfs/errors.h"

namespace stag::vfs::ceph {
namespace {

constexpr std::uint32_t kWriting = 2;  // as in AclEntry

timespec time_now() {
  timespec now{};
  ::clock_gettime(CLOCK_REALTIME, &now);
  return now;
}

// Whether the time is to be set, and `to` what.
bool takes_time(const SetTime& change, timespec& to) {
  if (change.how == SetTime::How::Keep) return false;
  if (change.how == SetTime::How::Now)
    to = time_now();
  else
    to = {static_cast<time_t>(change.time.seconds), static_cast<long>(change.time.nanoseconds)};
  return true;
}

// What the library's setattr() takes: values, and which of them.
struct Wanted {
  Stat values{};
  int mask = 0;
};

Wanted wanted_by(const SetAttributes& changes) {
  Wanted wanted;
  const auto take = [&wanted](const auto& change, auto& value, int bit) {
    if (!change) return;
    value = static_cast<std::remove_reference_t<decltype(value)>>(*change);
    wanted.mask |= bit;
  };
  take(changes.mode, wanted.values.stx_mode, CEPH_SETATTR_MODE);
  take(changes.uid, wanted.values.stx_uid, CEPH_SETATTR_UID);
  take(changes.gid, wanted.values.stx_gid, CEPH_SETATTR_GID);
  take(changes.size, wanted.values.stx_size, CEPH_SETATTR_SIZE);
  if (takes_time(changes.accessed, wanted.values.stx_atime)) wanted.mask |= CEPH_SETATTR_ATIME;
  if (takes_time(changes.modified, wanted.values.stx_mtime)) wanted.mask |= CEPH_SETATTR_MTIME;
  return wanted;
}

bool sets_now(const SetAttributes& changes) {
  return changes.accessed.how == SetTime::How::Now || changes.modified.how == SetTime::How::Now;
}

}  // namespace

std::optional<std::uint32_t> Tree::mode_without_ids(const Attributes& object) {
  constexpr std::uint32_t kSetUserId = 04000;
  constexpr std::uint32_t kSetGroupId = 02000;
  constexpr std::uint32_t kGroupExecutes = 010;
  if (object.type != FileType::Regular) return std::nullopt;
  std::uint32_t mode = object.mode & ~kSetUserId;
  // Without group execute the bit means mandatory locking, not identity.
  if ((mode & kGroupExecutes) != 0) mode &= ~kSetGroupId;
  return mode == object.mode ? std::nullopt : std::optional(mode);
}

// One request, so all of it or nothing. What ownership decides is decided (fault_of_change()); here
// is what permission to write decides, and then root asks: the library would want the owner for
// some of it.
std::optional<Status> Tree::apply(const Credentials& who, const Object& object,
                                  const SetAttributes& changes) {
  if (changes.size) {
    if (const auto fault = data_fault(who, object, true)) return fault;
  }
  const bool owns = who.uid == 0 || who.uid == object.attributes.uid;
  if (sets_now(changes) && !owns && !permitted(who, object, kWriting)) return Status::Access;
  const bool ids_end = changes.uid || changes.gid || (changes.size && who.uid != 0);
  SetAttributes all = changes;
  if (ids_end && !all.mode) all.mode = mode_without_ids(object.attributes);
  Wanted wanted = wanted_by(all);
  if (wanted.mask == 0) return std::nullopt;
  const int failed = mount_->call().setattr(mount_->get(), object.inode.get(), &wanted.values,
                                            wanted.mask, mount_->root());
  return failed < 0 ? std::optional(status_of(-failed)) : std::nullopt;
}

Outcome<Change> Tree::set_attributes(const Credentials& who, const Handle& handle,
                                     const SetAttributes& changes, std::optional<Time> guard) {
  if (const auto fault = fault_of_values(changes)) return Failure{*fault};
  const auto object = resolve(handle);
  if (!object) return Failure{object.error()};
  if (guard && *guard != object->attributes.changed) return Failure{Status::NotSync};
  if (const auto fault = fault_of_change(object->attributes, who, changes)) return Failure{*fault};
  if (const auto fault = apply(who, *object, changes)) return Failure{*fault};
  if (changes_anything(changes)) {
    if (const auto fault = sync_change(*object)) return Failure{*fault};
  }
  return change_of(*object);
}

}  // namespace stag::vfs::ceph
