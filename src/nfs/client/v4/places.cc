#include "nfs/client/v4/places.h"

namespace stag::nfs::client::nfs4 {

std::string Places::key(const Handle& file) {
  return std::string(text_of(file.bytes()));
}

// The length in front keeps handles of different lengths apart.
std::string Places::key(const Handle& directory, std::string_view name) {
  std::string text(1, static_cast<char>(directory.size()));
  return text.append(text_of(directory.bytes())).append(name);
}

void Places::erase(Iterator entry) {
  const auto by_file = by_file_.find(key(entry->file));
  if (by_file != by_file_.end() && by_file->second == entry) by_file_.erase(by_file);
  const auto by_name = by_name_.find(key(entry->place.directory, entry->place.name));
  if (by_name != by_name_.end() && by_name->second == entry) by_name_.erase(by_name);
  entries_.erase(entry);
}

std::optional<Places::Place> Places::find(const Handle& file) {
  const auto found = by_file_.find(key(file));
  if (found == by_file_.end()) return std::nullopt;
  entries_.splice(entries_.begin(), entries_, found->second);
  return found->second->place;
}

void Places::put(const Handle& file, const Handle& directory, std::string_view name) {
  const std::string file_key = key(file), name_key = key(directory, name);
  const auto named = by_name_.find(name_key);
  if (named != by_name_.end() && named->second->file == file) {
    entries_.splice(entries_.begin(), entries_, named->second);
    return;
  }
  if (named != by_name_.end()) erase(named->second);
  const auto known = by_file_.find(file_key);
  if (known != by_file_.end()) erase(known->second);
  if (entries_.size() >= kMost) erase(std::prev(entries_.end()));
  entries_.push_front({file, {directory, std::string(name)}});
  try {
    by_file_.emplace(file_key, entries_.begin());
    by_name_.emplace(name_key, entries_.begin());
  } catch (...) {
    erase(entries_.begin());
    throw;
  }
}

void Places::remove(const Handle& directory, std::string_view name) {
  if (entries_.empty()) return;
  const auto found = by_name_.find(key(directory, name));
  if (found != by_name_.end()) erase(found->second);
}

void Places::rename(const Handle& from_directory, std::string_view from, const Handle& to_directory,
                    std::string_view to) {
  if (entries_.empty()) return;
  const auto found = by_name_.find(key(from_directory, from));
  if (found == by_name_.end()) return remove(to_directory, to);
  const Handle file = found->second->file;
  remove(from_directory, from);
  put(file, to_directory, to);
}

}  // namespace stag::nfs::client::nfs4
