// RDMAP messages (RFC 5040 section 4): opcodes, queues and the Read Request header.
#pragma once

#include <cstdint>

#include "base/bytes.h"

namespace stag::iwarp {

enum class Opcode : std::uint8_t {
  Write = 0,
  ReadRequest = 1,
  ReadResponse = 2,
  Send = 3,
  SendInvalidate = 4,
  SendSolicited = 5,
  SendSolicitedInvalidate = 6,
  Terminate = 7,
};
inline constexpr std::uint8_t kLastOpcode = 7;

constexpr bool is_tagged(Opcode opcode) {
  return opcode == Opcode::Write || opcode == Opcode::ReadResponse;
}
constexpr bool invalidates(Opcode opcode) {
  return opcode == Opcode::SendInvalidate || opcode == Opcode::SendSolicitedInvalidate;
}
constexpr bool is_solicited(Opcode opcode) {
  return opcode == Opcode::SendSolicited || opcode == Opcode::SendSolicitedInvalidate;
}

// The queue number of an untagged message (RFC 5040 section 4.2).
inline constexpr std::uint32_t kSendQueue = 0;
inline constexpr std::uint32_t kReadRequestQueue = 1;
inline constexpr std::uint32_t kTerminateQueue = 2;
constexpr std::uint32_t queue_of(Opcode opcode) {
  if (opcode == Opcode::ReadRequest) return kReadRequestQueue;
  return opcode == Opcode::Terminate ? kTerminateQueue : kSendQueue;
}

inline constexpr std::size_t kReadRequestSize = 28;

struct ReadRequest {
  std::uint32_t sink_stag = 0;
  std::uint64_t sink_offset = 0;
  std::uint32_t size = 0;  // bytes
  std::uint32_t source_stag = 0;
  std::uint64_t source_offset = 0;

  friend bool operator==(const ReadRequest&, const ReadRequest&) = default;
};

// Both take exactly kReadRequestSize bytes, checked by the caller.
ReadRequest decode_read_request(const std::byte* from);
void encode_read_request(const ReadRequest& request, std::byte* to);

}  // namespace stag::iwarp
