// Contents and attributes of single objects: read, write, commit, set_attributes.
#include "base/checked.h"
#include "vfs/change_rules.h"
#include "vfs/memory/store.h"

namespace stag::vfs::memory {
namespace {

std::optional<Status> data_fault(const Inode* inode) {
  if (inode == nullptr) return Status::Stale;
  if (inode->is_directory()) return Status::IsDirectory;
  if (inode->type != FileType::Regular) return Status::Invalid;
  return std::nullopt;
}

// Everything is checked before anything changes.
std::optional<Status> change_fault(const Attributes& attributes, const Inode& inode,
                                   const Credentials& who, const SetAttributes& changes) {
  if (const auto fault = fault_of_change(attributes, who, changes)) return fault;
  if (changes.size && !may_write_data(inode, who)) return Status::Access;
  const bool to_now =
      changes.accessed.how == SetTime::How::Now || changes.modified.how == SetTime::How::Now;
  if (to_now && !owns(inode, who) && !permits(inode, who, kMayWrite)) return Status::Access;
  return std::nullopt;
}

void apply_time(const SetTime& change, Time now, Time& time) {
  if (change.how == SetTime::How::Now) time = now;
  if (change.how == SetTime::How::To) time = change.time;
}

void apply(const Credentials& who, const SetAttributes& changes, Time now, Inode& inode) {
  if (changes.uid || changes.gid) {
    inode.uid = changes.uid.value_or(inode.uid);
    inode.gid = changes.gid.value_or(inode.gid);
    drop_set_id(inode);
  }
  if (changes.mode) {
    inode.mode = *changes.mode & kModeBits;
    if (inode.acls != nullptr) inode.acls->access.set_mode(inode.mode);
    if (!is_root(who) && !inode.is_directory() && !who.in_group(inode.gid)) inode.mode &= ~kSetGid;
  }
  if (changes.size) {
    inode.modified = now;
    if (!is_root(who)) drop_set_id(inode);
  }
  apply_time(changes.accessed, now, inode.accessed);
  apply_time(changes.modified, now, inode.modified);
  inode.touch(now);
}

}  // namespace

void Store::resize(Inode& file, std::uint64_t size, Replaced& replaced) {
  const std::uint64_t before = file.data.stored();
  file.data.resize(size, replaced);
  used_.fetch_add(file.data.stored() - before, std::memory_order_relaxed);
}

Outcome<Change> Store::set_attributes(const Credentials& who, const Handle& object,
                                      const SetAttributes& changes, std::optional<Time> guard) {
  if (const auto fault = fault_of_values(changes)) return Failure{*fault};
  const auto id = id_of(object);
  if (!id) return Failure{id.error()};
  Replaced replaced;  // destroyed after the lock is released
  Locked lock(*this, *id);
  Inode* inode = find(*id);
  if (inode == nullptr) return Failure{Status::Stale};
  if (guard && *guard != inode->changed) return Failure{Status::NotSync};
  const Attributes old = attributes_of(*inode);
  if (const auto fault = change_fault(old, *inode, who, changes)) return Failure{*fault};
  const BeforeChange before = before_of(old);
  if (changes.size) resize(*inode, *changes.size, replaced);
  if (changes_anything(changes)) apply(who, changes, now_(), *inode);
  return changed(before, *inode);
}

Outcome<ReadResult> Store::read(const Credentials& who, const Handle& file, std::uint64_t offset,
                                std::uint32_t count) {
  const auto id = id_of(file);
  if (!id) return Failure{id.error()};
  Locked lock(*this, *id);
  const auto found = readable(who, *id);
  if (!found) return Failure{found.error()};
  Inode* inode = *found;
  const std::uint64_t size = inode->data.size();
  const std::uint64_t from = std::min(offset, size);
  const std::uint64_t length = std::min<std::uint64_t>(count, size - from);
  ReadResult result;
  result.data = inode->data.read(from, length);
  result.eof = from + length == size;
  // As relatime does: readers of an unchanged file do not change it again and again.
  if (inode->accessed <= inode->modified) inode->accessed = now_();
  result.attributes = attributes_of(*inode);
  return result;
}

// The caller has locked the shard, of this one and the next.
Outcome<Inode*> Store::readable(const Credentials& who, InodeId id) {
  Inode* inode = find(id);
  if (const auto fault = data_fault(inode)) return Failure{*fault};
  if (!may_read_data(*inode, who)) return Failure{Status::Access};
  return inode;
}

Outcome<Inode*> Store::writable(const Credentials& who, InodeId id) {
  Inode* inode = find(id);
  if (const auto fault = data_fault(inode)) return Failure{*fault};
  if (!may_write_data(*inode, who)) return Failure{Status::Access};
  return inode;
}

WriteResult Store::written(const Credentials& who, Inode& file, std::uint64_t length,
                           const BeforeChange& before) {
  if (length > 0) {
    if (!is_root(who)) drop_set_id(file);
    file.touch_data(now_());
  }
  return {static_cast<std::uint32_t>(length), Stability::FileSync, changed(before, file)};
}

Outcome<WriteResult> Store::write(const Credentials& who, const Handle& file, std::uint64_t offset,
                                  Rope data) {
  const auto id = id_of(file);
  if (!id) return Failure{id.error()};
  const std::uint64_t length = data.size();
  if (!range_within(offset, length, kLargestFile)) return Failure{Status::FileTooBig};
  if (length < kAdoptFrom) {
    // It is copied anyhow: to where it belongs, where that can be.
    const Locked lock(*this, *id);
    const auto inode = writable(who, *id);
    if (!inode) return Failure{inode.error()};
    const BeforeChange before = (*inode)->before();
    if ((*inode)->data.overwrite(offset, data)) return written(who, **inode, length, before);
  }
  const Rope kept = adoptable(std::move(data));
  Replaced replaced;
  Locked lock(*this, *id);
  const auto inode = writable(who, *id);
  if (!inode) return Failure{inode.error()};
  const BeforeChange before = (*inode)->before();
  FileData& stored = (*inode)->data;
  Charge charge(*this, length - stored.covered(offset, length));
  if (!charge) return Failure{Status::NoSpace};
  const std::uint64_t stored_before = stored.stored();
  if (length > 0) stored.write(offset, kept, replaced);
  charge.settle(stored.stored() - stored_before);
  return written(who, **inode, length, before);
}

Outcome<Change> Store::commit(const Handle& file) {
  const auto id = id_of(file);
  if (!id) return Failure{id.error()};
  Locked lock(*this, *id);
  Inode* inode = find(*id);
  if (const auto fault = data_fault(inode)) return Failure{*fault};
  return changed(before_of(attributes_of(*inode)), *inode);
}

}  // namespace stag::vfs::memory
