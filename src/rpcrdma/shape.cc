#include "rpcrdma/shape.h"

#include <algorithm>

#include "xdr/stream.h"

namespace stag::rpcrdma {

Items eligible_items(const xdr::Stream& stream, std::span<const xdr::ItemId> eligible) {
  Items found;
  std::uint32_t source = 0;
  for (const xdr::Item& item : stream.items()) {
    const bool watched = item.id != xdr::kNoItem &&
                         std::find(eligible.begin(), eligible.end(), item.id) != eligible.end();
    if (watched) {
      const std::size_t pieces = item.in_head ? 1 : item.bytes.pieces().size();
      found.push_back({.position = item.position,
                       .length = item.length,
                       .segments = static_cast<std::uint32_t>(std::max<std::size_t>(1, pieces)),
                       .source = source,
                       .ordinal = static_cast<std::uint32_t>(found.size())});
    }
    ++source;
  }
  return found;
}

}  // namespace stag::rpcrdma
