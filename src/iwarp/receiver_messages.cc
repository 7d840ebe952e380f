// What a Receiver checks in a segment's header and what it delivers at a message's end.
#include <algorithm>
#include <utility>

#include "iwarp/receiver.h"

namespace stag::iwarp {
namespace {

// Of a control word: what it says beside the opcode, reserved bits left out, and what it says of an
// untagged message in one segment.
constexpr std::uint16_t kOpcodeBits = 0x000F;
constexpr std::uint16_t kControlBits = detail::control_word({true, true, 3, 3, 0});
constexpr std::uint16_t kOnlySegment = detail::control_word({false, true, 1, 1, 0});

bool crc_matches(Bytes fpdu) {
  const std::size_t covered = fpdu.size() - kCrcSize;
  Crc32c crc;
  crc.add(fpdu.first(covered));
  return crc.matches(fpdu.data() + covered);
}

}  // namespace

std::size_t Receiver::take_whole_send(Bytes bytes) {
  constexpr std::size_t kBefore = kLengthSize + kUntaggedHeaderSize;
  if (bytes.size() < kBefore + kCrcSize) return 0;
  const std::size_t ulpdu = load_be<std::uint16_t>(bytes.data());
  const std::size_t fpdu = fpdu_size(ulpdu);
  if (ulpdu < kUntaggedHeaderSize || bytes.size() < fpdu) return 0;
  const auto control = load_be<std::uint16_t>(bytes.data() + kLengthSize);
  const auto opcode = static_cast<Opcode>(control & kOpcodeBits);
  if ((control & kControlBits) != kOnlySegment || opcode < Opcode::Send ||
      opcode > Opcode::SendSolicitedInvalidate)
    return 0;
  const UntaggedHeader header = decode_untagged(bytes.data() + kLengthSize);
  const std::size_t size = ulpdu - kUntaggedHeaderSize;
  if (header.queue != kSendQueue || header.sequence != next_send_ || header.offset != 0 ||
      send_open_ || credit_ == 0 || size > receive_size_)
    return 0;
  if (options_.crc && !crc_matches(bytes.first(fpdu))) return 0;
  std::optional<std::uint32_t> invalidated;
  if (invalidates(opcode)) {
    if (!table_.invalidate(header.invalidate).ok()) return 0;
    invalidated = header.invalidate;
  }
  ++fpdus_;
  ++next_send_;
  --credit_;
  ++traffic_.sends;
  sink_.on_send(Buffer::borrow(bytes.subspan(kBefore, size)), invalidated, is_solicited(opcode));
  return fpdu;
}

void Receiver::parse_header() {
  const std::byte* ulpdu = header_.data() + kLengthSize;
  segment_.opcode = static_cast<Opcode>(segment_.control.opcode);
  if (segment_.control.tagged) {
    const TaggedHeader header = decode_tagged(ulpdu);
    segment_.stag = header.stag;
    segment_.offset = header.offset;
    return;
  }
  const UntaggedHeader header = decode_untagged(ulpdu);
  segment_.stag = header.invalidate;
  segment_.offset = header.offset;
  segment_.queue = header.queue;
  segment_.sequence = header.sequence;
}

Receiver::Verdict Receiver::check_header() {
  const Control& control = segment_.control;
  if (control.ddp_version != 1) {
    return Fault{Reason::DdpVersionWrong,
                 control.tagged ? error::kTaggedDdpVersion : error::kUntaggedDdpVersion};
  }
  if (control.rdmap_version != 1) return Fault{Reason::RdmapVersionWrong, error::kRdmapVersion};
  // RFC 5040 4.2: each opcode goes with one buffer model only. siw does not look; we do.
  if (control.opcode > kLastOpcode || is_tagged(segment_.opcode) != control.tagged) {
    return Fault{Reason::RdmapOpcodeWrong, error::kUnexpectedOpcode};
  }
  if (!control.tagged) return check_untagged();
  return segment_.opcode == Opcode::Write ? check_write() : check_read_response();
}

Receiver::Verdict Receiver::check_write() {
  if (open_write_.has_value() && segment_.payload > 0 &&
      (segment_.stag != open_write_->stag || segment_.offset != open_write_->next)) {
    return Fault{Reason::TaggedInterleaved, error::kUnspecified};
  }
  // RFC 5041 7.1: a zero-length segment is not validated. Peers send it as a knock on the door.
  if (segment_.payload == 0) return std::nullopt;
  if (const auto placement = sink_at(segment_.payload); !placement.ok()) {
    return Fault{reason_of(placement.error()), tagged_error_of(placement.error())};
  }
  return std::nullopt;
}

// RFC 5040 5.2.2: Responses come in the order of the Requests and fill exactly the sink named
// there.
Receiver::Verdict Receiver::check_read_response() {
  if (open_write_.has_value()) return Fault{Reason::TaggedInterleaved, error::kUnspecified};
  if (reads_count_ == 0) {
    return Fault{Reason::ReadResponseUnexpected, error::kUnexpectedOpcode};
  }
  const ReadRequest& request = reads_[reads_first_];
  const std::size_t missing = request.size - read_progress_;
  if (segment_.payload > missing) return Fault{Reason::ReadResponseWrong, error::kTaggedBounds};
  if (segment_.control.last && segment_.payload != missing) {
    return Fault{Reason::ReadResponseWrong, error::kUnspecified};
  }
  if (segment_.payload == 0) return std::nullopt;
  if (segment_.stag != request.sink_stag) {
    return Fault{Reason::ReadResponseWrong, error::kTaggedInvalidStag};
  }
  if (segment_.offset != request.sink_offset + read_progress_) {
    return Fault{Reason::ReadResponseWrong, error::kTaggedBounds};
  }
  if (const auto placement = sink_at(segment_.payload); !placement.ok()) {
    return Fault{reason_of(placement.error()), tagged_error_of(placement.error())};
  }
  return std::nullopt;
}

Receiver::Verdict Receiver::check_untagged() {
  if (segment_.queue != queue_of(segment_.opcode)) {
    return Fault{Reason::InvalidQn, error::kInvalidQueue};
  }
  // A Terminate ends the connection whatever else is wrong with it.
  if (segment_.opcode == Opcode::Terminate) return std::nullopt;
  return segment_.opcode == Opcode::ReadRequest ? check_read_request() : check_send();
}

Receiver::Verdict Receiver::check_send() {
  if (segment_.sequence != next_send_) {
    return Fault{Reason::InvalidMsn, error::kInvalidSequence};
  }
  // Segments arrive in order on TCP, so the next one begins where the last one ended.
  if (segment_.offset != assembled_) {
    return Fault{Reason::InvalidMo, error::kInvalidOffset};
  }
  if (!send_open_) {
    if (credit_ == 0) return Fault{Reason::ReceiveOverrun, error::kNoBuffer};
    --credit_;
    send_open_ = true;
    send_began_ = fpdus_;
    message_limit_ = receive_size_;
  }
  if (segment_.payload > message_limit_ - assembled_) {
    return Fault{Reason::MessageTooLong, error::kMessageTooLong};
  }
  return std::nullopt;
}

Receiver::Verdict Receiver::check_read_request() const {
  if (segment_.sequence != next_read_request_) {
    return Fault{Reason::InvalidMsn, error::kInvalidSequence};
  }
  if (segment_.offset != 0) return Fault{Reason::InvalidMo, error::kInvalidOffset};
  if (segment_.payload > kReadRequestSize) {
    return Fault{Reason::ReadRequestMalformed, error::kMessageTooLong};
  }
  if (segment_.payload < kReadRequestSize || !segment_.control.last) {
    return Fault{Reason::ReadRequestMalformed, error::kUnspecified};
  }
  if (read_requests_waiting_ >= options_.ird) {
    return Fault{Reason::ReadRequestOverrun, error::kStreamCatastrophic};
  }
  return std::nullopt;
}

void Receiver::deliver_send(Bytes whole) {
  assembled_ += segment_.payload;
  if (!segment_.control.last) return;
  const std::size_t size = std::exchange(assembled_, 0);
  Block assembly = std::exchange(assembly_, Block());
  send_open_ = false;
  ++next_send_;
  std::optional<std::uint32_t> invalidated;
  if (invalidates(segment_.opcode)) {
    if (const auto done = table_.invalidate(segment_.stag); !done.ok()) {
      return fail(reason_of(done.error()), error::kCannotInvalidate);
    }
    invalidated = segment_.stag;
  }
  ++traffic_.sends;
  const bool in_place = segment_.offset == 0 && segment_.placed == 0;
  Buffer message = in_place ? Buffer::borrow(whole) : std::move(assembly).freeze(size);
  sink_.on_send(std::move(message), invalidated, is_solicited(segment_.opcode));
}

void Receiver::deliver_read_request() {
  ++next_read_request_;
  const ReadRequest request = decode_read_request(control_message_.data());
  // RFC 5040 5.2.1: the source of a zero-length Read must not be validated.
  if (request.size > 0) {
    const auto source = table_.source(request.source_stag, request.source_offset, request.size);
    if (!source.ok()) return fail(reason_of(source.error()), read_error_of(source.error()));
  }
  ++read_requests_waiting_;
  ++traffic_.read_requests;
  sink_.on_read_request(request);
}

void Receiver::deliver_read_response() {
  read_progress_ += static_cast<std::uint32_t>(segment_.payload);
  traffic_.read_bytes += segment_.payload;
  if (!segment_.control.last) return;
  const ReadRequest request = reads_[reads_first_];
  reads_first_ = (reads_first_ + 1) % reads_.size();
  --reads_count_;
  read_progress_ = 0;
  sink_.on_read_done(request);
}

void Receiver::deliver_terminate() {
  stopped_ = true;
  const std::size_t size = std::min(segment_.payload, kMaxTerminateSize);
  const auto terminate = decode_terminate(Bytes(control_message_).first(size));
  if (!terminate.ok()) {
    return sink_.on_violation({terminate.error(), make_terminate(error::kUnspecified)});
  }
  sink_.on_terminate(*terminate);
}

void Receiver::add_receive_credit(std::uint32_t count, std::uint32_t size) {
  credit_ += count;
  receive_size_ = size;
}

void Receiver::expect_read_response(const ReadRequest& request) {
  STAG_CHECK(reads_count_ < reads_.size());
  reads_[(reads_first_ + reads_count_) % reads_.size()] = request;
  ++reads_count_;
}

void Receiver::read_response_sent() {
  STAG_CHECK(read_requests_waiting_ > 0);
  --read_requests_waiting_;
}

}  // namespace stag::iwarp
