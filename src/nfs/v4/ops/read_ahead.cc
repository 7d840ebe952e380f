#include "nfs/v4/ops/read_ahead.h"

#include <algorithm>
#include <new>

namespace stag::nfs::nfs4 {

Task<void> ReadAhead::fetch(PendingRead& pending) {
  SourceFile::Answer<SourceFile::Part> answer = Failure{v4::NFS4ERR_SERVERFAULT};
  try {
    answer = co_await source_.read(pending.offset, pending.block.bytes().first(pending.count));
  } catch (const std::bad_alloc&) {
    // As if the source had none.
  }
  pending.came.complete(std::move(answer));
}

void ReadAhead::ask(vfs::FileSystem& store) {
  while (in_flight_.size() < kPieces && next_ < end_) {
    auto pending = std::make_unique<PendingRead>();
    pending->offset = next_;
    pending->count = std::min<std::uint64_t>(end_ - next_, largest_);
    pending->block = store.placement(pending->count);
    Task<void> fetching = fetch(*pending);
    next_ += pending->count;
    in_flight_.push_back(std::move(pending));
    try {
      detach(std::move(fetching));
    } catch (const std::bad_alloc&) {
      next_ -= in_flight_.back()->count;
      in_flight_.pop_back();
      throw;
    }
  }
}

std::unique_ptr<ReadAhead::PendingRead> ReadAhead::take() {
  std::unique_ptr<PendingRead> first = std::move(in_flight_.front());
  in_flight_.pop_front();
  return first;
}

Task<void> ReadAhead::start_again() {
  while (!idle()) {
    const std::unique_ptr<PendingRead> unwanted = take();
    static_cast<void>(co_await unwanted->came);
  }
  was_short_ = false;
}

// A source that says neither data nor end would be asked for ever.
Task<SourceFile::Answer<ReadAhead::Piece>> ReadAhead::next(vfs::FileSystem& store) {
  if (was_short_) co_await start_again();
  ask(store);
  const std::unique_ptr<PendingRead> pending = take();
  const auto part = co_await pending->came;
  if (!part) co_return Failure{part.error()};
  if (part->count > pending->count || (part->count == 0 && !part->eof))
    co_return Failure{v4::NFS4ERR_IO};
  was_short_ = part->count < pending->count;
  if (was_short_) next_ = pending->offset + part->count;
  Piece piece;
  piece.data = Rope(std::move(pending->block).freeze(part->count));
  piece.eof = part->eof;
  co_return piece;
}

}  // namespace stag::nfs::nfs4
