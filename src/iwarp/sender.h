// The transmit side of one connection: messages in, FPDUs out, one message after another. The
// caller schedules whole messages: begin() one when idle(), then fill() batches until it is idle()
// again. Payload is never copied; a batch refers to it.
//
// A Read Response has no payload of its own: its bytes are looked up in the table for every FPDU,
// so that a source that was revoked in between ends the connection instead of leaking memory.
#pragma once

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
  // Largest ULPDU to send. The default suits any peer that reads a stream; mulpdu() gives the value
  // for a peer that wants FPDUs aligned with TCP segments.
  std::size_t max_ulpdu = kMaxUlpdu;
  std::size_t batch_bytes = 1 << 20;  // fill() stops when a batch holds this much
};

class Sender {
 public:
  Sender(const SenderOptions& options, const StagTable& table);

  // All begin_ functions: only when idle().
  void begin_send(Rope message, std::optional<std::uint32_t> invalidate = std::nullopt,
                  bool solicited = false);
  void begin_write(std::uint32_t stag, std::uint64_t offset, Rope data);
  void begin_read_request(const ReadRequest& request);
  void begin_read_response(const ReadRequest& request);
  void begin_terminate(const Terminate& terminate);

  bool idle() const { return !active_; }

  // Adds FPDUs of the message to `batch` until the message is complete or the batch is full. Fails
  // when the source of a Read Response is no longer there: the message is given up between two
  // FPDUs, and the Violation is to be sent and the connection closed.
  Result<Ok, Violation> fill(Batch& batch);
  bool full(const Batch& batch) const;
};

}  // namespace stag::iwarp
