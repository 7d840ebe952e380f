#include "fuse/made_directories.h"

#include <algorithm>

namespace stag::fuse {

void MadeDirectories::begin(std::uint64_t number, std::uint64_t change, TimePoint now) {
  end(number);
  // Version 3 and its like count no changes.
  if (change == 0 || valid_ <= Duration::zero()) return;
  if (directories_.size() == kMostDirectories) {
    const auto by_age = [](const auto& a, const auto& b) {
      return a.second.as_of < b.second.as_of;
    };
    end(std::ranges::min_element(directories_, by_age)->first);
  }
  directories_.emplace(number, Directory{change, now});
}

void MadeDirectories::on_made(std::uint64_t number, const std::string& name,
                              const nfs::client::DirectoryChange& change, TimePoint now) {
  const auto found = directories_.find(number);
  if (found == directories_.end()) return;
  Directory& directory = found->second;
  if (!change.atomic || change.before != directory.change || names_ == kMostNames)
    return end(number);
  names_ += directory.names.insert(name).second ? 1 : 0;
  directory.change = change.after;
  directory.as_of = now;
}

void MadeDirectories::end(std::uint64_t number) {
  const auto found = directories_.find(number);
  if (found == directories_.end()) return;
  names_ -= found->second.names.size();
  directories_.erase(found);
}

Duration MadeDirectories::lacks(std::uint64_t number, const std::string& name,
                                TimePoint now) const {
  const auto found = directories_.find(number);
  if (found == directories_.end() || found->second.names.contains(name)) return Duration::zero();
  return std::max(found->second.as_of + valid_ - now, Duration::zero());
}

}  // namespace stag::fuse
