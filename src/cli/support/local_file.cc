#include "cli/support/local_file.h"

#include <fmt/format.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>

namespace stag::cli {
namespace {

using nfs::client::Error;

std::string_view advice(int error) {
  switch (error) {
    case ENOSPC:
    case EDQUOT:
      return "; make room or choose another destination";
    case EACCES:
    case EPERM:
    case EROFS:
      return "; choose a place where you may do that";
    case ENOENT:
      return "; check the path";
    default:
      return "";
  }
}

}  // namespace

std::string local_trouble(std::string_view verb, const std::string& path, int error) {
  return fmt::format("cannot {} '{}': {}{}", verb, path, std::strerror(error), advice(error));
}

bool waits_for_a_writer(const std::string& path) {
  struct stat file {};
  struct statfs of {};
  return ::stat(path.c_str(), &file) == 0 && S_ISFIFO(file.st_mode) &&
         ::statfs(path.c_str(), &of) == 0 && of.f_type != PIPEFS_MAGIC;
}

bool write_fully(int fd, Bytes data, std::optional<std::uint64_t> offset) {
  while (!data.empty()) {
    const ssize_t wrote = offset
                              ? ::pwrite(fd, data.data(), data.size(), static_cast<off_t>(*offset))
                              : ::write(fd, data.data(), data.size());
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote < 0) return false;
    data = data.subspan(static_cast<std::size_t>(wrote));
    if (offset) *offset += static_cast<std::uint64_t>(wrote);
  }
  return true;
}

Task<Outcome<LocalFile::Piece>> LocalFile::read(std::uint64_t offset, MutableBytes buffer) {
  co_return co_await offloaded(loop_, [&] { return read_now(offset, buffer); });
}

Outcome<LocalFile::Piece> LocalFile::read_now(std::uint64_t offset, MutableBytes buffer) {
  Piece piece;
  if (offset >= data_end_) {
    const auto at = static_cast<off_t>(offset);
    const off_t before = seek_(fd_.fd(), 0, SEEK_END);
    const off_t data = seek_(fd_.fd(), at, SEEK_DATA);
    // ENXIO: nothing but a hole follows, or nothing that is within the length of the file. What was
    // appended or cut off between the calls is in no hole.
    const bool none = data < 0 && errno == ENXIO;
    const off_t end = none ? std::min(before, seek_(fd_.fd(), 0, SEEK_END)) : at;
    if (end > at) {
      piece.hole = static_cast<std::uint64_t>(end - at);
      return piece;
    }
    // A file system without SEEK_DATA reports no holes. What the kernel makes up when it is read
    // (/proc) has a length of zero, whatever is in it.
    const off_t hole = data < 0 ? -1 : seek_(fd_.fd(), data, SEEK_HOLE);
    piece.hole = data < 0 ? 0 : static_cast<std::uint64_t>(data - at);
    data_end_ = hole < 0 ? UINT64_MAX : static_cast<std::uint64_t>(hole);
  }
  const std::uint64_t begin = offset + piece.hole;
  const auto length = std::min<std::uint64_t>(buffer.size(), data_end_ - begin);
  ssize_t got = -1;
  do {
    got = ::pread(fd_.fd(), buffer.data(), length, static_cast<off_t>(begin));
  } while (got < 0 && errno == EINTR);
  if (got < 0) return Failure{Error::of_local(local_trouble("read", path_, errno))};
  piece.data = buffer.first(static_cast<std::size_t>(got));
  return piece;
}

Task<Outcome<std::optional<nfs::client::FileRange>>> LocalFile::next_hole(std::uint64_t offset) {
  using Hole = std::optional<nfs::client::FileRange>;
  co_return co_await offloaded(loop_, [&]() -> Outcome<Hole> {
    const off_t end = seek_(fd_.fd(), 0, SEEK_END);
    const off_t hole = seek_(fd_.fd(), static_cast<off_t>(offset), SEEK_HOLE);
    // Every file ends in a hole without length.
    if (hole < 0 || hole >= end) return Hole();
    off_t data = seek_(fd_.fd(), hole, SEEK_DATA);
    // ENXIO: it is the last thing in the file.
    if (data < 0 && errno == ENXIO) data = end;
    // Another process may have written there meanwhile.
    if (data <= hole) return Hole();
    return Hole({static_cast<std::uint64_t>(hole), static_cast<std::uint64_t>(data - hole)});
  });
}

}  // namespace stag::cli
