// Transport headers: what decodes is within its limits, and encodes again to a header with the same
// value.
#include "input.h"
#include "rpcrdma/header.h"

using namespace stag;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const Bytes message = fuzz::Input(data, size).rest();
  const rpcrdma::HeaderLimits limits{
      .max_chunks = 8, .max_segments = 16, .max_chunk_bytes = 1 << 20};
  Result<rpcrdma::ParsedHeader, rpcrdma::HeaderFault> parsed =
      rpcrdma::decode_header(message, limits);
  if (parsed.ok()) {
    STAG_CHECK(parsed->size <= message.size());
    for (const rpcrdma::ReadChunk& chunk : parsed->header.read_list)
      STAG_CHECK(rpcrdma::total_length(chunk.segments) <= limits.max_chunk_bytes);
    const rpcrdma::EncodedHeader again(parsed->header);
    Result<rpcrdma::ParsedHeader, rpcrdma::HeaderFault> second =
        rpcrdma::decode_header(again.bytes(), limits);
    if (parsed->header.proc != rpcrdma::RDMA_DONE)
      STAG_CHECK(second.ok() && second->header == parsed->header);
  }
  Result<rpcrdma::ErrorMessage, Reason> error = rpcrdma::decode_error(message);
  if (error.ok()) {
    Result<rpcrdma::ErrorMessage, Reason> second =
        rpcrdma::decode_error(rpcrdma::encode_error(*error).bytes());
    STAG_CHECK(second.ok() && *second == *error);
  }
  return 0;
}
