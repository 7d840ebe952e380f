// Extended attributes of users.
#include "vfs/memory/store.h"
#include "vfs/name.h"

namespace stag::vfs::memory {
namespace {

// What the mode and the lists say, and the sticky bit: of a directory that all may write to, the
// owner alone changes attributes.
std::optional<Status> xattr_change_fault(const Inode& inode, const Credentials& who) {
  if (inode.is_directory() && (inode.mode & kSticky) != 0 && !owns(inode, who)) return Status::Perm;
  if (!permits(inode, who, kMayWrite)) return Status::Access;
  return std::nullopt;
}

}  // namespace

std::uint64_t Store::charge_of(const Inode::Xattrs* xattrs) {
  constexpr std::uint64_t kEach = 64;
  std::uint64_t sum = 0;
  if (xattrs == nullptr) return sum;
  for (const auto& [name, value] : *xattrs) sum += kEach + name.size() + value.size();
  return sum;
}

// With the shard held.
Outcome<Inode*> Store::with_xattrs(InodeId id) {
  Inode* inode = find(id);
  if (inode == nullptr) return Failure{Status::Stale};
  if (inode->type != FileType::Regular && !inode->is_directory())
    return Failure{Status::NotSupported};
  return inode;
}

Outcome<std::string> Store::xattr(const Credentials& who, const Handle& object,
                                  std::string_view name) {
  const auto id = id_of(object);
  if (!id) return Failure{id.error()};
  if (const auto fault = fault_of_xattr_name(name)) return Failure{*fault};
  Locked lock(*this, *id);
  const auto inode = with_xattrs(*id);
  if (!inode) return Failure{inode.error()};
  if (!permits(**inode, who, kMayRead)) return Failure{Status::Access};
  const Inode::Xattrs* xattrs = (*inode)->xattrs.get();
  const auto at = xattrs != nullptr ? xattrs->find(name) : Inode::Xattrs::const_iterator();
  if (xattrs == nullptr || at == xattrs->end()) return Failure{Status::NoEntry};
  return at->second;
}

Outcome<Change> Store::set_xattr(const Credentials& who, const Handle& object,
                                 std::string_view name, std::string_view value, XattrMode mode) {
  const auto id = id_of(object);
  if (!id) return Failure{id.error()};
  if (const auto fault = fault_of_xattr_name(name)) return Failure{*fault};
  if (value.size() > kLargestXattr) return Failure{Status::FileTooBig};
  Locked lock(*this, *id);
  const auto found = with_xattrs(*id);
  if (!found) return Failure{found.error()};
  Inode& inode = **found;
  if (const auto fault = xattr_change_fault(inode, who)) return Failure{*fault};
  auto next = inode.xattrs != nullptr ? std::make_unique<Inode::Xattrs>(*inode.xattrs)
                                      : std::make_unique<Inode::Xattrs>();
  const bool there = next->find(name) != next->end();
  if (there && mode == XattrMode::Create) return Failure{Status::Exists};
  if (!there && mode == XattrMode::Replace) return Failure{Status::NoEntry};
  (*next)[std::string(name)] = value;
  if (charge_of(next.get()) > kLargestXattr + 1024 || !charge(charge_of(next.get())))
    return Failure{Status::NoSpace};
  const BeforeChange before = before_of(attributes_of(inode));
  refund(charge_of(inode.xattrs.get()));
  inode.xattrs = std::move(next);
  inode.touch(now_());
  return changed(before, inode);
}

Outcome<std::vector<std::string>> Store::list_xattrs(const Handle& object) {
  const auto id = id_of(object);
  if (!id) return Failure{id.error()};
  Locked lock(*this, *id);
  const auto inode = with_xattrs(*id);
  if (!inode) return Failure{inode.error()};
  std::vector<std::string> names;
  if ((*inode)->xattrs == nullptr) return names;
  for (const auto& [name, value] : *(*inode)->xattrs) names.push_back(name);
  return names;
}

Outcome<Change> Store::remove_xattr(const Credentials& who, const Handle& object,
                                    std::string_view name) {
  const auto id = id_of(object);
  if (!id) return Failure{id.error()};
  if (const auto fault = fault_of_xattr_name(name)) return Failure{*fault};
  Locked lock(*this, *id);
  const auto found = with_xattrs(*id);
  if (!found) return Failure{found.error()};
  Inode& inode = **found;
  if (const auto fault = xattr_change_fault(inode, who)) return Failure{*fault};
  if (inode.xattrs == nullptr) return Failure{Status::NoEntry};
  const auto at = inode.xattrs->find(name);
  if (at == inode.xattrs->end()) return Failure{Status::NoEntry};
  const BeforeChange before = before_of(attributes_of(inode));
  const std::uint64_t charged = charge_of(inode.xattrs.get());
  inode.xattrs->erase(at);
  refund(charged - charge_of(inode.xattrs.get()));
  inode.touch(now_());
  return changed(before, inode);
}

}  // namespace stag::vfs::memory
