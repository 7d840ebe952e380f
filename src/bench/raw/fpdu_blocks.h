// FpduBlocks: the memory of a raw stream that has the shape of software iWARP's without being it:
// blocks that go through 4 MiB again and again, as the loads of bulk data do, in FPDUs as the
// provider cuts them (iwarp/sender.h), whose headers and CRCs are moved and not looked at. What
// the kernel does with that is the most that bulk data can reach on software iWARP.
#pragma once

#include <sys/uio.h>

#include <cstddef>
#include <span>
#include <vector>

namespace stag::bench {

class FpduBlocks {
 public:
  explicit FpduBlocks(std::size_t block_bytes);

  // The ranges of the next block, headers among them; until the next call the caller's to change.
  std::span<iovec> next();

 private:
  const std::size_t block_bytes_;
  std::vector<std::byte> memory_, headers_;
  std::vector<iovec> pieces_;
  std::size_t offset_ = 0;  // into memory_, of the next block
};

}  // namespace stag::bench
