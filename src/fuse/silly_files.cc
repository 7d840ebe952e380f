#include "fuse/silly_files.h"

#include <algorithm>
#include <utility>

namespace stag::fuse {

void SillyFiles::add(std::uint64_t number, const Handle& file, SillyName name) {
  files_.push_back({number, file, std::move(name)});
}

SillyFiles::Files::const_iterator SillyFiles::find_open(std::uint64_t number) const {
  return std::ranges::find_if(
      files_, [&](const File& file) { return file.number == number && !file.being_removed; });
}

const SillyName* SillyFiles::find(std::uint64_t number) const {
  const auto found = find_open(number);
  return found == files_.end() ? nullptr : &found->name;
}

void SillyFiles::forget(std::uint64_t number) {
  if (const auto found = find_open(number); found != files_.end()) files_.erase(found);
}

std::optional<SillyFiles::Removal> SillyFiles::closed(std::uint64_t number) {
  const auto found = find_open(number);
  if (found == files_.end()) return std::nullopt;
  const auto file = files_.erase(found, found);  // an iterator that may change it
  file->being_removed = true;
  return std::make_optional<Removal>(*this, file);
}

SillyFiles::Removal::~Removal() {
  if (owner_ == nullptr) return;
  owner_->files_.erase(file_);
  owner_->waiters_.tell();
}

bool SillyFiles::keeps_open(const Handle& directory, const std::string& name) const {
  return std::ranges::any_of(files_, [&](const File& file) {
    return !file.being_removed && file.name.name == name && file.name.directory == directory;
  });
}

std::vector<SillyName> SillyFiles::names() const {
  std::vector<SillyName> names;
  for (const File& file : files_)
    if (!file.being_removed) names.push_back(file.name);
  return names;
}

std::vector<std::uint64_t> SillyFiles::open_in(const Handle& directory) const {
  std::vector<std::uint64_t> numbers;
  for (const File& file : files_)
    if (!file.being_removed && file.name.directory == directory) numbers.push_back(file.number);
  return numbers;
}

std::vector<nfs::client::Handle> SillyFiles::directories() const {
  std::vector<Handle> directories;
  for (const File& file : files_) directories.push_back(file.name.directory);
  return directories;
}

Task<void> SillyFiles::removed(Handle directory) {
  const auto goes_on = [&](const File& file) {
    return file.being_removed && file.name.directory == directory;
  };
  while (std::ranges::any_of(files_, goes_on)) co_await waiters_.change();
}

bool SillyFiles::being_removed(const Handle& file) const {
  return std::ranges::any_of(
      files_, [&](const File& one) { return one.being_removed && one.handle == file; });
}

Task<void> SillyFiles::name_removed(Handle file) {
  while (being_removed(file)) co_await waiters_.change();
}

}  // namespace stag::fuse
