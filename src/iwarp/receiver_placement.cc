// Where a Receiver's bytes belong, and what of that its caller may receive straight into its place.
#include <algorithm>
#include <utility>

#include "iwarp/receiver.h"

namespace stag::iwarp {

std::span<const MutableBytes> Receiver::targets_of_payload() {
  const std::size_t left = segment_.payload - segment_.placed;
  // The end of bulk data is not worth a copy; a small message comes with others, all at once.
  const bool tagged = segment_.control.tagged;
  const std::size_t least = tagged ? options_.direct_threshold / 4 : options_.direct_threshold;
  if (left < least) return {};
  if (tagged) {
    // A fault here is found again, and answered, when the bytes come through on_bytes().
    const auto placement = sink_at(left);
    if (!placement.ok() || placement->discard) return {};
    targets_[target_count_++] = placement->bytes;
    predict();
  } else if (queue_of(segment_.opcode) == kSendQueue) {
    targets_[target_count_++] = assembly_rest();
  }
  return std::span(targets_).first(target_count_);
}

// A peer that has sent less than it can has no more to say. Of short FPDUs many come at once, and
// are copied.
void Receiver::predict() {
  longest_ = std::max(longest_, segment_.payload);
  if (segment_.payload < longest_ || segment_.payload < options_.direct_threshold) return;
  MutableBytes rest =
      table_.untouched_sink(segment_.stag, right_of_sink(), segment_.offset + segment_.payload);
  // What comes behind a Read Response is of another one, when this one's reader knows that it is
  // done.
  if (segment_.opcode == Opcode::ReadResponse) {
    const std::size_t done = read_progress_ + segment_.payload;
    rest = rest.first(std::min(rest.size(), reads_[reads_first_].size - done));
  }
  std::size_t before = trailer_size();
  for (std::size_t i = 0; i < kMostPredicted && !rest.empty(); ++i) {
    targets_[target_count_++] =
        MutableBytes(between_).subspan(i * kMostBetween, before + kLengthSize + kTaggedHeaderSize);
    const MutableBytes payload = rest.first(std::min(segment_.payload, rest.size()));
    targets_[target_count_++] = payload;
    rest = rest.subspan(payload.size());
    before = fpdu_pad(kTaggedHeaderSize + payload.size()) + kCrcSize;
  }
}

void Receiver::on_placed(std::size_t count) {
  const std::size_t targets = std::exchange(target_count_, 0);
  for (std::size_t i = 0; i < targets && count > 0 && !stopped_; ++i) {
    const MutableBytes part = targets_[i].first(std::min(count, targets_[i].size()));
    if (i % 2 != 0) {
      take(part);
    } else {
      if (i > 0 && !is_predicted(targets_[i])) return take_misplaced(i, count);
      if (options_.crc) crc_.add(part);
      advance(part.size());
    }
    count -= part.size();
  }
  STAG_CHECK(count == 0 || stopped_);
}

// Whether the FPDU whose header has just come has its payload there.
bool Receiver::is_predicted(MutableBytes place) const {
  if (phase_ != Phase::Payload || !segment_.control.tagged || segment_.payload != place.size())
    return false;
  const auto placement = sink_at(place.size());
  return placement.ok() && placement->bytes.data() == place.data();
}

// `count` bytes from that target on belong elsewhere. Nothing has happened since they were
// received, so that the memory is still the peer's to write.
void Receiver::take_misplaced(std::size_t target, std::size_t count) {
  const Block copy = Block::allocate(count);
  for (std::size_t at = 0; at < count; ++target) {
    const std::size_t part = std::min(count - at, targets_[target].size());
    std::copy_n(targets_[target].begin(), part, copy.data() + at);
    at += part;
  }
  take(copy.bytes().first(count));
}

Right Receiver::right_of_sink() const {
  return segment_.opcode == Opcode::ReadResponse ? Right::ReadSink : Right::RemoteWrite;
}

Result<Placement, StagFault> Receiver::sink_at(std::size_t length) const {
  return table_.sink(segment_.stag, right_of_sink(), segment_.offset + segment_.placed, length);
}

// Where the rest of this segment's payload belongs in the message being put together.
MutableBytes Receiver::assembly_rest() {
  if (!assembly_) {
    const bool only = segment_.control.last && segment_.offset == 0;
    assembly_ = Block::allocate(only ? segment_.payload : message_limit_);
  }
  return assembly_.bytes().subspan(assembled_ + segment_.placed,
                                   segment_.payload - segment_.placed);
}

bool Receiver::place(Bytes part) {
  if (!segment_.control.tagged) {
    const bool is_send = queue_of(segment_.opcode) == kSendQueue;
    const MutableBytes to =
        is_send
            ? assembly_rest()
            : MutableBytes(control_message_).subspan(std::min(segment_.placed, kMaxTerminateSize));
    std::copy_n(part.begin(), std::min(part.size(), to.size()), to.begin());
    return true;
  }
  const Result<Placement, StagFault> placement = sink_at(part.size());
  if (!placement.ok()) {
    fail(reason_of(placement.error()), tagged_error_of(placement.error()));
    return false;
  }
  if (placement->discard) {
    traffic_.discarded_bytes += part.size();
  } else {
    std::copy(part.begin(), part.end(), placement->bytes.begin());
    traffic_.copied_bytes += part.size();
  }
  return true;
}

}  // namespace stag::iwarp
