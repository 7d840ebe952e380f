// Entries that are found and made: lookup, create, mkdir, symlink, mknod, link.
#include "vfs/change_rules.h"
#include "vfs/exclusive.h"
#include "vfs/memory/store.h"
#include "vfs/name.h"

namespace stag::vfs::memory {
namespace {

constexpr std::size_t kMaxTarget = 4095;

std::optional<Status> directory_fault(const Inode* directory) {
  if (directory == nullptr) return Status::Stale;
  if (!directory->is_directory()) return Status::NotDirectory;
  return std::nullopt;
}

// Why `who` may not add a name to `directory`; nullopt if it may.
std::optional<Status> insert_fault(const Inode* directory, const Credentials& who) {
  if (const auto fault = directory_fault(directory)) return fault;
  if (!permits(*directory, who, kMayWrite | kMayExecute)) return Status::Access;
  return std::nullopt;
}

std::unique_ptr<Inode> new_inode(FileType type) {
  auto inode = std::make_unique<Inode>();
  inode->type = type;
  if (inode->is_directory()) {
    inode->entries = std::make_unique<DirectoryTable>();
    inode->links = 2;
  }
  return inode;
}

void set_creation_attributes(const Credentials& who, const Inode& directory,
                             const SetAttributes& wanted, Time now, Inode& made) {
  made.uid = who.uid;
  made.gid = (directory.mode & kSetGid) != 0 ? directory.gid : who.gid;
  if (is_root(who)) {
    made.uid = wanted.uid.value_or(made.uid);
    made.gid = wanted.gid.value_or(made.gid);
  }
  made.mode = wanted.mode.value_or(made.is_directory() ? 0700 : 0600) & kModeBits;
  if (made.type == FileType::Symlink) made.mode = 0777;
  if (made.is_directory())
    made.mode |= directory.mode & kSetGid;
  else if (!is_root(who) && !who.in_group(made.gid))
    made.mode &= ~kSetGid;
  made.changed = made.created = now;
  made.accessed = wanted.accessed.how == SetTime::How::To ? wanted.accessed.time : now;
  made.modified = wanted.modified.how == SetTime::How::To ? wanted.modified.time : now;
}

}  // namespace

// The object that a name leads to at this moment. A caller that acts on it locks both objects and
// looks the name up again.
Outcome<std::optional<InodeId>> Store::peek(InodeId directory, std::string_view name) {
  Locked lock(*this, directory);
  const Inode* inode = find(directory);
  if (const auto fault = directory_fault(inode)) return Failure{*fault};
  if (name == ".") return std::optional(directory);
  if (name == "..") return std::optional(inode->parent);
  return inode->entries->find(name);
}

Outcome<Found> Store::lookup(const Credentials& who, const Handle& directory,
                             std::string_view name) {
  const auto id = id_of(directory);
  if (!id) return Failure{id.error()};
  if (const auto fault = fault_of_name(name, kMaxName)) return Failure{*fault};
  const auto child = peek(*id, name);
  if (!child) return Failure{child.error()};
  Locked lock(*this, {*id, child->value_or(*id)});
  const Inode* inode = find(*id);
  if (inode == nullptr) return Failure{Status::Stale};
  if (!permits(*inode, who, kMayExecute)) return Failure{Status::Access};
  const Inode* found = *child ? find(**child) : nullptr;
  // Removed between the two look-ups: as if the removal had come first.
  if (found == nullptr) return Failure{Status::NoEntry};
  return Found{node_of(*found), attributes_of(*inode)};
}

// Gives `made` a number and the name, unless the name is taken.
Outcome<Created> Store::make(const Credentials& who, const Handle& directory, std::string_view name,
                             std::unique_ptr<Inode> made, const SetAttributes& attributes) {
  const auto id = id_of(directory);
  if (!id) return Failure{id.error()};
  if (const auto fault = fault_of_new_name(name, kMaxName)) return Failure{*fault};
  if (const auto fault = fault_of_values(attributes)) return Failure{*fault};
  const InodeId new_id = next_id_.fetch_add(1, std::memory_order_relaxed);
  Locked lock(*this, {*id, new_id});
  Inode* parent = find(*id);
  if (const auto fault = directory_fault(parent)) return Failure{*fault};
  // Exists takes precedence over Access: a client without write permission that opens an existing
  // file must learn that the file exists.
  if (permits(*parent, who, kMayExecute) && parent->entries->find(name))
    return Failure{Status::Exists};
  if (const auto fault = insert_fault(parent, who)) return Failure{*fault};
  const BeforeChange before = before_of(attributes_of(*parent));
  const Time now = now_();
  Inode& inode = *made;
  inode.id = new_id;
  inode.parent = *id;
  set_creation_attributes(who, *parent, attributes, now, inode);
  inherit_acls(*parent, inode);
  const std::uint64_t cost = 2 * kObjectCharge + inode.target.size() + charge_of(inode.acls.get());
  Charge charge(*this, cost);
  if (!charge) return Failure{Status::NoSpace};
  auto& inodes = shard_of(new_id).inodes;
  inodes.emplace(new_id, std::move(made));
  try {
    parent->entries->insert(name, new_id);
  } catch (...) {
    inodes.erase(new_id);
    throw;
  }
  charge.settle(cost);
  if (inode.is_directory()) ++parent->links;
  parent->touch_data(now);
  return Created{node_of(inode), changed(before, *parent)};
}

// create() on a name that is taken and may be.
Outcome<Created> Store::reopen(const Credentials& who, InodeId directory, InodeId child,
                               const CreateHow& how) {
  Replaced replaced;
  Locked lock(*this, {directory, child});
  const Inode* parent = find(directory);
  Inode* inode = find(child);
  if (parent == nullptr || inode == nullptr) return Failure{Status::Stale};
  if (how.mode == CreateMode::Exclusive && !made_by(who.uid, how.verifier, attributes_of(*inode)))
    return Failure{Status::Exists};
  if (inode->type != FileType::Regular)
    return Failure{inode->is_directory() ? Status::IsDirectory : Status::Exists};
  if (how.mode == CreateMode::Unchecked && how.attributes.size) {
    if (!may_write_data(*inode, who)) return Failure{Status::Access};
    resize(*inode, *how.attributes.size, replaced);
    inode->touch_data(now_());
  }
  return Created{node_of(*inode), changed(before_of(attributes_of(*parent)), *parent)};
}

Outcome<Created> Store::create(const Credentials& who, const Handle& directory,
                               std::string_view name, const CreateHow& how) {
  const auto attributes = attributes_to_create(how);
  if (!attributes) return Failure{attributes.error()};
  // Ends when the name is free for make() or there for reopen(); others may come and go in between.
  while (true) {
    auto made = new_inode(FileType::Regular);
    Replaced none;
    if (attributes->size) made->data.resize(*attributes->size, none);
    auto created = make(who, directory, name, std::move(made), *attributes);
    if (created || created.error() != Status::Exists || how.mode == CreateMode::Guarded ||
        is_dot_or_dot_dot(name))
      return created;
    const InodeId id = *id_of(directory);
    const auto child = peek(id, name);
    if (!child) return Failure{child.error()};
    if (!*child) continue;
    created = reopen(who, id, **child, how);
    if (created || created.error() != Status::Stale) return created;
  }
}

Outcome<Created> Store::mkdir(const Credentials& who, const Handle& directory,
                              std::string_view name, const SetAttributes& attributes) {
  return make(who, directory, name, new_inode(FileType::Directory), attributes);
}

Outcome<Created> Store::symlink(const Credentials& who, const Handle& directory,
                                std::string_view name, std::string_view target,
                                const SetAttributes& attributes) {
  if (target.empty() || target.find('\0') != target.npos) return Failure{Status::Invalid};
  if (target.size() > kMaxTarget) return Failure{Status::NameTooLong};
  auto made = new_inode(FileType::Symlink);
  made->target = std::string(target);
  return make(who, directory, name, std::move(made), attributes);
}

Outcome<Created> Store::mknod(const Credentials& who, const Handle& directory,
                              std::string_view name, Special special,
                              const SetAttributes& attributes) {
  const bool device =
      special.type == FileType::BlockDevice || special.type == FileType::CharacterDevice;
  if (!device && special.type != FileType::Fifo && special.type != FileType::Socket)
    return Failure{Status::BadType};
  if (device && !is_root(who)) return Failure{Status::Perm};
  auto made = new_inode(special.type);
  if (device) made->device = special.device;
  return make(who, directory, name, std::move(made), attributes);
}

Outcome<Linked> Store::link(const Credentials& who, const Handle& file, const Handle& directory,
                            std::string_view name) {
  const auto file_id = id_of(file);
  if (!file_id) return Failure{file_id.error()};
  const auto id = id_of(directory);
  if (!id) return Failure{id.error()};
  if (const auto fault = fault_of_new_name(name, kMaxName)) return Failure{*fault};
  Locked lock(*this, {*file_id, *id});
  Inode* inode = find(*file_id);
  Inode* parent = find(*id);
  if (inode == nullptr) return Failure{Status::Stale};
  if (inode->is_directory()) return Failure{Status::IsDirectory};
  if (const auto fault = insert_fault(parent, who)) return Failure{*fault};
  if (parent->entries->find(name)) return Failure{Status::Exists};
  if (inode->links >= kMaxLinks) return Failure{Status::TooManyLinks};
  Charge charge(*this, kObjectCharge);
  if (!charge) return Failure{Status::NoSpace};
  const BeforeChange before = before_of(attributes_of(*parent));
  const Time now = now_();
  parent->entries->insert(name, inode->id);
  charge.settle(kObjectCharge);
  parent->touch_data(now);
  ++inode->links;
  inode->touch(now);
  return Linked{attributes_of(*inode), changed(before, *parent)};
}

}  // namespace stag::vfs::memory
