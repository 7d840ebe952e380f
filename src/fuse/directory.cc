#include "fuse/directory.h"

namespace stag::fuse {

using nfs::client::Entry;
using nfs::client::Handle;
using nfs::client::Outcome;

OpenDirectory::OpenDirectory(const nfs::client::FileSystem& files, const Handle& handle)
    : files_(files), handle_(handle), listing_(files.list(handle)) {}

const Entry* OpenDirectory::at(std::uint64_t offset) const {
  const std::uint64_t place = offset - kDots;
  if (place < first_ || place - first_ >= batch_.size()) return nullptr;
  return &batch_[place - first_];
}

Task<Outcome<Ok>> OpenDirectory::find(std::uint64_t offset, AsOf now) {
  // seekdir(3) goes back.
  if (offset - kDots < first_) rewind();
  struct Waiting {
    bool& waiting;
    explicit Waiting(bool& waiting) : waiting(waiting) { waiting = true; }
    ~Waiting() { waiting = false; }
  } waiting(waiting_);
  Outcome<Ok> found = Ok{};
  while (found.ok() && !ended_ && at(offset) == nullptr) {
    found = co_await next_batch();
    if (found && !ended_) as_of_ = now;
  }
  co_return found;
}

void OpenDirectory::rewind() {
  if (first_ == 0 && batch_.empty() && !ended_) return;
  listing_ = files_.list(handle_);
  batch_.clear();
  first_ = 0;
  ended_ = false;
}

Task<Outcome<Ok>> OpenDirectory::next_batch() {
  Outcome<std::vector<Entry>> batch = co_await listing_.next();
  if (!batch) co_return Failure{batch.error()};
  if (batch->empty()) {
    ended_ = true;
    co_return Ok{};
  }
  first_ += batch_.size();
  batch_ = *std::move(batch);
  co_return Ok{};
}

}  // namespace stag::fuse
