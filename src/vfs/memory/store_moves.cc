// Entries that are removed or moved: remove, rmdir, rename.
#include "vfs/memory/store.h"
#include "vfs/name.h"

namespace stag::vfs::memory {
std::optional<Status> Store::unlink_fault(const Credentials& who, const Inode& directory,
                                          const Inode* child, bool directories) const {
  if (!permits(directory, who, kMayExecute)) return Status::Access;
  if (child == nullptr) return Status::NoEntry;
  if (const auto refusal = unlink_refusal(directory, *child, who)) return refusal;
  if (!directories && child->is_directory()) return Status::IsDirectory;
  if (directories && !child->is_directory()) return Status::NotDirectory;
  if (directories && !child->entries->empty()) return Status::NotEmpty;
  return std::nullopt;
}

// Called when an entry was removed; the object is removed with its last entry.
void Store::drop_link(Inode& child, Time now, Replaced& replaced) {
  refund(kObjectCharge);
  child.links -= child.is_directory() ? 2 : 1;
  child.touch(now);
  if (child.links > 0) return;
  if (child.type == FileType::Regular) resize(child, 0, replaced);
  refund(kObjectCharge + child.target.size() + charge_of(child.acls.get()) +
         charge_of(child.xattrs.get()));
  shard_of(child.id).inodes.erase(child.id);
}

Outcome<Change> Store::unlink(const Credentials& who, const Handle& directory,
                              std::string_view name, bool directories) {
  const auto id = id_of(directory);
  if (!id) return Failure{id.error()};
  if (const auto fault = fault_of_old_name(name, kMaxName)) return Failure{*fault};
  while (true) {
    const auto child = peek(*id, name);
    if (!child) return Failure{child.error()};
    Replaced replaced;
    Locked lock(*this, {*id, child->value_or(*id)});
    Inode* parent = find(*id);
    if (parent == nullptr) return Failure{Status::Stale};
    if (parent->entries->find(name) != *child) continue;
    Inode* inode = *child ? find(**child) : nullptr;
    if (const auto fault = unlink_fault(who, *parent, inode, directories)) return Failure{*fault};
    const BeforeChange before = before_of(attributes_of(*parent));
    const Time now = now_();
    parent->entries->erase(name);
    if (directories) --parent->links;
    parent->touch_data(now);
    drop_link(*inode, now, replaced);
    return changed(before, *parent);
  }
}

Outcome<Change> Store::remove(const Credentials& who, const Handle& directory,
                              std::string_view name) {
  return unlink(who, directory, name, false);
}

Outcome<Change> Store::rmdir(const Credentials& who, const Handle& directory,
                             std::string_view name) {
  return unlink(who, directory, name, true);
}

struct Store::Move {
  InodeId from;
  InodeId to;
  std::string_view from_name;
  std::string_view to_name;
};

// Whether `directory` is `ancestor` or below it. No directory moves meanwhile: the caller has
// locked moving_.
bool Store::lies_within(InodeId directory, InodeId ancestor) {
  while (directory != ancestor) {
    Locked lock(*this, directory);
    const Inode* inode = find(directory);
    if (inode == nullptr || inode->parent == directory) return false;
    directory = inode->parent;
  }
  return true;
}

std::optional<Status> Store::move_fault(const Credentials& who, const Inode& from, const Inode& to,
                                        const Inode& child, const Inode* target) const {
  if (const auto refusal = unlink_refusal(from, child, who)) return refusal;
  if (!permits(to, who, kMayWrite | kMayExecute)) return Status::Access;
  // ".." inside a directory changes when it moves.
  if (child.is_directory() && &from != &to && !owns(child, who) && !permits(child, who, kMayWrite))
    return Status::Access;
  if (target == nullptr) return std::nullopt;
  if (const auto refusal = unlink_refusal(to, *target, who)) return refusal;
  // RFC 1813 3.3.14: a target that is not compatible is Exists.
  if (target->is_directory() != child.is_directory()) return Status::Exists;
  if (target->is_directory() && !target->entries->empty()) return Status::NotEmpty;
  return std::nullopt;
}

void Store::relink(const Move& move, Inode& from, Inode& to, Inode& moved, Inode* over,
                   Replaced& replaced) {
  const Time now = now_();
  if (over != nullptr)
    to.entries->replace(move.to_name, moved.id);
  else
    to.entries->insert(move.to_name, moved.id);
  from.entries->erase(move.from_name);
  if (moved.is_directory()) {
    moved.parent = move.to;
    --from.links;
    if (over == nullptr) ++to.links;
  }
  from.touch_data(now);
  if (&to != &from) to.touch_data(now);
  moved.touch(now);
  if (over != nullptr) drop_link(*over, now, replaced);
}

Outcome<Renamed> Store::move(const Credentials& who, const Move& move) {
  while (true) {
    const auto child = peek(move.from, move.from_name);
    if (!child) return Failure{child.error()};
    const auto target = peek(move.to, move.to_name);
    if (!target) return Failure{target.error()};
    if (!*child) {
      Locked lock(*this, move.from);
      const Inode* from = find(move.from);
      if (from == nullptr) return Failure{Status::Stale};
      return Failure{permits(*from, who, kMayExecute) ? Status::NoEntry : Status::Access};
    }
    if (move.from != move.to && lies_within(move.to, **child)) return Failure{Status::Invalid};
    Replaced replaced;
    Locked lock(*this, {move.from, move.to, **child, target->value_or(**child)});
    Inode* from = find(move.from);
    Inode* to = find(move.to);
    if (from == nullptr || to == nullptr) return Failure{Status::Stale};
    if (from->entries->find(move.from_name) != *child || to->entries->find(move.to_name) != *target)
      continue;
    Inode& moved = *find(**child);
    Inode* over = *target ? find(**target) : nullptr;
    const BeforeChange from_before = before_of(attributes_of(*from));
    const BeforeChange to_before = before_of(attributes_of(*to));
    if (const auto fault = move_fault(who, *from, *to, moved, over)) return Failure{*fault};
    if (over != &moved) relink(move, *from, *to, moved, over, replaced);
    return Renamed{changed(from_before, *from), changed(to_before, *to)};
  }
}

Outcome<Renamed> Store::rename(const Credentials& who, const Handle& from_directory,
                               std::string_view from, const Handle& to_directory,
                               std::string_view to) {
  const auto from_id = id_of(from_directory);
  if (!from_id) return Failure{from_id.error()};
  const auto to_id = id_of(to_directory);
  if (!to_id) return Failure{to_id.error()};
  if (const auto fault = fault_of_old_name(from, kMaxName)) return Failure{*fault};
  if (const auto fault = fault_of_old_name(to, kMaxName)) return Failure{*fault};
  std::unique_lock<std::mutex> moving(moving_, std::defer_lock);
  if (*from_id != *to_id) moving.lock();
  return move(who, {*from_id, *to_id, from, to});
}

}  // namespace stag::vfs::memory
