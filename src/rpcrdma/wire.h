// Names and numbers of RPC-over-RDMA version 1 as they stand on the wire (RFC 8166 section 4.1).
#pragma once

#include <cstddef>
#include <cstdint>

namespace stag::rpcrdma {

enum rdma_proc : std::uint32_t {
  RDMA_MSG = 0,
  RDMA_NOMSG = 1,
  RDMA_MSGP = 2,  // never sent (RFC 8166 4.6.1)
  RDMA_DONE = 3,  // never sent (RFC 8166 4.6.2)
  RDMA_ERROR = 4,
};

enum rpc_rdma_errcode : std::uint32_t { ERR_VERS = 1, ERR_CHUNK = 2 };

enum msg_type : std::uint32_t {
  CALL = 0,
  REPLY = 1
};  // second word of an RPC message (RFC 5531 9)

inline constexpr std::uint32_t kVersion = 1;

// Bytes. RFC 8166 4.2: the four fixed words; 4.3: the header with three absent lists; 4.1.2: the
// parts of the lists, each with the word before it.
inline constexpr std::uint32_t kFixedSize = 16;
inline constexpr std::uint32_t kMinHeaderSize = 28;
inline constexpr std::uint32_t kSegmentSize = 16;
inline constexpr std::uint32_t kReadEntrySize = 24;  // presence word, Position, segment
inline constexpr std::uint32_t kWriteChunkHead = 8;  // presence word, segment count
inline constexpr std::uint32_t kErrChunkSize = 20;
inline constexpr std::uint32_t kErrVersSize = 28;

// RFC 8166 3.3.3: what every receiver can take before it has said more.
inline constexpr std::uint32_t kDefaultInlineThreshold = 1024;

}  // namespace stag::rpcrdma
