#include "vfs/posix/losses.h"

#include <map>
#include <mutex>

namespace stag::vfs::posix {

Losses& Losses::of(std::uint64_t device) {
  static std::mutex mutex;
  static auto& all = *new std::map<std::uint64_t, Losses>;  // outlives every tree
  const std::lock_guard lock(mutex);
  return all.try_emplace(device, total_.load()).first->second;
}

}  // namespace stag::vfs::posix
