// The receive side of one connection: the peer's byte stream after MPA set-up in, events out.
//
// on_bytes() takes whatever the socket gave, in any portions, and consumes all of it. An FPDU that
// lies whole in the given bytes is checked and used in place. Of a larger one the part at hand is
// placed, and direct_target() says where the rest of its payload belongs, so that the caller can
// receive straight into that memory, followed by room for what comes behind it:
//
//   PlacementTarget target = receiver.direct_target();
//   n = readv(socket, {target.where, read_ahead});          // or recv into read_ahead alone
//   first = min(n, target.where.size());
//   receiver.on_placed(first);
//   receiver.on_bytes(read_ahead.first(n - first));
//
// Placement before the CRC is known: with CRC on, the payload of an FPDU that arrives in parts is
// placed in its target before its CRC is checked. Nothing is delivered of it (no event follows),
// and a mismatch ends the connection; RFC 5041 lets a target's contents be undefined until
// delivery. Only memory this peer was given to write can be hit, because STag, right and bounds are
// checked before every byte.
//
// After a Violation or a Terminate the receiver is stopped and drops every further byte. Events are
// delivered from inside on_bytes() and on_placed(); the sink may call back into the receiver's
// setters and stop(), but must not destroy it there.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/buffer.h"
#include "iwarp/fpdu.h"
#include "iwarp/memory.h"
#include "iwarp/terminate.h"

namespace stag::iwarp {

class ReceiverSink {
 public:
  // A Send. When message.owned() is false its bytes are valid only during this call. `invalidated`
  // is already revoked in the table.
  virtual void on_send(Buffer message, std::optional<std::uint32_t> invalidated,
                       bool solicited) = 0;
  // A valid Read Request, to be answered in this order; read_response_sent() when it is.
  virtual void on_read_request(const ReadRequest& request) = 0;
  // The oldest expected Read Response is complete and placed.
  virtual void on_read_done(const ReadRequest& request) = 0;
  virtual void on_terminate(const Terminate& terminate) = 0;
  // The peer broke a rule: send the Terminate, then close.
  virtual void on_violation(const Violation& violation) = 0;

 protected:
  ~ReceiverSink() = default;
};

struct ReceiverOptions {
  bool crc = false;
  std::uint16_t ird = 0;  // Read Requests of the peer that may wait for their Response
  std::uint16_t ord = 0;  // Read Requests of ours that may be outstanding
  // A payload with at least this much still missing is offered for direct placement.
  std::size_t direct_threshold = 4096;
};

struct PlacementTarget {
  MutableBytes where;  // empty: receive into the read-ahead buffer
};

// Counted since the connection began, in bytes of payload or in messages.
struct ReceiverTraffic {
  std::uint64_t sends = 0, read_requests = 0;
  std::uint64_t write_bytes = 0, read_bytes = 0;
  std::uint64_t copied_bytes = 0;     // tagged payload that on_bytes() moved to its place
  std::uint64_t discarded_bytes = 0;  // for targets that were given up
};

class Receiver {
 public:
  Receiver(const ReceiverOptions& options, StagTable& table, ReceiverSink& sink);

  void on_bytes(Bytes bytes);
  // Looks the target up afresh; valid until anything else is called.
  PlacementTarget direct_target();
  // `count` bytes have been received into the front of the last direct_target().
  void on_placed(std::size_t count);

  // `count` more Sends may arrive, each of up to `size` bytes from now on.
  void add_receive_credit(std::uint32_t count, std::uint32_t size);
  std::uint32_t receive_credit() const { return credit_; }

  // We are about to send this Read Request; at most options.ord may be expected at once (CHECK).
  void expect_read_response(const ReadRequest& request);
  std::size_t reads_outstanding() const { return reads_.size(); }
  void read_response_sent();

  // RFC 5044 7.1.2 rule 4: a responder sends nothing before.
  bool first_fpdu_seen() const { return first_fpdu_seen_; }
  void stop() { stopped_ = true; }
  bool stopped() const { return stopped_; }
  // Whether the stream ended between two FPDUs, so that an end of file is no loss of data.
  bool at_boundary() const;
  const ReceiverTraffic& traffic() const { return traffic_; }
};

}  // namespace stag::iwarp
