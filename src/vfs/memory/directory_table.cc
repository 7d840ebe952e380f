#include "vfs/memory/directory_table.h"

#include "base/check.h"

namespace stag::vfs::memory {

std::optional<InodeId> DirectoryTable::find(std::string_view name) const {
  const auto at = names_.find(name);
  if (at == names_.end()) return std::nullopt;
  return at->second.inode;
}

void DirectoryTable::insert(std::string_view name, InodeId inode) {
  Cookies made;
  Cookies::node_type cookie = made.extract(made.emplace(next_cookie_, nullptr).first);
  const auto [at, inserted] = names_.emplace(std::string(name), Entry{inode, next_cookie_});
  STAG_CHECK(inserted);
  // Nothing from here on asks for memory.
  cookie.mapped() = &*at;
  cookies_.insert(cookies_.end(), std::move(cookie));
  ++next_cookie_;
}

void DirectoryTable::replace(std::string_view name, InodeId inode) {
  const auto at = names_.find(name);
  STAG_CHECK(at != names_.end());
  at->second.inode = inode;
}

void DirectoryTable::erase(std::string_view name) {
  const auto at = names_.find(name);
  STAG_CHECK(at != names_.end());
  cookies_.erase(at->second.cookie);
  names_.erase(at);
}

}  // namespace stag::vfs::memory
