// MPA connection set-up (RFC 5044 section 7, RFC 6581): the Request and Reply frames as values.
//
// The module iwarp is software iWARP without the software that talks: MPA (mpa.h, negotiation.h,
// fpdu.h), DDP (ddp.h) and RDMAP (rdmap.h, terminate.h) as codecs, the memory a peer may touch
// (memory.h), a receive state machine (receiver.h) and a transmit side (sender.h, batch.h). Bytes
// go in, events come out; no socket, thread, clock or lock. One connection owns one StagTable, one
// Receiver and one Sender and uses them on one thread. Nothing a peer sends reaches a STAG_CHECK:
// its errors come out as a Violation, a Reason for us and a Terminate for the peer.
#pragma once

#include <cstdint>
#include <optional>

#include "base/bytes.h"
#include "base/reason.h"
#include "base/result.h"

namespace stag::iwarp {

inline constexpr std::size_t kMpaHeaderSize = 20;
inline constexpr std::size_t kMaxPrivateData = 512;  // RFC 5044 7.1.1, the IRD/ORD words included
inline constexpr std::size_t kMaxMpaFrame = kMpaHeaderSize + kMaxPrivateData;
inline constexpr std::size_t kDepthsSize = 4;
// RFC 6581 9.1: "I do not negotiate this depth".
inline constexpr std::uint16_t kDepthUnnegotiated = 0x3FFF;

enum class MpaFrameKind : std::uint8_t { Request, Reply };

// The enhanced connection data of RFC 6581 section 9. IRD and ORD are those of the frame's sender.
struct Depths {
  std::uint16_t ird = 0;      // 14 bits
  std::uint16_t ord = 0;      // 14 bits
  bool peer_to_peer = false;  // A
  bool send_rtr = false;      // B
  bool write_rtr = false;     // C
  bool read_rtr = false;      // D

  friend bool operator==(const Depths&, const Depths&) = default;
};

struct MpaFrame {
  MpaFrameKind kind = MpaFrameKind::Request;
  bool markers = false;   // M: the sender of this frame must receive markers
  bool crc = false;       // C
  bool rejected = false;  // R, Replies only
  std::uint8_t revision = 2;
  std::optional<Depths> depths;  // S; only where revision >= 2
  Bytes private_data;            // the ULP's own, behind the depths; a view
};

// How many bytes the frame that begins with `so_far` still lacks, 0 when it is complete; a reader
// that never reads more than this never takes a byte that belongs to the first FPDU. Fails as soon
// as the bytes cannot become an acceptable frame (wrong key, revision or length).
Result<std::size_t, Reason> bytes_missing(MpaFrameKind expected, Bytes so_far);

// `frame` is complete. The result's private_data points into it.
Result<MpaFrame, Reason> decode_mpa_frame(MpaFrameKind expected, Bytes frame);

// `to` holds kMaxMpaFrame bytes; the private data and depths together fit in kMaxPrivateData.
// Returns the frame's length.
std::size_t encode_mpa_frame(const MpaFrame& frame, MutableBytes to);

}  // namespace stag::iwarp
