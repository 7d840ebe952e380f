// Contents of files: read, write, commit.
#include <sys/uio.h>
#include <unistd.h>

#include <climits>

#include "base/checked.h"
#include "vfs/change_rules.h"
#include "vfs/posix/credentials.h"
#include "vfs/posix/errors.h"
#include "vfs/posix/tree.h"

namespace stag::vfs::posix {
namespace {

// The most bytes that are copied on a loop's own thread: as many as the loop sends or receives
// without a pause anyway; it takes 20 to 50 us.
constexpr std::size_t kLargestAtOnce = 1024 * 1024;

// Below this size, the check of the file's size costs as much as a mapping saves.
constexpr std::size_t kMappedFrom = 16 * 1024;

int flags_of(Stability stability) {
  if (stability == Stability::FileSync) return RWF_SYNC;
  return stability == Stability::DataSync ? RWF_DSYNC : 0;
}

struct Written {
  std::size_t count = 0;
  int error = 0;      // why it is not all
  bool lost = false;  // a sync failed: data that was written before may be lost too
};

// Writes the rope from `done` on, as many pieces per call as the system takes.
Written write_rope(int fd, const Rope& data, std::uint64_t offset, int flags) {
  Written written;
  std::size_t piece = 0;
  std::size_t within = 0;
  while (written.count < data.size()) {
    iovec vectors[64];
    int used = 0;
    for (std::size_t i = piece; i < data.pieces().size() && used < 64; ++i) {
      const Bytes bytes = data.pieces()[i].bytes().subspan(i == piece ? within : 0);
      vectors[used++] = {const_cast<std::byte*>(bytes.data()), bytes.size()};
    }
    const ssize_t moved =
        ::pwritev2(fd, vectors, used, static_cast<off_t>(offset + written.count), flags);
    if (moved < 0 && errno == EINTR) continue;
    if (moved <= 0) {
      written.error = moved < 0 ? errno : EIO;
      return written;
    }
    written.count += static_cast<std::size_t>(moved);
    within += static_cast<std::size_t>(moved);
    while (piece < data.pieces().size() && within >= data.pieces()[piece].size())
      within -= data.pieces()[piece++].size();
  }
  return written;
}

// Whether a synchronous write failed by its sync, which tells of what was written earlier, too, and
// once: a COMMIT after it would hear nothing. The kernel has kept the errno of the disk for it,
// whichever that was; those of the write itself are few. Where there is no room for the rest itself
// nothing is lost, and others must not write again what they have written.
bool is_of_sync(int fd, const Rope& data, std::uint64_t offset, const Written& written) {
  switch (written.error) {
    case 0:
    case EFBIG:
    case EINVAL:
    case EPERM:
    case EBADF:
    case EOPNOTSUPP:
      return false;
    case ENOSPC:
    case EDQUOT:
    case ENOMEM:
      break;
    default:
      return true;
  }
  const Rope rest = data.slice(written.count, data.size() - written.count);
  return write_rope(fd, rest, offset + written.count, 0).count > 0;
}

// File systems that do not know the flags get a sync of their own.
Written write_stably(int fd, const Rope& data, std::uint64_t offset, Stability stability) {
  const int flags = flags_of(stability);
  Written written = write_rope(fd, data, offset, flags);
  written.lost = flags != 0 && is_of_sync(fd, data, offset, written);
  if (written.count > 0 || written.error != EOPNOTSUPP || flags == 0) return written;
  written = write_rope(fd, data, offset, 0);
  const int synced = stability == Stability::FileSync ? ::fsync(fd) : ::fdatasync(fd);
  if (synced != 0) return {0, errno, true};
  return written;
}

bool is_out_of_room(Status status) {
  return status == Status::NoSpace || status == Status::QuotaExceeded;
}

struct ReadRange {
  std::uint64_t offset;
  std::size_t length;
};

// Never asks for more than there is: the block to hold it is the file's size at most, whatever the
// client claims.
ReadRange range_of(const Attributes& file, std::uint64_t offset, std::uint32_t count) {
  if (offset >= file.size) return {offset, 0};
  return {offset, static_cast<std::size_t>(std::min<std::uint64_t>(count, file.size - offset))};
}

}  // namespace

Outcome<Tree::Opened> Tree::resolve_file(const Handle& handle) {
  auto resolved = resolve(handle);
  if (!resolved) return Failure{resolved.error()};
  const auto attributes = attributes_of(**resolved);
  if (!attributes) return Failure{attributes.error()};
  if (attributes->type == FileType::Directory) return Failure{Status::IsDirectory};
  if (attributes->type != FileType::Regular) return Failure{Status::Invalid};
  return Opened{*std::move(resolved), *attributes};
}

Outcome<ReadResult> Tree::read(const Credentials& who, const Handle& file, std::uint64_t offset,
                               std::uint32_t count) {
  const auto opened = resolve_file(file);
  if (!opened) return Failure{opened.error()};
  if (const auto fault = data_fault(who, *opened->object, opened->attributes, false))
    return Failure{*fault};
  const auto reader = opened->object->open_reader();
  if (!reader) return Failure{reader.error()};
  const ReadRange range = range_of(opened->attributes, offset, count);
  Block block = Block::allocate(range.length);
  std::size_t filled = 0;
  while (filled < range.length) {
    const ssize_t moved = ::pread((*reader)->fd(), block.data() + filled, range.length - filled,
                                  static_cast<off_t>(offset + filled));
    if (moved < 0 && errno == EINTR) continue;
    if (moved < 0) return last_error();
    if (moved == 0) break;  // Truncated meanwhile.
    filled += static_cast<std::size_t>(moved);
  }
  const auto after = attributes_of(*opened->object);
  ReadResult result;
  result.data = Rope(std::move(block).freeze(filled));
  result.attributes = after ? *after : opened->attributes;
  result.eof = filled < range.length || offset >= result.attributes.size ||
               filled >= result.attributes.size - offset;
  return result;
}

// The page that a file now ends in does not fault: the truncated bytes in it read as zeros.
bool Tree::is_cut(const Object& file, std::uint64_t end) const {
  const auto now = attributes_of(file);
  return !now || now->size < end;
}

bool Tree::read_now(Object& file, const UniqueFd& reader, const Attributes& attributes,
                    std::uint64_t offset, MutableBytes to) const {
  if (to.empty()) return true;
  if (in_memory_ && to.size() >= kMappedFrom && attributes.used >= attributes.size) {
    const SharedMapping mapping = file.mapping_for(attributes.size, to.size());
    if (mapping != nullptr && mapping->copy(offset, to) && !is_cut(file, offset + to.size()))
      return true;
  }
  // tmpfs knows no RWF_NOWAIT, and does not need it.
  const int flags = in_memory_ ? 0 : RWF_NOWAIT;
  iovec vector{to.data(), to.size()};
  return ::preadv2(reader.fd(), &vector, 1, static_cast<off_t>(offset), flags) ==
         static_cast<ssize_t>(to.size());
}

std::optional<Outcome<ReadResult>> Tree::read_at_once(const Credentials& who, const Handle& file,
                                                      std::uint64_t offset, std::uint32_t count) {
  const ObjectRef cached = at_hand(file);
  const SharedDescriptor reader = cached != nullptr ? cached->reader() : nullptr;
  if (reader == nullptr || cached->type != FileType::Regular || count > kLargestAtOnce)
    return std::nullopt;
  const auto attributes = attributes_of(*cached);
  if (!attributes || !checks_at_once(who, *cached, *attributes) ||
      (asks_kernel(who, *attributes) && !may_act_on_loop(who)) ||
      data_fault(who, *cached, *attributes, false))
    return std::nullopt;
  const ReadRange range = range_of(*attributes, offset, count);
  Block block = Block::allocate(range.length);
  if (!read_now(*cached, *reader, *attributes, offset, block.bytes().first(range.length)))
    return std::nullopt;
  ReadResult result;
  result.data = Rope(std::move(block).freeze(range.length));
  result.attributes = *attributes;
  result.eof = offset >= attributes->size || range.length == attributes->size - offset;
  return result;
}

// Where files leave the cache uncommitted faster than the disk takes them, none is written to that
// would be one more. RFC 1813 3.3.7: the server may do more than it was asked for.
Stability Tree::stability_of_write(const Handle& file, Stability asked) {
  if (asked != Stability::Unstable || !cache_->has_too_much_to_sync()) return asked;
  const ObjectRef open = find_open(file);
  return open != nullptr && open->has_uncommitted() ? asked : Stability::DataSync;
}

Outcome<WriteResult> Tree::write(const Credentials& who, const Handle& file, std::uint64_t offset,
                                 const Rope& data, Stability stability) {
  if (!range_within<std::uint64_t>(offset, data.size(), kLargestFile))
    return Failure{Status::FileTooBig};
  const auto opened = resolve_file(file);
  if (!opened) return Failure{opened.error()};
  const auto writer = [&] { return opened->object->open_writer(); };
  // It may have waited for a worker for long.
  const Stability as = stability_of_write(file, stability);
  return write_to(who, opened->object, writer, {offset, data, as});
}

template <class Writer>
Outcome<WriteResult> Tree::write_to(const Credentials& who, const ObjectRef& object, Writer open,
                                    const WhatToWrite& what) {
  Observation observation(*this, object);
  if (!observation.before()) return Failure{observation.before().error()};
  if (const auto fault = data_fault(who, *object, *observation.before(), true))
    return Failure{*fault};
  const Outcome<SharedDescriptor> writer = open();
  if (!writer) return Failure{writer.error()};
  // Until it is known to all what was lost, or that it is uncommitted.
  Object::SyncTurn turn{{}, *writer};
  if (what.stability != Stability::Unstable) turn = object->begin_synced_write(*writer);
  Written written;
  {
    const CredentialScope scope(who);
    if (!scope.ok()) return Failure{Status::Access};
    const auto write = [&] {
      return write_stably(turn.descriptor->fd(), what.data, what.offset, what.stability);
    };
    written = write();
    const bool did_not_fit = written.count == 0 && is_full(written.error) && !written.lost;
    if (did_not_fit && make_room()) written = write();
  }
  if (written.lost || written.error == EIO) return Failure{lost(written.error)};
  if (written.error != 0 && written.count == 0) return Failure{status_of(written.error)};
  if (what.stability == Stability::Unstable) object->note_unstable_write();
  return WriteResult{static_cast<std::uint32_t>(written.count), what.stability,
                     observation.finish(written.count > 0)};
}

std::optional<Outcome<WriteResult>> Tree::write_at_once(const Credentials& who, const Handle& file,
                                                        std::uint64_t offset, const Rope& data,
                                                        Stability stability) {
  // Where nothing is written to a disk, writing does not wait either, whatever the stability.
  if (!in_memory_ || !may_prepare_loop() || data.size() > kLargestAtOnce ||
      !range_within<std::uint64_t>(offset, data.size(), kLargestFile))
    return std::nullopt;
  const ObjectRef cached = at_hand(file);
  const SharedDescriptor writer = cached != nullptr ? cached->writer() : nullptr;
  if (writer == nullptr || cached->type != FileType::Regular) return std::nullopt;
  prepare_loop_thread();
  auto written = write_to(who, cached, [&] { return Outcome<SharedDescriptor>(writer); },
                          {offset, data, stability});
  // A worker may make room.
  if (!written && is_out_of_room(written.error())) return std::nullopt;
  return written;
}

// The whole file: the system has no durable sync of a range.
Outcome<Change> Tree::commit(const Handle& file) {
  const auto opened = resolve_file(file);
  if (!opened) return Failure{opened.error()};
  Object& object = *opened->object;
  const auto alone = object.sync_alone();
  Observation observation(*this, opened->object);
  auto descriptor = object.open_to_sync();
  if (!descriptor) {
    if (descriptor.error() != Status::Access) return Failure{descriptor.error()};
    // Closed to the server's user by its mode.
    if (object.has_uncommitted()) return Failure{Status::Io};
    return observation.finish(false);
  }
  if (const auto fault = flush(object, **descriptor, ::fdatasync)) return Failure{*fault};
  descriptor->reset();
  object.close_writer();
  return observation.finish(false);
}

}  // namespace stag::vfs::posix
