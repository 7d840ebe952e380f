// The transmit side of one connection: messages in, FPDUs out, one message after another. The
// caller schedules whole messages: begin() one when idle(), then fill() batches until it is idle()
// again. Payload is never copied; a batch refers to it, markers or not.
//
// A Read Response has no payload of its own: its bytes are looked up in the table for every FPDU,
// so that a source that was revoked in between ends the connection instead of leaking memory.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "base/rope.h"
#include "iwarp/batch.h"
#include "iwarp/fpdu.h"
#include "iwarp/memory.h"
#include "iwarp/terminate.h"

namespace stag::iwarp {

struct SenderOptions {
  bool crc = false;
  bool markers = false;  // Negotiated::markers_to_send
  // Octets of the largest ULPDU to send (MULPDU); a value out of bounds becomes the nearest bound.
  // The default suits any peer that reads a stream; mulpdu() gives the value for a peer that wants
  // FPDUs aligned with TCP segments.
  std::size_t max_ulpdu = kLargestMulpdu;
  std::size_t batch_bytes = 1 << 20;  // fill() stops when a batch holds this much
  std::uint32_t first_sequence = 1;   // as in ReceiverOptions
};

class Sender {
 public:
  Sender(const SenderOptions& options, StagTable& table);

  // All begin_ functions: only when idle().
  void begin_send(Rope message, std::optional<std::uint32_t> invalidate = std::nullopt,
                  bool solicited = false);
  // The whole of a Send that is_short() at once, `size` bytes in parts; only when idle() and not
  // full().
  bool is_short(std::size_t size) const { return size < short_below_; }
  void add_send(Batch& batch, std::span<const Bytes> parts, std::size_t size,
                std::optional<std::uint32_t> invalidate);
  void begin_write(std::uint32_t stag, std::uint64_t offset, Rope data);
  void begin_read_request(const ReadRequest& request);
  void begin_read_response(const ReadRequest& request);
  void begin_terminate(const Terminate& terminate);

  bool idle() const { return !active_; }

  // Forgets the message on its way; what batches hold of it stays theirs.
  void abort();
  // Adds FPDUs of the message to `batch` until the message is complete or the batch is full. Fails
  // when the source of a Read Response is no longer there: the message is given up between two
  // FPDUs, and the Violation is to be sent and the connection closed.
  Result<Ok, Violation> fill(Batch& batch);
  bool full(const Batch& batch) const;

 private:
  // One FPDU, gathered piece by piece: counts for markers, sums for the CRC.
  class Fpdu;

  void begin(Opcode opcode, std::uint32_t stag, std::uint64_t offset, std::size_t size);
  void add_segment(Batch& batch, std::size_t length, bool last);
  static std::byte* add_whole(Batch& batch, std::size_t size);
  void sum_whole(std::byte* fpdu, std::size_t size) const;
  void encode_header(std::byte* to, std::size_t length, bool last) const;
  void add_rope(Fpdu& fpdu, std::size_t length);
  Violation source_fault(StagFault fault) const;
  std::size_t largest_payload() const;

  SenderOptions options_;
  std::size_t short_below_ = 0;  // a Send of fewer octets goes in one piece
  StagTable& table_;
  std::array<std::uint32_t, 3> next_sequence_;  // MSN by queue
  std::uint32_t answered_;                      // the MSN of the Read Request being answered
  // Stream octets until the next marker is due (RFC 5044 4.3: one precedes the first FPDU).
  std::size_t until_marker_ = 0;

  // The message on its way.
  bool active_ = false;
  Opcode opcode_ = Opcode::Send;
  std::uint32_t stag_ = 0;    // of a tagged message; of an untagged one the Invalidate STag
  std::uint64_t offset_ = 0;  // TO of a tagged message's first byte
  std::size_t size_ = 0;
  std::size_t sent_ = 0;
  Rope payload_;
  std::size_t piece_ = 0;     // of payload_, the next to send
  std::size_t in_piece_ = 0;  // octets of it that are sent
  ReadRequest request_;       // that a Read Response answers
};

}  // namespace stag::iwarp
