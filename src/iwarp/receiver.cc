#include "iwarp/receiver.h"

#include <algorithm>

namespace stag::iwarp {

Receiver::Receiver(const ReceiverOptions& options, StagTable& table, ReceiverSink& sink)
    : options_(options),
      table_(table),
      sink_(sink),
      next_send_(options.first_sequence),
      next_read_request_(options.first_sequence),
      reads_(options.ord) {}

void Receiver::on_bytes(Bytes bytes) {
  target_count_ = 0;
  take(bytes);
}

void Receiver::take(Bytes bytes) {
  while (!stopped_ && !bytes.empty()) {
    switch (phase_) {
      case Phase::Header:
        if (const std::size_t taken = header_size_ == 0 ? take_whole_send(bytes) : 0; taken != 0)
          bytes = bytes.subspan(taken);
        else if (collect_header(bytes))
          begin_segment(bytes);
        break;
      case Phase::Payload:
        add_payload(bytes);
        break;
      case Phase::Trailer:
        add_trailer(bytes);
        break;
    }
  }
}

bool Receiver::at_boundary() const {
  return phase_ == Phase::Header && header_size_ == 0 && !send_open_ && !open_write_.has_value();
}

std::uint64_t Receiver::bytes_of_unfinished() const {
  if (!send_open_) return placed_now();
  const bool of_send = !segment_.control.tagged && queue_of(segment_.opcode) == kSendQueue;
  return assembled_ + (of_send ? placed_now() : 0);
}

std::uint64_t Receiver::read_bytes() const {
  return traffic_.read_bytes + (segment_.opcode == Opcode::ReadResponse ? placed_now() : 0);
}

bool Receiver::collect(Bytes& bytes, std::size_t wanted) {
  if (header_size_ >= wanted) return true;
  const std::size_t count = std::min(wanted - header_size_, bytes.size());
  std::copy_n(bytes.begin(), count, header_.begin() + header_size_);
  header_size_ += count;
  bytes = bytes.subspan(count);
  return header_size_ == wanted;
}

bool Receiver::collect_header(Bytes& bytes) {
  constexpr std::size_t kControlSize = 2;
  if (!collect(bytes, kLengthSize + kControlSize)) return false;
  segment_ = Segment();
  segment_.ulpdu = load_be<std::uint16_t>(header_.data());
  segment_.control = decode_control(header_.data() + kLengthSize);
  const std::size_t header = header_size(segment_.control.tagged);
  if (segment_.ulpdu < header) {
    fail(Reason::FpduTooShort, error::kFraming);
    return false;
  }
  segment_.payload = segment_.ulpdu - header;
  if (!collect(bytes, kLengthSize + header)) return false;
  segment_.header = header;
  return true;
}

void Receiver::begin_segment(Bytes& bytes) {
  crc_ = Crc32c();
  if (options_.crc) crc_.add(Bytes(header_).first(header_size_));
  if (bytes.size() >= segment_.payload + trailer_size()) return whole_segment(bytes);
  parse_header();
  if (const Verdict fault = check_header()) return fail(fault->reason, fault->error);
  phase_ = segment_.payload > 0 ? Phase::Payload : Phase::Trailer;
  trailer_filled_ = 0;
}

// The common case: everything is at hand, so the CRC is known before anything is looked at.
void Receiver::whole_segment(Bytes& bytes) {
  const Bytes payload = bytes.first(segment_.payload);
  if (options_.crc) {
    const std::size_t covered = segment_.payload + fpdu_pad(segment_.ulpdu);
    crc_.add(bytes.first(covered));
    if (!crc_.matches(bytes.data() + covered)) return fail(Reason::FpduCrcWrong, error::kCrc);
  }
  bytes = bytes.subspan(segment_.payload + trailer_size());
  parse_header();
  if (const Verdict fault = check_header()) return fail(fault->reason, fault->error);
  const bool in_place = queue_of(segment_.opcode) == kSendQueue && !segment_.control.tagged &&
                        segment_.control.last && segment_.offset == 0;
  if (!in_place && !payload.empty() && !place(payload)) return;
  end_segment(payload);
}

void Receiver::add_payload(Bytes& bytes) {
  const std::size_t count = std::min(bytes.size(), segment_.payload - segment_.placed);
  const Bytes part = bytes.first(count);
  bytes = bytes.subspan(count);
  if (options_.crc) crc_.add(part);
  if (place(part)) advance(count);
}

void Receiver::advance(std::size_t count) {
  segment_.placed += count;
  if (segment_.placed == segment_.payload) phase_ = Phase::Trailer;
}

void Receiver::add_trailer(Bytes& bytes) {
  const std::size_t size = trailer_size();
  const std::size_t count = std::min(bytes.size(), size - trailer_filled_);
  std::copy_n(bytes.begin(), count, trailer_.begin() + trailer_filled_);
  trailer_filled_ += count;
  bytes = bytes.subspan(count);
  if (trailer_filled_ < size) return;
  if (options_.crc) {
    crc_.add(Bytes(trailer_).first(size - kCrcSize));
    if (!crc_.matches(trailer_.data() + size - kCrcSize)) {
      return fail(Reason::FpduCrcWrong, error::kCrc);
    }
  }
  end_segment({});
}

void Receiver::end_segment(Bytes whole) {
  phase_ = Phase::Header;
  header_size_ = 0;
  ++fpdus_;
  switch (segment_.opcode) {
    case Opcode::Write:
      traffic_.write_bytes += segment_.payload;
      open_write_.reset();
      if (!segment_.control.last) {
        open_write_ = OpenWrite{segment_.stag, segment_.offset + segment_.payload};
      }
      return;
    case Opcode::ReadResponse:
      return deliver_read_response();
    case Opcode::ReadRequest:
      return deliver_read_request();
    case Opcode::Terminate:
      return deliver_terminate();
    default:
      return deliver_send(whole);
  }
}

void Receiver::fail(Reason reason, ErrorCode error) {
  stopped_ = true;
  // The ULPDU as far as a Terminate can copy it: its header, and a Read Request's own.
  std::array<std::byte, kUntaggedHeaderSize + kReadRequestSize> ulpdu{};
  std::size_t size = segment_.header;
  std::copy_n(header_.begin() + kLengthSize, size, ulpdu.begin());
  if (segment_.opcode == Opcode::ReadRequest && segment_.payload == kReadRequestSize) {
    std::copy_n(control_message_.begin(), kReadRequestSize, ulpdu.begin() + size);
    size += kReadRequestSize;
  }
  Violation violation{reason, make_terminate(error)};
  if (segment_.header > 0) {
    violation.terminate = make_terminate(error, Bytes(ulpdu).first(size), segment_.ulpdu);
  }
  sink_.on_violation(violation);
}

}  // namespace stag::iwarp
