// Ranges of files: seek, allocate, deallocate, clone, copy.
#include <fcntl.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/checked.h"
#include "vfs/change_rules.h"
#include "vfs/posix/credentials.h"
#include "vfs/posix/errors.h"
#include "vfs/posix/tree.h"

namespace stag::vfs::posix {
namespace {

// A copy holds a worker for so many bytes at most; who wants more asks again.
constexpr std::uint64_t kLargestCopy = 16 << 20;

// Of a file system that cannot share storage, or not between these two.
Failure<Status> sharing_error() {
  if (errno == ENOTTY || errno == EXDEV) return Failure{Status::NotSupported};
  return last_error();
}

}  // namespace

Outcome<Sought> Tree::seek(const Credentials& who, const Handle& file, std::uint64_t offset,
                           SeekTo what) {
  const auto opened = resolve_file(file);
  if (!opened) return Failure{opened.error()};
  if (const auto fault = data_fault(who, *opened->object, opened->attributes, false))
    return Failure{*fault};
  if (offset >= opened->attributes.size) return Failure{Status::Invalid};
  const auto reader = opened->object->open_reader();
  if (!reader) return Failure{reader.error()};
  // Nothing else uses the position that this moves.
  const off_t found = ::lseek((*reader)->fd(), static_cast<off_t>(offset),
                              what == SeekTo::Data ? SEEK_DATA : SEEK_HOLE);
  if (found < 0 && errno != ENXIO) return last_error();
  const std::uint64_t end = opened->attributes.size;
  const std::uint64_t at = found < 0 ? end : std::min(static_cast<std::uint64_t>(found), end);
  return Sought{at, at == end};
}

Outcome<Change> Tree::reshape(const Credentials& who, const Handle& file, std::uint64_t offset,
                              std::uint64_t length, int mode) {
  if (length == 0) return Failure{Status::Invalid};
  if (!range_within<std::uint64_t>(offset, length, kLargestFile))
    return Failure{Status::FileTooBig};
  const auto opened = resolve_file(file);
  if (!opened) return Failure{opened.error()};
  Observation observation(*this, opened->object);
  if (const auto fault = data_fault(who, *opened->object, opened->attributes, true))
    return Failure{*fault};
  const auto writer = opened->object->open_writer();
  if (!writer) return Failure{writer.error()};
  const auto prepared = prepare_sync(*opened->object);
  if (!prepared) return Failure{prepared.error()};
  {
    const CredentialScope scope(who);
    if (!scope.ok()) return Failure{Status::Access};
    if (with_room([&] {
          return ::fallocate((*writer)->fd(), mode, static_cast<off_t>(offset),
                             static_cast<off_t>(length));
        }) != 0)
      return last_error();
  }
  return finish_durably(observation, *prepared);
}

Outcome<Change> Tree::allocate(const Credentials& who, const Handle& file, std::uint64_t offset,
                               std::uint64_t length) {
  return reshape(who, file, offset, length, 0);
}

Outcome<Change> Tree::deallocate(const Credentials& who, const Handle& file, std::uint64_t offset,
                                 std::uint64_t length) {
  return reshape(who, file, offset, length, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE);
}

Outcome<Tree::Pair> Tree::open_pair(const Credentials& who, const Handle& from, const Handle& to,
                                    const CopyRange& range) {
  const auto source = resolve_file(from);
  if (!source) return Failure{source.error()};
  const auto target = resolve_file(to);
  if (!target) return Failure{target.error()};
  if (const auto fault = data_fault(who, *source->object, source->attributes, false))
    return Failure{*fault};
  if (const auto fault = data_fault(who, *target->object, target->attributes, true))
    return Failure{*fault};
  const std::uint64_t size = source->attributes.size;
  if (!range_within(range.from, range.length, size)) return Failure{Status::Invalid};
  CopyRange whole = range;
  if (whole.length == 0) whole.length = size - whole.from;
  if (!range_within(whole.to, whole.length, kLargestFile)) return Failure{Status::FileTooBig};
  const bool apart = whole.from + whole.length <= whole.to || whole.to + whole.length <= whole.from;
  if (source->object == target->object && !apart) return Failure{Status::Invalid};
  const auto reader = source->object->open_reader();
  if (!reader) return Failure{reader.error()};
  const auto writer = target->object->open_writer();
  if (!writer) return Failure{writer.error()};
  return Pair{source->object, target->object, *reader, *writer, whole};
}

Outcome<Change> Tree::clone(const Credentials& who, const Handle& from, const Handle& to,
                            const CopyRange& range) {
  const auto pair = open_pair(who, from, to, range);
  if (!pair) return Failure{pair.error()};
  Observation observation(*this, pair->target);
  const auto prepared = prepare_sync(*pair->target);
  if (!prepared) return Failure{prepared.error()};
  if (pair->range.length > 0) {
    const CredentialScope scope(who);
    if (!scope.ok()) return Failure{Status::Access};
    file_clone_range wanted{pair->reader->fd(), pair->range.from, pair->range.length,
                            pair->range.to};
    if (::ioctl(pair->writer->fd(), FICLONERANGE, &wanted) != 0) return sharing_error();
  }
  return finish_durably(observation, *prepared);
}

Outcome<Copied> Tree::copy(const Credentials& who, const Handle& from, const Handle& to,
                           const CopyRange& range) {
  const auto pair = open_pair(who, from, to, range);
  if (!pair) return Failure{pair.error()};
  Observation observation(*this, pair->target);
  Copied copied;
  if (pair->range.length > 0) {
    const CredentialScope scope(who);
    if (!scope.ok()) return Failure{Status::Access};
    auto read_at = static_cast<off_t>(pair->range.from);
    auto write_at = static_cast<off_t>(pair->range.to);
    const auto length = static_cast<std::size_t>(std::min(pair->range.length, kLargestCopy));
    const ssize_t moved = with_room([&] {
      return ::copy_file_range(pair->reader->fd(), &read_at, pair->writer->fd(), &write_at, length,
                               0);
    });
    if (moved < 0) return errno == EXDEV ? sharing_error() : last_error();
    copied.count = static_cast<std::uint64_t>(moved);
    pair->target->note_unstable_write();
  }
  if (cache_->has_too_much_to_sync()) {
    const auto alone = pair->target->sync_alone();
    if (const auto fault = flush(*pair->target, *pair->writer, ::fdatasync)) return Failure{*fault};
  }
  copied.file = observation.finish(copied.count > 0);
  return copied;
}

}  // namespace stag::vfs::posix
