// Listing a directory. A cookie is the position that the library gives after each entry. It stays
// good while entries come and go, and for every client: it is made of the hash of the entry's name.
#include <dirent.h>

#include <algorithm>
#include <limits>

#include "vfs/ceph/handle.h"
#include "vfs/ceph/tree.h"
#include "vfs/errors.h"

namespace stag::vfs::ceph {
namespace {

constexpr std::size_t kEntryCost = 24;
constexpr std::size_t kNodeCost = 160;
constexpr std::uint32_t kMaxBudget = 1 << 20;

// A directory that is open for listing.
class Listing {
 public:
  Listing(const Mount& mount, Inode* directory, const UserPerm* who) : mount_(mount) {
    error_ = -mount.call().opendir(mount.get(), directory, &listing_, who);
  }
  ~Listing() {
    if (error_ == 0) mount_.call().releasedir(mount_.get(), listing_);
  }
  Listing(const Listing&) = delete;
  Listing& operator=(const Listing&) = delete;
  // Why it could not be opened; else 0.
  int error() const { return error_; }
  ceph_dir_result* get() const { return listing_; }

 private:
  const Mount& mount_;
  ceph_dir_result* listing_ = nullptr;
  int error_ = 0;
};

}  // namespace

// Fills the page up to its budget.
std::optional<Status> Tree::collect(ceph_dir_result* listing, const Object& directory,
                                    const ListFrom& from, Page& page) const {
  const std::size_t budget = std::min(from.budget, kMaxBudget);
  const std::size_t overhead = kEntryCost + (from.with_nodes ? kNodeCost : 0);
  const bool is_root = directory.handle == root_handle_;
  // The names of a snapshot come with the file ids of the objects as they are now.
  const auto key = key_of(directory.handle);
  const bool with_attributes = from.with_nodes || (key && key->snapshot != ObjectKey::kNoSnapshot);
  std::size_t cost = 0;
  while (true) {
    dirent found{};
    Stat stat{};
    Inode* inode = nullptr;
    const int read =
        mount_->call().readdirplus(mount_->get(), listing, &found, &stat,
                                   with_attributes ? CEPH_STATX_ALL_STATS : CEPH_STATX_INO,
                                   with_attributes ? 0 : AT_STATX_DONT_SYNC, &inode);
    if (read < 0) return status_of(-read);
    if (read == 0) break;
    InodeRef reference(*mount_, inode);
    const std::string_view name(found.d_name);
    cost += overhead + name.size();
    if (cost > budget && !page.entries.empty()) return std::nullopt;
    Entry entry{std::string(name), found.d_ino, static_cast<std::uint64_t>(found.d_off),
                std::nullopt};
    const bool above = is_root && name == "..";
    if (above) entry.file_id = directory.attributes.file_id;
    if (above && from.with_nodes) entry.node = directory.node();
    if (!above && with_attributes) {
      const auto object = adopt(std::move(reference), stat);
      if (object) entry.file_id = object->attributes.file_id;
      if (object && from.with_nodes) entry.node = object->node();
    }
    page.entries.push_back(std::move(entry));
  }
  page.complete = true;
  return std::nullopt;
}

Outcome<Tree::Page> Tree::list(const Credentials& who, const Handle& handle, const ListFrom& from) {
  const auto directory = resolve_directory(handle);
  if (!directory) return Failure{directory.error()};
  Page page;
  store_be(page.listed.verifier.data(), root_inode_);
  if (from.cookie != 0 && from.verifier && *from.verifier != page.listed.verifier)
    return Failure{Status::BadCookie};
  if (from.cookie > std::numeric_limits<std::int64_t>::max()) return Failure{Status::BadCookie};
  page.listed.directory = directory->attributes;
  const Permissions permissions(*mount_, who);
  const auto turn = names_.together();
  if (!turn) return Failure{Status::Delay};
  const Listing listing(*mount_, directory->inode.get(), permissions.get());
  if (listing.error() != 0) return Failure{status_of(listing.error())};
  if (from.cookie != 0)
    mount_->call().seekdir(mount_->get(), listing.get(), static_cast<std::int64_t>(from.cookie));
  if (const auto fault = collect(listing.get(), *directory, from, page)) return Failure{*fault};
  return page;
}

}  // namespace stag::vfs::ceph
