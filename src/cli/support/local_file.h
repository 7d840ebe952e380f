// LocalFile: a file of this machine as the source of a bulk transfer; it reports holes.
#pragma once

#include <unistd.h>

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "base/unique_fd.h"
#include "cli/support/command.h"
#include "nfs/client/data.h"
#include "nfs/client/protocol/types.h"

namespace stag::cli {

// "cannot VERB 'PATH': why; what to do".
std::string local_trouble(std::string_view verb, const std::string& path, int error);
// Whether it is a FIFO, of which opening waits for a writer, and there may be none. A pipe that was
// handed over, as /dev/stdin and `<(...)` are, has its writer.
bool waits_for_a_writer(const std::string& path);
// Writes all bytes at `offset` or, without one, at the descriptor's position. False with errno set.
bool write_fully(int fd, Bytes data, std::optional<std::uint64_t> offset);

class LocalFile final : public nfs::client::DataSource {
 public:
  using Seek = std::function<off_t(int fd, off_t offset, int whence)>;
  // `path` is for messages; `seek` is lseek(2), on any thread.
  LocalFile(net::EpollLoop& loop, std::string path, UniqueFd fd, Seek seek = ::lseek)
      : loop_(loop), path_(std::move(path)), fd_(std::move(fd)), seek_(std::move(seek)) {}

  Task<Outcome<Piece>> read(std::uint64_t offset, MutableBytes buffer) override;
  // The first hole from byte `offset` on; nullopt: there is none, or the file system tells of none.
  Task<Outcome<std::optional<nfs::client::FileRange>>> next_hole(std::uint64_t offset);

 private:
  Outcome<Piece> read_now(std::uint64_t offset, MutableBytes buffer);

  net::EpollLoop& loop_;
  const std::string path_;
  UniqueFd fd_;
  const Seek seek_;
  std::uint64_t data_end_ = 0;  // end of the range that is known to be data
};

}  // namespace stag::cli
