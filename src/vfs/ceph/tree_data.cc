// Contents of files: read, write, commit, deallocate.
#include <algorithm>

#include "base/checked.h"
#include "vfs/ceph/tree.h"
#include "vfs/change_rules.h"
#include "vfs/errors.h"

namespace stag::vfs::ceph {
namespace {

struct Written {
  std::size_t count = 0;
  int error = 0;  // why it is not all
};

// The library copies the bytes, and writes them when a sync or its own cache asks for it.
Written write_rope(const Mount& mount, Fh* file, const Rope& data, std::uint64_t offset) {
  Written written;
  for (const Buffer& piece : data.pieces()) {
    Bytes rest = piece.bytes();
    while (!rest.empty()) {
      const int moved =
          mount.call().write(mount.get(), file, static_cast<std::int64_t>(offset + written.count),
                             rest.size(), reinterpret_cast<const char*>(rest.data()));
      if (moved <= 0) {
        written.error = moved < 0 ? -moved : EIO;
        return written;
      }
      written.count += static_cast<std::size_t>(moved);
      rest = rest.subspan(static_cast<std::size_t>(moved));
    }
  }
  return written;
}

// Quota and a full cluster, which only a sync may notice, keep their own Status.
Status loss_status(int error) {
  return error == ENOSPC || error == EDQUOT ? status_of(error) : Status::Io;
}

}  // namespace

// Never asks for more than there is: the block to hold it is the file's size at most, whatever the
// client claims.
Outcome<ReadResult> Tree::read(const Credentials& who, const Handle& file, std::uint64_t offset,
                               std::uint32_t count) {
  const auto object = resolve_file(file);
  if (!object) return Failure{object.error()};
  if (const auto fault = data_fault(who, *object, false)) return Failure{*fault};
  const std::uint64_t size = object->attributes.size;
  const std::uint64_t there = offset < size ? size - offset : 0;
  const auto length = static_cast<std::size_t>(std::min<std::uint64_t>(count, there));
  ReadResult result;
  result.attributes = object->attributes;
  result.eof = length == there;
  if (length == 0) return result;
  const auto reader = readers_->open(file, object->inode.get());
  if (!reader) return Failure{reader.error()};
  Block block = Block::allocate(length);
  std::size_t filled = 0;
  while (filled < length) {
    const int moved = mount_->call().read(
        mount_->get(), (*reader)->get(), static_cast<std::int64_t>(offset + filled),
        length - filled, reinterpret_cast<char*>(block.data() + filled));
    if (moved < 0) return Failure{status_of(-moved)};
    if (moved == 0) break;  // Truncated meanwhile.
    filled += static_cast<std::size_t>(moved);
  }
  result.eof = result.eof || filled < length;
  result.data = Rope(std::move(block).freeze(filled));
  return result;
}

Outcome<WriteResult> Tree::write(const Credentials& who, const Handle& file, std::uint64_t offset,
                                 const Rope& data, Stability stability) {
  if (!range_within<std::uint64_t>(offset, data.size(), kLargestFile))
    return Failure{Status::FileTooBig};
  const auto object = resolve_file(file);
  if (!object) return Failure{object.error()};
  if (const auto fault = data_fault(who, *object, true)) return Failure{*fault};
  const auto writer = writers_->open(file, object->inode.get());
  if (!writer) return Failure{writer.error()};
  const Written written = write_rope(*mount_, (*writer)->get(), data, offset);
  if (written.error != 0 && written.count == 0) return Failure{status_of(written.error)};
  (*writer)->note_written();
  if (const auto mode = who.uid != 0 ? mode_without_ids(object->attributes) : std::nullopt) {
    SetAttributes changes;
    changes.mode = mode;
    if (const auto fault = apply(who, *object, changes)) return Failure{*fault};
  }
  if (stability != Stability::Unstable) {
    if (const int error = (*writer)->sync(stability == Stability::DataSync))
      return Failure{loss_status(error)};
  }
  return WriteResult{static_cast<std::uint32_t>(written.count), stability, change_of(*object)};
}

// The whole file. One that is not open for writing has been synced since it was written, and if
// that failed, it has been counted (OpenFiles).
Outcome<Change> Tree::commit(const Handle& file) {
  const auto object = resolve_file(file);
  if (!object) return Failure{object.error()};
  if (auto writer = writers_->find(file)) {
    if (const int error = writer->sync(true)) return Failure{loss_status(error)};
    writers_->close_idle(file, std::move(writer));
  }
  return change_of(*object);
}

Outcome<Change> Tree::deallocate(const Credentials& who, const Handle& file, std::uint64_t offset,
                                 std::uint64_t length) {
  if (length == 0) return Failure{Status::Invalid};
  if (!range_within<std::uint64_t>(offset, length, kLargestFile))
    return Failure{Status::FileTooBig};
  const auto object = resolve_file(file);
  if (!object) return Failure{object.error()};
  if (const auto fault = data_fault(who, *object, true)) return Failure{*fault};
  const auto writer = writers_->open(file, object->inode.get());
  if (!writer) return Failure{writer.error()};
  const int failed = mount_->call().fallocate(
      mount_->get(), (*writer)->get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
      static_cast<std::int64_t>(offset), static_cast<std::int64_t>(length));
  if (failed < 0) return Failure{status_of(-failed)};
  if (const int error = (*writer)->sync(false)) return Failure{loss_status(error)};
  return change_of(*object);
}

}  // namespace stag::vfs::ceph
