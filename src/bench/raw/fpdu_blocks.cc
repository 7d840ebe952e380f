#include "bench/raw/fpdu_blocks.h"

#include <algorithm>

#include "bench/load/load.h"
#include "iwarp/ddp.h"
#include "iwarp/fpdu.h"

namespace stag::bench {
namespace {

// Between two payloads: the CRC of one FPDU, length and header of the next.
constexpr std::size_t kBetween = iwarp::kCrcSize + iwarp::kLengthSize + iwarp::kTaggedHeaderSize;
constexpr std::size_t kMostPayload = iwarp::kLargestMulpdu - iwarp::kTaggedHeaderSize;
// What an RDMA Write of the Responder's holds at most.
constexpr std::size_t kMessage = 256 << 10;

}  // namespace

FpduBlocks::FpduBlocks(std::size_t block_bytes)
    : block_bytes_(block_bytes),
      memory_(std::max(LoadGenerator::kBulkBytes, block_bytes), std::byte{0x5a}),
      headers_((block_bytes / kMessage + 1) * (kMessage / kMostPayload + 1) * kBetween) {}

std::span<iovec> FpduBlocks::next() {
  if (offset_ + block_bytes_ > memory_.size()) offset_ = 0;
  pieces_.clear();
  std::byte* header = headers_.data();
  for (std::size_t done = 0; done < block_bytes_;) {
    const std::size_t payload =
        std::min({block_bytes_ - done, kMessage - done % kMessage, kMostPayload});
    pieces_.push_back({header, kBetween});
    pieces_.push_back({memory_.data() + offset_ + done, payload});
    header += kBetween;
    done += payload;
  }
  offset_ += block_bytes_;
  return pieces_;
}

}  // namespace stag::bench
