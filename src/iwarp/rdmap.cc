#include "iwarp/rdmap.h"

namespace stag::iwarp {

ReadRequest decode_read_request(const std::byte* from) {
  return {load_be<std::uint32_t>(from), load_be<std::uint64_t>(from + 4),
          load_be<std::uint32_t>(from + 12), load_be<std::uint32_t>(from + 16),
          load_be<std::uint64_t>(from + 20)};
}

void encode_read_request(const ReadRequest& request, std::byte* to) {
  store_be(to, request.sink_stag);
  store_be(to + 4, request.sink_offset);
  store_be(to + 12, request.size);
  store_be(to + 16, request.source_stag);
  store_be(to + 20, request.source_offset);
}

}  // namespace stag::iwarp
