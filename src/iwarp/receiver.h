// The receive side of one connection: the peer's byte stream after MPA set-up in, events out.
//
// on_bytes() takes whatever the socket gave, in any portions, and consumes all of it. An FPDU that
// lies whole in the given bytes is checked and used in place. Of a larger one the part at hand is
// placed, and direct_targets() says where the next bytes of the stream belong, so that the caller
// can receive straight into that memory, followed by room for what comes behind it:
//
//   targets = receiver.direct_targets();
//   n = readv(socket, {targets..., read_ahead});            // or recv into read_ahead alone
//   first = min(n, size of all targets);
//   receiver.on_placed(first);
//   receiver.on_bytes(read_ahead.first(n - first));
//
// Prediction: while a tagged message is under way, what follows an FPDU is most likely another that
// goes on where it ends. direct_targets() names the places of several such, and a place of the
// receiver's own for each header between them. Every header is checked as ever when it has come;
// where one is not what was predicted, the bytes behind it are taken out again before anything else
// happens, and go the ordinary way. Until then they lay in memory under the STag of the Write
// before them, which the same peer may write, and only where it had written nothing so far: nothing
// valid is overwritten. Exposed memory that no Write has filled has undefined contents afterwards.
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
#include <span>
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
  // A payload with at least this much still missing is offered for direct placement; of a tagged
  // segment with at least a quarter of it.
  std::size_t direct_threshold = 4096;
  // MSN of every queue's first message. RFC 5041 4.3 fixes it at 1; tests begin near the wrap.
  std::uint32_t first_sequence = 1;
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
  // FPDUs behind the one under way: a MiB in one system call.
  static constexpr std::size_t kMostPredicted = 16;
  static constexpr std::size_t kMostTargets = 1 + 2 * kMostPredicted;

  Receiver(const ReceiverOptions& options, StagTable& table, ReceiverSink& sink);

  void on_bytes(Bytes bytes);
  // Looks the targets up afresh; valid until anything else is called. Empty: receive into the
  // read-ahead buffer.
  std::span<const MutableBytes> direct_targets() {
    target_count_ = 0;
    if (stopped_ || phase_ != Phase::Payload) return {};
    return targets_of_payload();
  }
  // `count` bytes of the stream have been received into the last direct_targets(), in their order.
  void on_placed(std::size_t count);

  // `count` more Sends may arrive, each of up to `size` bytes from now on.
  void add_receive_credit(std::uint32_t count, std::uint32_t size);
  std::uint32_t receive_credit() const { return credit_; }

  // We are about to send this Read Request; at most options.ord may be expected at once
  // (STAG_CHECK).
  void expect_read_response(const ReadRequest& request);
  std::size_t reads_outstanding() const { return reads_count_; }
  void read_response_sent();

  // RFC 5044 7.1.2 rule 4: a responder sends nothing before.
  bool first_fpdu_seen() const { return fpdus_ > 0; }
  std::uint64_t fpdus() const { return fpdus_; }  // that were whole and right, so far
  void stop() { stopped_ = true; }
  bool stopped() const { return stopped_; }
  // Whether the stream ended between two FPDUs, so that an end of file is no loss of data.
  bool at_boundary() const;
  // For the watch that the peer goes on with what it has begun: the FPDUs before the one, or before
  // the Send, that is not whole yet; the payload bytes that have come of that one; and those of all
  // Read Responses.
  std::uint64_t fpdus_before_unfinished() const { return send_open_ ? send_began_ : fpdus_; }
  std::uint64_t bytes_of_unfinished() const;
  std::uint64_t read_bytes() const;
  const ReceiverTraffic& traffic() const { return traffic_; }

 private:
  // Pad and CRC of a tagged FPDU, length and header of the next.
  static constexpr std::size_t kMostBetween = 3 + kCrcSize + kLengthSize + kTaggedHeaderSize;

  // Where in an FPDU the next byte of the stream lies.
  enum class Phase : std::uint8_t { Header, Payload, Trailer };

  struct Fault {
    Reason reason;
    ErrorCode error;
  };
  using Verdict = std::optional<Fault>;

  // The segment being received. Of an untagged one `stag` is the Invalidate STag, `offset` the MO.
  struct Segment {
    Control control;
    Opcode opcode = Opcode::Write;
    std::uint32_t stag = 0;
    std::uint64_t offset = 0;
    std::uint32_t queue = 0;
    std::uint32_t sequence = 0;
    std::size_t ulpdu = 0;    // octets
    std::size_t header = 0;   // octets of it, once they are all here
    std::size_t payload = 0;  // octets of it behind the header
    std::size_t placed = 0;   // octets of the payload that have come
  };

  // A message whose last segment has not come yet.
  struct OpenWrite {
    std::uint32_t stag = 0;
    std::uint64_t next = 0;
  };

  // The common case: a Send of one segment that lies whole in `bytes` and is right in every
  // respect; how many of them it is. 0: whatever else comes is left to the general way below, which
  // finds out what is wrong.
  std::size_t take_whole_send(Bytes bytes);

  // Framing. Each takes its share of `bytes` off the front.
  void take(Bytes bytes);
  bool collect(Bytes& bytes, std::size_t wanted);
  bool collect_header(Bytes& bytes);
  void begin_segment(Bytes& bytes);
  void whole_segment(Bytes& bytes);
  void add_payload(Bytes& bytes);
  void add_trailer(Bytes& bytes);
  void advance(std::size_t count);
  std::size_t trailer_size() const { return fpdu_pad(segment_.ulpdu) + kCrcSize; }
  // `whole` is the payload when it lies in one piece, else empty.
  void end_segment(Bytes whole);
  // Bytes of the FPDU under way that are in their place.
  std::size_t placed_now() const { return phase_ == Phase::Header ? 0 : segment_.placed; }
  void fail(Reason reason, ErrorCode error);

  // Checks of a header before anything of its payload is placed.
  void parse_header();
  Verdict check_header();
  Verdict check_write();
  Verdict check_read_response();
  Verdict check_untagged();
  Verdict check_send();
  Verdict check_read_request() const;

  // Placement: receiver_placement.cc.
  Right right_of_sink() const;
  Result<Placement, StagFault> sink_at(std::size_t length) const;
  std::span<const MutableBytes> targets_of_payload();
  void predict();
  bool is_predicted(MutableBytes place) const;
  void take_misplaced(std::size_t target, std::size_t count);
  bool place(Bytes part);
  MutableBytes assembly_rest();

  // The end of a message.
  void deliver_send(Bytes whole);
  void deliver_read_request();
  void deliver_read_response();
  void deliver_terminate();

  ReceiverOptions options_;
  StagTable& table_;
  ReceiverSink& sink_;

  Phase phase_ = Phase::Header;
  bool stopped_ = false;
  std::uint64_t fpdus_ = 0;  // that were whole
  std::array<std::byte, kLengthSize + kUntaggedHeaderSize> header_{};
  std::size_t header_size_ = 0;
  std::array<std::byte, 8> trailer_{};  // pad and CRC
  std::size_t trailer_filled_ = 0;
  Crc32c crc_;
  Segment segment_;

  // Payload, what lies between it and the next payload, that payload, and so on.
  std::array<MutableBytes, kMostTargets> targets_;
  std::size_t target_count_ = 0;
  std::array<std::byte, kMostPredicted * kMostBetween> between_;
  std::size_t longest_ = 0;  // payload of a tagged FPDU so far

  std::optional<OpenWrite> open_write_;

  std::uint32_t next_send_;  // MSN
  std::uint32_t credit_ = 0;
  std::uint32_t receive_size_ = 0;
  Block assembly_;  // a Send that does not lie in one piece
  std::size_t assembled_ = 0;
  std::size_t message_limit_ = 0;
  bool send_open_ = false;
  std::uint64_t send_began_ = 0;  // value of fpdus_ before its first segment

  std::uint32_t next_read_request_;  // MSN
  std::uint32_t read_requests_waiting_ = 0;
  std::array<std::byte, kMaxTerminateSize> control_message_{};  // a Read Request or Terminate

  std::vector<ReadRequest> reads_;  // expected Responses: a ring of options.ord places
  std::size_t reads_first_ = 0;
  std::size_t reads_count_ = 0;
  std::uint32_t read_progress_ = 0;  // bytes of the oldest

  ReceiverTraffic traffic_;
};

}  // namespace stag::iwarp
