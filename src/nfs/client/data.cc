#include "nfs/client/data.h"

#include <algorithm>

namespace stag::nfs::client {

MutableBytes DataSink::buffer(std::uint64_t, std::uint32_t) {
  return {};
}

MutableBytes MemorySink::buffer(std::uint64_t offset, std::uint32_t length) {
  STAG_CHECK(offset >= start_);
  const std::uint64_t skip = std::min<std::uint64_t>(offset - start_, memory_.size());
  return memory_.subspan(skip, std::min<std::uint64_t>(length, memory_.size() - skip));
}

Task<Outcome<Ok>> MemorySink::write(std::uint64_t offset, Bytes data) {
  const MutableBytes to = buffer(offset, static_cast<std::uint32_t>(data.size()));
  if (to.size() < data.size())
    co_return Failure{Error::of_local("the file is longer than the memory for it")};
  if (to.data() != data.data()) std::memmove(to.data(), data.data(), data.size());
  co_return Ok{};
}

Task<Outcome<DataSource::Piece>> MemorySource::read(std::uint64_t offset, MutableBytes buffer) {
  STAG_CHECK(offset >= start_);
  const std::uint64_t skip = std::min<std::uint64_t>(offset - start_, memory_.size());
  Piece piece;
  piece.data = memory_.subspan(skip, std::min<std::uint64_t>(buffer.size(), memory_.size() - skip));
  co_return piece;
}

}  // namespace stag::nfs::client
