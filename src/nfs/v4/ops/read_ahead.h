// The next pieces of another server's file, some of which are asked for while others are written:
// over a network that takes its time one at a time would leave it idle.
//
// Thread: home. It may go once it is idle().
#pragma once

#include <algorithm>
#include <deque>
#include <memory>

#include "base/completion.h"
#include "nfs/v4/attributes/attributes.h"
#include "nfs/v4/compound/source_servers.h"
#include "vfs/vfs.h"

namespace stag::nfs::nfs4 {

class ReadAhead {
 public:
  // Under way at a time, each of a MiB, or of what the source gives at once.
  static constexpr std::size_t kPieces = 4;

  struct Piece {
    Rope data;
    bool eof = false;
  };

  // Reads the bytes [from, end) of `source`, which outlives it.
  ReadAhead(SourceFile& source, std::uint64_t from, std::uint64_t end)
      : source_(source),
        largest_(std::min<std::uint32_t>(source.largest_read(), kMaxTransfer)),
        next_(from),
        end_(end) {}
  ReadAhead(const ReadAhead&) = delete;

  // What follows the last one, which was not the end; IO where the source contradicts itself. What
  // is asked for comes into memory of `store`.
  Task<SourceFile::Answer<Piece>> next(vfs::FileSystem& store);
  bool idle() const { return in_flight_.empty(); }
  // The oldest one that is under way. It is so until `came`, and may not go before.
  struct PendingRead {
    std::uint64_t offset = 0;
    std::uint64_t count = 0;  // bytes
    Block block{};
    Completion<SourceFile::Answer<SourceFile::Part>> came{};
  };
  std::unique_ptr<PendingRead> take();

 private:
  void ask(vfs::FileSystem& store);
  Task<void> fetch(PendingRead& pending);
  Task<void> start_again();

  SourceFile& source_;
  const std::uint32_t largest_;  // bytes
  std::uint64_t next_;           // to be asked for
  // The last one was shorter than asked for: what was asked for behind it is not what follows.
  bool was_short_ = false;
  const std::uint64_t end_;
  std::deque<std::unique_ptr<PendingRead>> in_flight_;  // in order
};

}  // namespace stag::nfs::nfs4
