#include "iwarp/sender.h"

#include <algorithm>

namespace stag::iwarp {
namespace {

// A batch is full beyond this many ranges; what one sendmsg takes is limited as well.
constexpr std::size_t kMostRanges = 128;
// A message up to this long is copied behind its header: one range for many of them costs less than
// many ranges with owners, here and in the kernel.
constexpr std::size_t kGathered = 8 * 1024;
// A gathered message, with its header, pad and CRC.
constexpr std::size_t kMostOwnBytes = kLengthSize + kUntaggedHeaderSize + kGathered + 3 + kCrcSize;
static_assert(kGathered >= kMaxTerminateSize);
// And the markers inside the largest FPDU.
constexpr std::size_t kMostMarkerBytes =
    kMarkerSize * (fpdu_size(kLargestMulpdu) / kMarkerInterval + 2);
static_assert(fpdu_size(kLargestMulpdu) + kMostMarkerBytes < 65536);

}  // namespace

class Sender::Fpdu {
 public:
  Fpdu(Sender& sender, Batch& batch) : sender_(sender), batch_(batch) {}

  // Bytes that Batch::take() gave.
  void add_own(Bytes bytes) {
    in_stretches(bytes.size(), [&](std::size_t from, std::size_t count) {
      batch_.append_own(sum(bytes.subspan(from, count)));
    });
  }
  void add(const Buffer& payload) {
    in_stretches(payload.size(), [&](std::size_t from, std::size_t count) {
      Buffer stretch = payload.slice(from, count);
      sum(stretch.bytes());
      batch_.append(std::move(stretch));
    });
  }
  void finish(std::size_t ulpdu) {
    const std::size_t pad = fpdu_pad(ulpdu);
    if (pad > 0) {
      std::byte* zeros = batch_.take(pad);
      std::fill_n(zeros, pad, std::byte{0});
      add_own(Bytes(zeros, pad));
    }
    // RFC 5044 4.4: a marker between pad and CRC belongs to this FPDU and its CRC.
    add_marker_if_due();
    std::byte* crc = batch_.take(kCrcSize);
    std::fill_n(crc, kCrcSize, std::byte{0});
    if (sender_.options_.crc) crc_.store(crc);
    batch_.append_own(Bytes(crc, kCrcSize));
    if (sender_.options_.markers) sender_.until_marker_ -= kCrcSize;
  }

 private:
  // Walks `size` octets of the stream, stopping wherever a marker is due.
  template <class Stretch>
  void in_stretches(std::size_t size, Stretch stretch) {
    for (std::size_t from = 0; from < size;) {
      std::size_t count = size - from;
      if (sender_.options_.markers) {
        add_marker_if_due();
        count = std::min(count, sender_.until_marker_);
        sender_.until_marker_ -= count;
      }
      stretch(from, count);
      since_length_ += count;
      from += count;
    }
  }

  // RFC 5044 4.3: a marker holds the octets from the FPDU's length field to itself; 0 in front of
  // the length field.
  void add_marker_if_due() {
    if (!sender_.options_.markers || sender_.until_marker_ > 0) return;
    std::byte* marker = batch_.take(kMarkerSize);
    store_be(marker, static_cast<std::uint32_t>(since_length_));
    batch_.append_own(sum(Bytes(marker, kMarkerSize)));
    if (since_length_ > 0) since_length_ += kMarkerSize;
    sender_.until_marker_ = kMarkerInterval - kMarkerSize;
  }

  Bytes sum(Bytes bytes) {
    if (sender_.options_.crc) crc_.add(bytes);
    return bytes;
  }

  Sender& sender_;
  Batch& batch_;
  Crc32c crc_;
  std::size_t since_length_ = 0;
};

Sender::Sender(const SenderOptions& options, StagTable& table)
    : options_(options), table_(table), answered_(options.first_sequence - 1) {
  next_sequence_.fill(options.first_sequence);
  // Even with its markers the largest FPDU fits the sixteen bits of a marker's pointer.
  options_.max_ulpdu = std::clamp(options.max_ulpdu, kLeastMulpdu, kLargestMulpdu);
  if (!options_.markers)
    short_below_ = std::min(kGathered, options_.max_ulpdu - kUntaggedHeaderSize) + 1;
}

void Sender::begin(Opcode opcode, std::uint32_t stag, std::uint64_t offset, std::size_t size) {
  STAG_CHECK(idle());
  active_ = true;
  opcode_ = opcode;
  stag_ = stag;
  offset_ = offset;
  size_ = size;
  sent_ = 0;
  piece_ = 0;
  in_piece_ = 0;
}

void Sender::begin_send(Rope message, std::optional<std::uint32_t> invalidate, bool solicited) {
  const Opcode opcode = invalidate.has_value()
                            ? (solicited ? Opcode::SendSolicitedInvalidate : Opcode::SendInvalidate)
                            : (solicited ? Opcode::SendSolicited : Opcode::Send);
  begin(opcode, invalidate.value_or(0), 0, message.size());
  payload_ = std::move(message);
}

// An FPDU in one piece of the batch's own, with pad and CRC field; the rest is to be written over
// it. Eight octets that hold both are cleared at once.
[[gnu::always_inline]] inline std::byte* Sender::add_whole(Batch& batch, std::size_t size) {
  std::byte* const fpdu = batch.add_own(size);
  std::memset(fpdu + size - 8, 0, 8);
  return fpdu;
}

[[gnu::always_inline]] inline void Sender::sum_whole(std::byte* fpdu, std::size_t size) const {
  if (!options_.crc) return;
  Crc32c crc;
  crc.add(Bytes(fpdu, size - kCrcSize));
  crc.store(fpdu + size - kCrcSize);
}

// Length field, DDP and RDMAP header of the next FPDU of the message.
[[gnu::always_inline]] inline void Sender::encode_header(std::byte* to, std::size_t length,
                                                         bool last) const {
  const bool tagged = is_tagged(opcode_);
  store_be(to, static_cast<std::uint16_t>(header_size(tagged) + length));
  Control control;
  control.tagged = tagged;
  control.last = last;
  control.opcode = static_cast<std::uint8_t>(opcode_);
  if (tagged) {
    encode_tagged({control, stag_, offset_ + sent_}, to + kLengthSize);
  } else {
    const std::uint32_t queue = queue_of(opcode_);
    encode_untagged(
        {control, stag_, queue, next_sequence_[queue], static_cast<std::uint32_t>(sent_)},
        to + kLengthSize);
  }
}

void Sender::add_send(Batch& batch, std::span<const Bytes> parts, std::size_t size,
                      std::optional<std::uint32_t> invalidate) {
  STAG_CHECK(idle());
  const std::size_t ulpdu = kUntaggedHeaderSize + size;
  const std::size_t whole = fpdu_size(ulpdu);
  std::byte* const to = add_whole(batch, whole);
  store_be(to, static_cast<std::uint16_t>(ulpdu));
  Control control;
  control.last = true;
  control.opcode =
      static_cast<std::uint8_t>(invalidate.has_value() ? Opcode::SendInvalidate : Opcode::Send);
  encode_untagged({control, invalidate.value_or(0), kSendQueue, next_sequence_[kSendQueue]++, 0},
                  to + kLengthSize);
  std::byte* at = to + kLengthSize + kUntaggedHeaderSize;
  for (const Bytes part : parts) at = std::copy(part.begin(), part.end(), at);
  sum_whole(to, whole);
}

void Sender::begin_write(std::uint32_t stag, std::uint64_t offset, Rope data) {
  begin(Opcode::Write, stag, offset, data.size());
  payload_ = std::move(data);
}

void Sender::begin_read_request(const ReadRequest& request) {
  begin(Opcode::ReadRequest, 0, 0, kReadRequestSize);
  Block block = Block::allocate(kReadRequestSize);
  encode_read_request(request, block.data());
  payload_ = Rope(std::move(block).freeze(kReadRequestSize));
}

void Sender::begin_read_response(const ReadRequest& request) {
  begin(Opcode::ReadResponse, request.sink_stag, request.sink_offset, request.size);
  request_ = request;
  ++answered_;
}

void Sender::begin_terminate(const Terminate& terminate) {
  Block block = Block::allocate(kMaxTerminateSize);
  const std::size_t size = encode_terminate(terminate, block.bytes());
  begin(Opcode::Terminate, 0, 0, size);
  payload_ = Rope(std::move(block).freeze(size));
}

void Sender::abort() {
  active_ = false;
  payload_ = Rope();
}

bool Sender::full(const Batch& batch) const {
  const std::size_t own = kMostOwnBytes + (options_.markers ? kMostMarkerBytes : 0);
  return batch.bytes_left() >= options_.batch_bytes || batch.ranges() >= kMostRanges ||
         !batch.has_room(own);
}

// Whole words, so that only a message's last FPDU has a pad.
std::size_t Sender::largest_payload() const {
  return (options_.max_ulpdu - header_size(is_tagged(opcode_))) & ~std::size_t{3};
}

Result<Ok, Violation> Sender::fill(Batch& batch) {
  while (active_ && !full(batch)) {
    const std::size_t length = std::min(size_ - sent_, largest_payload());
    const bool last = sent_ + length == size_;
    if (opcode_ == Opcode::ReadResponse && length > 0) {
      Result<Buffer, StagFault> source =
          table_.source(request_.source_stag, request_.source_offset + sent_, length);
      if (!source.ok()) {
        Violation violation = source_fault(source.error());
        abort();
        return Failure{std::move(violation)};
      }
      payload_ = Rope(std::move(*source));
      piece_ = 0;
      in_piece_ = 0;
    }
    add_segment(batch, length, last);
    sent_ += length;
    if (!last) continue;
    if (!is_tagged(opcode_)) ++next_sequence_[queue_of(opcode_)];
    if (opcode_ == Opcode::ReadResponse)
      table_.count_read(request_.source_stag, request_.source_offset, request_.size);
    abort();
  }
  return Ok{};
}

void Sender::add_segment(Batch& batch, std::size_t length, bool last) {
  const std::size_t ulpdu = header_size(is_tagged(opcode_)) + length;
  if (size_ <= kGathered && length == size_ && !options_.markers) {
    const std::size_t size = fpdu_size(ulpdu);
    std::byte* const to = add_whole(batch, size);
    encode_header(to, length, true);
    payload_.copy_to({to + kLengthSize + ulpdu - length, length});
    return sum_whole(to, size);
  }
  Fpdu fpdu(*this, batch);
  std::byte* header = batch.take(kLengthSize + ulpdu - length);
  encode_header(header, length, last);
  fpdu.add_own(Bytes(header, kLengthSize + ulpdu - length));
  add_rope(fpdu, length);
  fpdu.finish(ulpdu);
}

void Sender::add_rope(Fpdu& fpdu, std::size_t length) {
  while (length > 0) {
    const Buffer& piece = payload_.pieces()[piece_];
    const std::size_t count = std::min(length, piece.size() - in_piece_);
    fpdu.add(piece.slice(in_piece_, count));
    length -= count;
    in_piece_ += count;
    if (in_piece_ < piece.size()) continue;
    ++piece_;
    in_piece_ = 0;
  }
}

// RFC 5040 4.8: a Read that ends half-way is reported with its header moved on to where it stands.
Violation Sender::source_fault(StagFault fault) const {
  std::array<std::byte, kUntaggedHeaderSize + kReadRequestSize> ulpdu{};
  Control control;
  control.last = true;
  control.opcode = static_cast<std::uint8_t>(Opcode::ReadRequest);
  encode_untagged({control, 0, kReadRequestQueue, answered_, 0}, ulpdu.data());
  ReadRequest rest = request_;
  rest.sink_offset += sent_;
  rest.source_offset += sent_;
  rest.size -= static_cast<std::uint32_t>(sent_);
  encode_read_request(rest, ulpdu.data() + kUntaggedHeaderSize);
  return {reason_of(fault), make_terminate(read_error_of(fault), ulpdu, ulpdu.size())};
}

}  // namespace stag::iwarp
