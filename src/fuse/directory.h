// An open directory: its entries by the offsets that the kernel names them by.
#pragma once

#include <cstdint>
#include <vector>

#include "base/loop.h"
#include "base/task.h"
#include "nfs/client/file_system.h"

namespace stag::fuse {

// Offset 0 is the begin, 1 and 2 are behind "." and "..", and the entry at place i of the listing
// is between offsets i + 2 and i + 3. Thread: the loop of the Mount.
class OpenDirectory {
 public:
  static constexpr std::uint64_t kDots = 2;

  OpenDirectory(const nfs::client::FileSystem& files, const nfs::client::Handle& handle);

  // Whether a Task waits in find(); until it ends, nothing else may be called but at().
  bool busy() const { return waiting_; }
  // The same directory, opened once more.
  OpenDirectory again() const { return {files_, handle_}; }
  // The listing begins again, as the directory is now.
  void rewind();
  // When the server was asked for entries: `event` is Inodes::now().
  struct AsOf {
    std::uint64_t event = 0;
    TimePoint time{};
  };
  // Finds the entry behind `offset`, if the directory has one there. Fails with the server's error,
  // or Kind::Local while another Task waits here.
  Task<nfs::client::Outcome<Ok>> find(std::uint64_t offset, AsOf now);
  // The entry behind `offset`, at least kDots; null where find() would have to look.
  const nfs::client::Entry* at(std::uint64_t offset) const;
  // Of what at() yields, or earlier.
  const AsOf& as_of() const { return as_of_; }

 private:
  Task<nfs::client::Outcome<Ok>> next_batch();

  const nfs::client::FileSystem& files_;
  nfs::client::Handle handle_;
  nfs::client::Listing listing_;
  std::vector<nfs::client::Entry> batch_;
  AsOf as_of_{};             // of batch_
  std::uint64_t first_ = 0;  // the place of the first entry of batch_
  bool ended_ = false;
  bool waiting_ = false;
};

}  // namespace stag::fuse
