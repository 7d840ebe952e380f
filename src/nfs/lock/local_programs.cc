#include "nfs/lock/local_programs.h"

namespace stag::nfs::lock {

LocalPrograms::LocalPrograms(LocalLockTable& local, const FsidMap& stores, std::mutex& mutex,
                             const LockTable& table)
    : local_(local),
      stores_(stores),
      source_(local.add([&stores, &mutex, &table](const state::FileKey& file, const Range& range,
                                                  state::RangeModes& to) {
        const auto number = stores.find(static_cast<std::uint32_t>(file.file_system));
        if (!number) return;
        const std::scoped_lock lock(mutex);
        table.locked_in({*number, file.handle}, range, to);
      })) {}

LocalPrograms::~LocalPrograms() {
  local_.remove(source_);
}

std::vector<state::FileKey> LocalPrograms::keys_of(const FileKey& file) const {
  std::vector<state::FileKey> keys;
  if (!local_.any()) return keys;
  for (const std::uint32_t export_id : stores_.exports_with(file.store))
    keys.push_back({export_id, file.handle});
  return keys;
}

// One of the exports is enough: to be locked through two would be in the way of itself.
bool LocalPrograms::conflicts(const LockRequest& request) {
  for (const state::FileKey& key : keys_of(request.file)) {
    auto held = local_.hold(key, request.range, request.exclusive);
    if (!held) return met_ = true;
    if (!*held) continue;
    holds_.push_back(*std::move(held));
    break;
  }
  return false;
}

std::optional<Held> LocalPrograms::holder(const LockRequest& request) const {
  for (const state::FileKey& key : keys_of(request.file)) {
    const auto found = local_.conflict(key, request.range, request.exclusive);
    if (!found) continue;
    auto owner = std::make_shared<Owner>();
    owner->handle = found->lock_owner;
    return Held{found->range, found->exclusive, std::move(owner)};
  }
  return std::nullopt;
}

void LocalPrograms::freed(const FileKey* file, const Range& range) {
  if (!local_.any()) return;
  if (file == nullptr) return local_.freed(nullptr, range);
  for (const state::FileKey& key : keys_of(*file)) local_.freed(&key, range);
}

}  // namespace stag::nfs::lock
