#include "nfs/lock/local_programs.h"

namespace stag::nfs::lock {

LocalPrograms::LocalPrograms(LocalLockTable& local, std::mutex& mutex, const LockTable& table)
    : local_(local),
      source_(local.add(
          {[&mutex, &table](const FileKey& file, const Range& range, state::RangeModes& to) {
             const std::scoped_lock lock(mutex);
             table.locked_in(file, range, to);
           },
           [&mutex, &table](const FileKey& file, const std::string& preferred) {
             const std::scoped_lock lock(mutex);
             return table.locker_at(file, preferred);
           }})) {}

LocalPrograms::~LocalPrograms() {
  local_.remove(source_);
}

bool LocalPrograms::conflicts(const LockRequest& request) {
  // A Hold that does not fit would end here, with the mutex, which its end asks for.
  if (holds_.size() == holds_.capacity()) holds_.reserve(2 * holds_.size() + 1);
  auto held = local_.hold(request.file, request.range, request.exclusive);
  if (!held) return met_ = true;
  if (*held) holds_.push_back(*std::move(held));
  return false;
}

std::optional<Held> LocalPrograms::holder(const LockRequest& request) const {
  const auto found = local_.conflict(request.file, request.range, request.exclusive);
  if (!found) return std::nullopt;
  auto owner = std::make_shared<Owner>();
  owner->handle = found->lock_owner;
  return Held{found->range, found->exclusive, std::move(owner)};
}

}  // namespace stag::nfs::lock
