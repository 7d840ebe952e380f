#include "nfs/v4/ops/read_ahead.h"

#include <algorithm>
#include <new>

namespace stag::nfs::nfs4 {

Task<void> ReadAhead::fetch(Flight& flight) {
  SourceFile::Answer<SourceFile::Part> answer = Failure{v4::NFS4ERR_SERVERFAULT};
  try {
    answer = co_await source_.read(flight.offset, flight.block.bytes().first(flight.count));
  } catch (const std::bad_alloc&) {
    // As if the source had none.
  }
  flight.came.complete(std::move(answer));
}

void ReadAhead::ask(vfs::FileSystem& store) {
  while (flights_.size() < kPieces && next_ < end_) {
    auto flight = std::make_unique<Flight>();
    flight->offset = next_;
    flight->count = std::min<std::uint64_t>(end_ - next_, largest_);
    flight->block = store.placement(flight->count);
    Task<void> fetching = fetch(*flight);
    next_ += flight->count;
    flights_.push_back(std::move(flight));
    try {
      detach(std::move(fetching));
    } catch (const std::bad_alloc&) {
      next_ -= flights_.back()->count;
      flights_.pop_back();
      throw;
    }
  }
}

std::unique_ptr<ReadAhead::Flight> ReadAhead::take() {
  std::unique_ptr<Flight> first = std::move(flights_.front());
  flights_.pop_front();
  return first;
}

Task<void> ReadAhead::start_again() {
  while (!idle()) {
    const std::unique_ptr<Flight> unwanted = take();
    static_cast<void>(co_await unwanted->came);
  }
  was_short_ = false;
}

// A source that says neither data nor end would be asked for ever.
Task<SourceFile::Answer<ReadAhead::Piece>> ReadAhead::next(vfs::FileSystem& store) {
  if (was_short_) co_await start_again();
  ask(store);
  const std::unique_ptr<Flight> flight = take();
  const auto part = co_await flight->came;
  if (!part) co_return Failure{part.error()};
  if (part->count > flight->count || (part->count == 0 && !part->eof))
    co_return Failure{v4::NFS4ERR_IO};
  was_short_ = part->count < flight->count;
  if (was_short_) next_ = flight->offset + part->count;
  Piece piece;
  piece.data = Rope(std::move(flight->block).freeze(part->count));
  piece.eof = part->eof;
  co_return piece;
}

}  // namespace stag::nfs::nfs4
