// Listing a directory. A cookie is the position the file system itself gives after each entry
// (d_off): ext4, xfs, btrfs and tmpfs keep it while entries come and go, since it is a hash or a
// number that belongs to the entry.
#include <dirent.h>
#include <fcntl.h>

#include <cstring>
#include <limits>

#include "vfs/name.h"
#include "vfs/posix/credentials.h"
#include "vfs/posix/errors.h"
#include "vfs/posix/tree.h"

namespace stag::vfs::posix {
namespace {

constexpr std::size_t kEntryCost = 24;
constexpr std::size_t kNodeCost = 160;
constexpr std::uint32_t kMaxBudget = 1 << 20;
constexpr std::size_t kBufferSize = 32 * 1024;

}  // namespace

void Tree::add_node(const Object& directory, Entry& entry) {
  const auto opened =
      entry.name == ".." ? open_parent(directory) : open_entry(directory, entry.name);
  if (!opened) return;
  entry.node = opened->node();
}

// Fills the page up to its budget, as the thread's current user.
std::optional<Status> Tree::collect(const Object& directory, int listing, const ListFrom& from,
                                    Page& page) {
  const std::size_t budget = std::min(from.budget, kMaxBudget);
  const std::size_t overhead = kEntryCost + (from.with_nodes ? kNodeCost : 0);
  const bool is_root = directory.handle == root_->handle;
  std::size_t cost = 0;
  alignas(dirent64) std::byte buffer[kBufferSize];
  while (true) {
    const ssize_t filled = ::getdents64(listing, buffer, sizeof buffer);
    if (filled < 0) return status_of(errno);
    if (filled == 0) break;
    for (std::size_t at = 0; at < static_cast<std::size_t>(filled);) {
      const auto* found = reinterpret_cast<const dirent64*>(buffer + at);
      at += found->d_reclen;
      const std::string_view name(found->d_name);
      cost += overhead + name.size();
      if (cost > budget && !page.entries.empty()) return std::nullopt;
      Entry entry{std::string(name), found->d_ino, static_cast<std::uint64_t>(found->d_off),
                  std::nullopt};
      if (is_root && name == "..") entry.file_id = page.listed.directory.file_id;
      if (from.with_nodes) add_node(directory, entry);
      page.entries.push_back(std::move(entry));
    }
  }
  page.complete = true;
  return std::nullopt;
}

Outcome<Tree::Page> Tree::list(const Credentials& who, const Handle& directory,
                               const ListFrom& from) {
  const auto resolved = resolve_directory(directory);
  if (!resolved) return Failure{resolved.error()};
  Page page;
  store_be(page.listed.verifier.data(), file_system_id_);
  if (from.cookie != 0 && from.verifier && *from.verifier != page.listed.verifier)
    return Failure{Status::BadCookie};
  if (from.cookie > std::numeric_limits<std::int64_t>::max()) return Failure{Status::BadCookie};
  const auto attributes = attributes_of(**resolved);
  if (!attributes) return Failure{attributes.error()};
  page.listed.directory = *attributes;
  if (const auto fault = open_and_collect(who, **resolved, from, page)) return Failure{*fault};
  for (const Entry& entry : page.entries)
    if (entry.node && !is_dot_or_dot_dot(entry.name))
      remember(**resolved, entry.name, entry.node->handle);
  return page;
}

std::optional<Status> Tree::open_and_collect(const Credentials& who, const Object& directory,
                                             const ListFrom& from, Page& page) {
  const CredentialScope scope(who);
  if (!scope.ok()) return Status::Access;
  // Through /proc, not ".": to list a directory takes permission to read it, not to search it.
  const UniqueFd listing(
      ::open(ProcPath(directory.path).text(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!listing) return status_of(errno);
  if (from.cookie != 0 && ::lseek(listing.fd(), static_cast<off_t>(from.cookie), SEEK_SET) < 0)
    return Status::BadCookie;
  return collect(directory, listing.fd(), from, page);
}

}  // namespace stag::vfs::posix
