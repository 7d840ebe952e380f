#include "nfs/lock/records.h"

#include <algorithm>
#include <charconv>
#include <filesystem>

namespace stag::nfs::lock {

namespace {

constexpr std::size_t kMaxHosts = 4096;

// Addresses come from the system, but they become file names.
bool is_file_name(std::string_view address) {
  const auto fits = [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '.' ||
           c == ':' || c == '%' || c == '-' || c == '_';
  };
  return !address.empty() && address.size() < 128 && address.front() != '.' &&
         std::all_of(address.begin(), address.end(), fits);
}

}  // namespace

Result<std::unique_ptr<Records>, StateError> Records::open(const std::string& directory,
                                                           std::shared_ptr<Executor> worker) {
  std::unique_ptr<Records> records(new Records(directory, std::move(worker)));
  if (directory.empty()) return records;
  if (auto made = make_directories(records->hosts()); !made) return Failure{made.error()};
  if (auto counted = records->count_restart(); !counted) return Failure{counted.error()};
  if (auto read = records->read_hosts(); !read) return Failure{read.error()};
  return records;
}

Result<Ok, StateError> Records::count_restart() {
  std::int32_t last = -1;
  if (!directory_.empty()) {
    const auto stored = read_small_file(directory_ + "/state");
    if (!stored) return Failure{stored.error()};
    // A damaged number begins again; clients only compare it with the one they know.
    if (stored->has_value())
      std::from_chars((*stored)->data(), (*stored)->data() + (*stored)->size(), last);
  } else {
    last = state();
  }
  const std::int32_t next = last < 0 || last > 0x7ffffff0 ? 1 : (last | 1) + 2;
  if (!directory_.empty())
    if (auto kept = replace_file(directory_, "state", std::to_string(next) + "\n"); !kept)
      return Failure{kept.error()};
  const std::scoped_lock lock(mutex_);
  state_ = next;
  return Ok{};
}

Result<Ok, StateError> Records::read_hosts() {
  std::error_code error;
  for (std::filesystem::directory_iterator at(hosts(), error), end; !error && at != end;
       at.increment(error)) {
    const std::string name = at->path().filename().string();
    if (is_file_name(name) && !name.ends_with(".new")) unnotified_.insert(name);
  }
  if (error) return Failure{StateError{"cannot read " + hosts() + ": " + error.message()}};
  return Ok{};
}

std::int32_t Records::state() const {
  const std::scoped_lock lock(mutex_);
  return state_;
}

std::vector<std::string> Records::unnotified() const {
  const std::scoped_lock lock(mutex_);
  return {unnotified_.begin(), unnotified_.end()};
}

bool Records::has(const std::string& address) const {
  const std::scoped_lock lock(mutex_);
  return added_.contains(address);
}

Records::Hold Records::hold(const std::string& address) {
  const std::scoped_lock lock(mutex_);
  const auto found = added_.find(address);
  if (found == added_.end()) return {};
  found->second.last = ++uses_;
  ++found->second.holds;
  return {*this, address};
}

void Records::release(const std::string& address) {
  const std::scoped_lock lock(mutex_);
  const auto found = added_.find(address);
  // restart() may have emptied added_ meanwhile.
  if (found != added_.end() && found->second.holds > 0) --found->second.holds;
}

// With disk_ held, not mutex_.
Result<Ok, StateError> Records::make_room(const InUse& in_use) {
  std::vector<std::pair<std::uint64_t, std::string>> oldest;
  {
    const std::scoped_lock lock(mutex_);
    if (added_.size() < kMaxHosts) return Ok{};
    for (const auto& [address, entry] : added_)
      if (entry.holds == 0) oldest.emplace_back(entry.last, address);
  }
  std::sort(oldest.begin(), oldest.end());
  for (const auto& [last, address] : oldest) {
    if (!in_use || in_use(address)) continue;
    bool unnotified = false;
    {
      const std::scoped_lock lock(mutex_);
      const auto found = added_.find(address);
      // The record may have been held since, and its host may have locks now.
      if (found == added_.end() || found->second.last != last) continue;
      added_.erase(found);
      unnotified = unnotified_.contains(address);
    }
    if (unnotified || directory_.empty()) return Ok{};
    return remove_file(hosts(), address);
  }
  return Failure{StateError{"too many clients hold locks"}};
}

Result<Ok, StateError> Records::add(const std::string& address, const InUse& in_use) {
  const std::scoped_lock disk(disk_);
  bool there = false;
  {
    const std::scoped_lock lock(mutex_);
    if (added_.contains(address)) return Ok{};
    there = unnotified_.contains(address);
  }
  if (!directory_.empty() && !is_file_name(address))
    return Failure{StateError{"no name for a file: " + address}};
  if (auto made = make_room(in_use); !made) return made;
  if (!there && !directory_.empty()) {
    if (auto kept = replace_file(hosts(), address, ""); !kept) return Failure{kept.error()};
  }
  const std::scoped_lock lock(mutex_);
  added_[address].last = ++uses_;
  return Ok{};
}

Result<Ok, StateError> Records::notified(const std::string& address) {
  const std::scoped_lock disk(disk_);
  bool keep = false;
  {
    const std::scoped_lock lock(mutex_);
    unnotified_.erase(address);
    keep = added_.contains(address);
  }
  if (keep || directory_.empty()) return Ok{};
  return remove_file(hosts(), address);
}

Result<Ok, StateError> Records::restart() {
  const std::scoped_lock disk(disk_);
  if (auto counted = count_restart(); !counted) return counted;
  const std::scoped_lock lock(mutex_);
  for (const auto& [address, entry] : std::exchange(added_, {})) unnotified_.insert(address);
  return Ok{};
}

}  // namespace stag::nfs::lock
