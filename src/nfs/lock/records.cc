#include "nfs/lock/records.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <limits>
#include <optional>

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

// What does not look like one is read as none.
std::string name_in(const std::string& content) {
  std::string name = content.substr(0, content.find('\n'));
  return is_file_name(name) ? name : std::string();
}

std::int32_t number_in(const std::string& content) {
  std::int32_t number = -1;
  std::from_chars(content.data(), content.data() + content.size(), number);
  return number;
}

Result<std::vector<std::string>, StateError> addresses_in(const std::string& hosts) {
  std::vector<std::string> addresses;
  std::error_code error;
  for (std::filesystem::directory_iterator at(hosts, error), end; !error && at != end;
       at.increment(error)) {
    std::string name = at->path().filename().string();
    if (is_file_name(name) && !name.ends_with(".new")) addresses.push_back(std::move(name));
  }
  if (error) return Failure{StateError{"cannot read " + hosts + ": " + error.message()}};
  return addresses;
}

constexpr const char* kMissed = "missed";

Result<std::set<std::string>, StateError> missed_in(const std::string& directory) {
  std::set<std::string> missed;
  const std::string path = directory + "/" + kMissed;
  std::error_code error;
  if (!std::filesystem::exists(path, error) && !error) return missed;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);)
    if (is_file_name(line)) missed.insert(line);
  if (!file.eof()) return Failure{StateError{"cannot read " + path}};
  return missed;
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

Result<Ok, StateError> Records::count_restart(std::int32_t above) {
  std::int32_t last = -1;
  if (!directory_.empty()) {
    const auto stored = read_small_file(directory_ + "/state");
    if (!stored) return Failure{stored.error()};
    // A damaged number begins again; clients only compare it with the one they know.
    if (stored->has_value()) last = number_in(**stored);
  } else {
    last = state();
  }
  last = std::max(last, above);
  const std::int32_t next = last < 0 || last > 0x7ffffff0 ? 1 : (last | 1) + 2;
  if (!directory_.empty())
    if (auto kept = replace_file(directory_, "state", std::to_string(next) + "\n"); !kept)
      return Failure{kept.error()};
  const std::scoped_lock lock(mutex_);
  state_ = next;
  return Ok{};
}

Result<Ok, StateError> Records::read_hosts() {
  auto missed = missed_in(directory_);
  if (!missed) return Failure{missed.error()};
  missed_ = *std::move(missed);
  auto addresses = addresses_in(hosts());
  if (!addresses) return Failure{addresses.error()};
  for (const std::string& address : *addresses) {
    const auto content = read_small_file(hosts() + "/" + address);
    if (!content) return Failure{content.error()};
    unnotified_[address] = name_in(content->value_or(""));
    if (!missed_.contains(address)) may_reclaim_[address] = false;
  }
  return Ok{};
}

Result<Ok, StateError> Records::keep_name(const std::string& name) {
  if (directory_.empty() || !is_file_name(name)) return Ok{};
  const auto content = read_small_file(directory_ + "/name");
  if (!content) return Failure{content.error()};
  const std::string former = name_in(content->value_or(""));
  // The new name last: after a crash these hosts are told of both, or the former is found again.
  if (!former.empty() && former != name)
    if (auto kept = remember_name(former); !kept) return kept;
  return replace_file(directory_, "name", name + "\n");
}

Result<Ok, StateError> Records::remember_name(const std::string& former) {
  for (auto& [address, name] : unnotified_) {
    if (!name.empty()) continue;
    if (auto kept = replace_file(hosts(), address, former + "\n"); !kept) return kept;
    name = former;
  }
  return Ok{};
}

Result<Records::Lost, StateError> Records::read_ended(const std::string& directory) {
  Lost lost;
  lost.directory = directory;
  const auto name = read_small_file(directory + "/name");
  if (!name) return Failure{name.error()};
  lost.name = name_in(name->value_or(""));
  if (lost.name.empty()) return lost;
  const auto state = read_small_file(directory + "/state");
  if (!state) return Failure{state.error()};
  lost.state = number_in(state->value_or(""));
  auto addresses = addresses_in(directory + "/hosts");
  if (!addresses) return Failure{addresses.error()};
  lost.hosts = *std::move(addresses);
  auto missed = missed_in(directory);
  if (!missed) return Failure{missed.error()};
  lost.missed = *std::move(missed);
  return lost;
}

// A crash leaves hosts that are told here, and may be told once more by the server that adopts them
// again.
Result<Ok, StateError> Records::adopt(const Lost& lost) {
  const std::scoped_lock disk(disk_);
  {
    const std::scoped_lock lock(mutex_);
    if (unnotified_.size() + lost.hosts.size() > kMaxHosts)
      return Failure{StateError{"too many clients hold locks"}};
  }
  if (auto counted = count_restart(lost.state); !counted) return counted;
  // First: nobody is to be adopted, and to be known not to have missed anything, by a crash.
  std::set<std::string> missed = missed_;
  for (const std::string& address : lost.hosts)
    if (lost.missed.contains(address)) missed.insert(address);
  if (missed != missed_)
    if (auto kept = change_missed(std::move(missed)); !kept) return kept;
  for (const std::string& address : lost.hosts) {
    if (!directory_.empty())
      if (auto kept = replace_file(hosts(), address, lost.name + "\n"); !kept) return kept;
    const std::scoped_lock lock(mutex_);
    unnotified_[address] = lost.name;
    if (!missed_.contains(address)) may_reclaim_.try_emplace(address, false);
    if (const auto found = added_.find(address); found != added_.end())
      found->second.former_name = lost.name;
  }
  return Ok{};
}

Result<Ok, StateError> Records::give_away(const Lost& lost) {
  for (const std::string& address : lost.hosts)
    if (auto removed = remove_file(lost.directory + "/hosts", address); !removed) return removed;
  return Ok{};
}

std::int32_t Records::state() const {
  const std::scoped_lock lock(mutex_);
  return state_;
}

std::vector<std::string> Records::unnotified() const {
  const std::scoped_lock lock(mutex_);
  std::vector<std::string> addresses;
  addresses.reserve(unnotified_.size());
  for (const auto& [address, name] : unnotified_) addresses.push_back(address);
  return addresses;
}

bool Records::any_unnotified() const {
  const std::scoped_lock lock(mutex_);
  return !unnotified_.empty();
}

std::string Records::former_name(const std::string& address) const {
  const std::scoped_lock lock(mutex_);
  const auto found = unnotified_.find(address);
  return found == unnotified_.end() ? std::string() : found->second;
}

bool Records::is_unnotified(const std::string& address) const {
  const std::scoped_lock lock(mutex_);
  return unnotified_.contains(address);
}

bool Records::has(const std::string& address) const {
  const std::scoped_lock lock(mutex_);
  return added_.contains(address);
}

bool Records::was_notified(const std::string& address) const {
  const std::scoped_lock lock(mutex_);
  const auto found = added_.find(address);
  return found != added_.end() && found->second.notified;
}

bool Records::may_reclaim(const std::string& address) const {
  const std::scoped_lock lock(mutex_);
  return may_reclaim_.contains(address);
}

bool Records::reclaims(const std::string& address) {
  const std::scoped_lock lock(mutex_);
  const auto found = may_reclaim_.find(address);
  if (found == may_reclaim_.end()) return false;
  found->second = true;
  return true;
}

bool Records::any_may_reclaim() const {
  const std::scoped_lock lock(mutex_);
  return !may_reclaim_.empty();
}

// With disk_ held, not mutex_.
Result<Ok, StateError> Records::write_missed(const std::set<std::string>& missed) const {
  if (directory_.empty()) return Ok{};
  std::string lines;
  for (const std::string& address : missed) lines += address + "\n";
  return replace_file(directory_, kMissed, lines);
}

// With disk_ held, not mutex_.
Result<Ok, StateError> Records::change_missed(std::set<std::string> missed) {
  if (auto kept = write_missed(missed); !kept) return kept;
  const std::scoped_lock lock(mutex_);
  missed_ = std::move(missed);
  return Ok{};
}

// Written once more where somebody has begun to reclaim meanwhile.
Result<Ok, StateError> Records::cut_off(const std::function<bool()>& is_due) {
  const std::scoped_lock disk(disk_);
  if (!is_due()) return Ok{};
  for (std::optional<std::set<std::string>> written;;) {
    std::set<std::string> missed = missed_;
    {
      const std::scoped_lock lock(mutex_);
      for (const auto& [address, has_begun] : may_reclaim_)
        if (!has_begun) missed.insert(address);
      std::erase_if(missed, [this](const std::string& address) {
        return !unnotified_.contains(address) && !added_.contains(address);
      });
      if (written == missed) {
        missed_ = std::move(missed);
        may_reclaim_.clear();
        return Ok{};
      }
    }
    if (auto kept = write_missed(missed); !kept) return kept;
    written = std::move(missed);
  }
}

Records::Hold Records::hold(const std::string& address) {
  const std::scoped_lock lock(mutex_);
  const auto found = added_.find(address);
  if (found == added_.end() || missed_.contains(address)) return {};
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

std::vector<Records::Unheld> Records::unheld(std::uint64_t until) const {
  std::vector<Unheld> all;
  const std::scoped_lock lock(mutex_);
  for (const auto& [address, entry] : added_)
    if (entry.holds == 0 && entry.last <= until) all.emplace_back(entry.last, address);
  std::sort(all.begin(), all.end());
  return all;
}

bool Records::drop(const Unheld& seen) {
  dropped_.push_back(seen.second);
  const std::scoped_lock lock(mutex_);
  const auto found = added_.find(seen.second);
  const bool same = found != added_.end() && found->second.last == seen.first;
  if (same)
    added_.erase(found);
  else
    dropped_.pop_back();
  return same;
}

// With disk_ held, not mutex_.
Result<Ok, StateError> Records::make_room(const InUse& in_use) {
  {
    const std::scoped_lock lock(mutex_);
    if (added_.size() < kMaxHosts) return Ok{};
  }
  for (const Unheld& each : unheld(std::numeric_limits<std::uint64_t>::max())) {
    const std::string& address = each.second;
    if (in_use && !in_use(address) && drop(each)) return remove_dropped();
  }
  return Failure{StateError{"too many clients hold locks"}};
}

std::uint64_t Records::uses() const {
  const std::scoped_lock lock(mutex_);
  return uses_;
}

// add() waits for the disk, so that a host which comes back meanwhile has its file in the end.
Result<Ok, StateError> Records::remove_unneeded(const InUse& in_use, std::uint64_t until) {
  const std::scoped_lock disk(disk_);
  for (const Unheld& each : unheld(until))
    if (!is_unnotified(each.second) && !in_use(each.second)) drop(each);
  return remove_dropped();
}

// With disk_ held. What cannot be removed is tried again with the next.
Result<Ok, StateError> Records::remove_dropped() {
  {
    const std::scoped_lock lock(mutex_);
    std::erase_if(dropped_, [this](const std::string& address) {
      return added_.contains(address) || unnotified_.contains(address);
    });
  }
  if (!dropped_.empty() && !directory_.empty())
    if (auto removed = remove_files(hosts(), dropped_); !removed) return removed;
  dropped_.clear();
  return Ok{};
}

Result<Ok, StateError> Records::add(const std::string& address, const InUse& in_use) {
  const std::scoped_lock disk(disk_);
  bool is_added = false, there = false;
  std::set<std::string> missed = missed_;
  const bool has_missed = missed.erase(address) != 0;
  {
    const std::scoped_lock lock(mutex_);
    is_added = added_.contains(address);
    if (is_added && !has_missed) return Ok{};
    there = is_added || unnotified_.contains(address);
  }
  if (!directory_.empty() && !is_file_name(address))
    return Failure{StateError{"no name for a file: " + address}};
  if (!is_added)
    if (auto made = make_room(in_use); !made) return made;
  if (!there && !directory_.empty()) {
    if (auto kept = replace_file(hosts(), address, ""); !kept) return Failure{kept.error()};
  }
  if (has_missed)
    if (auto kept = change_missed(std::move(missed)); !kept) return kept;
  const std::scoped_lock lock(mutex_);
  Entry& entry = added_[address];
  entry.last = ++uses_;
  if (const auto told = unnotified_.find(address); told != unnotified_.end())
    entry.former_name = told->second;
  return Ok{};
}

void Records::notified(const std::string& address, std::int32_t state) {
  const std::scoped_lock lock(mutex_);
  const auto told = unnotified_.find(address);
  if (told == unnotified_.end() || state_ != state) return;
  const auto [entry, made] = added_.try_emplace(address);
  if (made) entry->second.last = ++uses_;
  entry->second.former_name = std::move(told->second);
  entry->second.notified = true;
  unnotified_.erase(told);
}

Result<Ok, StateError> Records::give_up(const std::string& address, std::int32_t state) {
  const std::scoped_lock disk(disk_);
  bool keep = false;
  {
    const std::scoped_lock lock(mutex_);
    if (state_ != state) return Ok{};
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
  for (auto& [address, has_begun] : may_reclaim_) has_begun = false;
  for (auto& [address, entry] : std::exchange(added_, {})) {
    unnotified_.insert_or_assign(address, std::move(entry.former_name));
    if (!missed_.contains(address)) may_reclaim_[address] = false;
  }
  return Ok{};
}

}  // namespace stag::nfs::lock
