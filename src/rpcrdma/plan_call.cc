#include <algorithm>
#include <limits>

#include "rpcrdma/plan.h"

namespace stag::rpcrdma {
namespace {

// Bytes an item takes in the stream behind its length word.
std::uint64_t padded(std::uint32_t length) {
  return std::uint64_t{length} + xdr_pad(length);
}

class CallPlanner {
 public:
  CallPlanner(const CallShape& shape, const ReplyBound& bound, const CallLimits& limits,
              CallPlan& plan)
      : shape_(shape), bound_(bound), limits_(limits), plan_(plan) {}

  Reason plan() {
    if (const Reason reason = plan_results(); reason != Reason::None) return reason;
    return plan_arguments();
  }

 private:
  // RFC 8166 4.3.2, 4.3.3: the room a Reply may need. Small results come inline, without any chunk.
  Reason plan_results() {
    std::uint64_t everything = bound_.payload_max;
    std::uint64_t rest = bound_.payload_max;  // when Write chunks take what they can
    bool any_chunk = false;
    for (std::uint32_t i = 0; i < bound_.results.size(); ++i) {
      const ResultBound& result = bound_.results[i];
      everything += padded(result.max_length);
      if (result.wanted_inline) rest += padded(room(i).max_length);
      any_chunk |= !result.wanted_inline && result.max_length != 0;
    }
    if (kMinHeaderSize + everything <= limits_.reply_threshold) return Reason::None;
    if (any_chunk) offer_write_chunks();
    if (!any_chunk) rest = everything;
    if (header_size(0, write_counts(), std::nullopt) + rest <= limits_.reply_threshold)
      return fits_segments();
    if (limits_.quirks.no_write_list_with_reply_chunk) {
      plan_.write_chunks.clear();
      write_counts_.clear();
      rest = everything;
    }
    if (rest > std::numeric_limits<std::uint32_t>::max()) return Reason::RdmaCallTooLarge;
    plan_.reply_chunk = std::min(static_cast<std::uint32_t>(rest), bound_.reply_chunk_max);
    return fits_segments();
  }

  // What may be placed at this place of the Write list: where an absent result leaves its chunk to
  // the next one, every later result as well (RFC 8166 4.3.2.2).
  ResultBound room(std::uint32_t place) const {
    ResultBound largest = bound_.results[place];
    if (bound_.pairing == Pairing::ByIndex) return largest;
    for (std::uint32_t i = place + 1; i < bound_.results.size(); ++i) {
      largest.max_length = std::max(largest.max_length, bound_.results[i].max_length);
      largest.segments = std::max(largest.segments, bound_.results[i].segments);
    }
    return largest;
  }

  void offer_write_chunks() {
    for (std::uint32_t i = 0; i < bound_.results.size(); ++i) {
      const ResultBound largest = room(i);
      const std::uint32_t length = bound_.results[i].wanted_inline ? 0 : largest.max_length;
      plan_.write_chunks.push_back(length);
      write_counts_.push_back(length == 0 ? 0 : largest.segments);
    }
  }

  Reason fits_segments() const {
    for (std::uint32_t count : write_counts_)
      if (count > limits_.max_segments) return Reason::RdmaSegmentsTooMany;
    if (plan_.reply_chunk != 0 && bound_.segments > limits_.max_segments)
      return Reason::RdmaSegmentsTooMany;
    return Reason::None;
  }

  std::span<const std::uint32_t> write_counts() const {
    return {write_counts_.data(), write_counts_.size()};
  }

  std::uint32_t header_with(std::uint32_t read_segments) const {
    std::optional<std::uint32_t> reply;
    if (plan_.reply_chunk != 0) reply = bound_.segments;
    return header_size(read_segments, write_counts(), reply);
  }

  bool try_inline() {
    plan_.header_size = header_with(read_segments_);
    return std::uint64_t{plan_.header_size} + plan_.stream_length <= limits_.call_threshold;
  }

  // Takes the largest eligible arguments out of the stream until the rest fits inline.
  Reason plan_arguments() {
    plan_.stream_length = shape_.length;
    if (try_inline()) return Reason::None;
    const InlineVector<std::uint32_t, 4> candidates = reducible();
    for (std::uint32_t index : candidates) {
      reduce(index);
      if (try_inline()) {
        std::sort(plan_.reduced.begin(), plan_.reduced.end());
        return Reason::None;
      }
      if (limits_.quirks.one_data_read_chunk) break;
    }
    std::sort(plan_.reduced.begin(), plan_.reduced.end());
    return plan_long();
  }

  // Indices of the arguments whose reduction shortens the message, largest first.
  InlineVector<std::uint32_t, 4> reducible() const {
    InlineVector<std::uint32_t, 4> indices;
    for (std::uint32_t i = 0; i < shape_.items.size(); ++i) {
      const Item& item = shape_.items[i];
      if (item.segments <= limits_.max_segments &&
          padded(item.length) > std::uint64_t{item.segments} * kReadEntrySize)
        indices.push_back(i);
    }
    std::sort(indices.begin(), indices.end(), [this](std::uint32_t a, std::uint32_t b) {
      return shape_.items[a].length != shape_.items[b].length
                 ? shape_.items[a].length > shape_.items[b].length
                 : a < b;
    });
    return indices;
  }

  void reduce(std::uint32_t index) {
    plan_.reduced.push_back(index);
    plan_.stream_length -= static_cast<std::uint32_t>(padded(shape_.items[index].length));
    read_segments_ += shape_.items[index].segments;
  }

  // RFC 8166 3.5.3: the stream goes into a Position Zero Read chunk, with the reduced items beside
  // it where the peer can do that and the header has room.
  Reason plan_long() {
    plan_.form = Form::Long;
    if (limits_.quirks.no_data_with_position_zero || !try_long()) {
      plan_.reduced.clear();
      plan_.stream_length = shape_.length;
      read_segments_ = 0;
      if (stream_segments() > limits_.max_segments) return Reason::RdmaSegmentsTooMany;
      if (!try_long()) return Reason::RdmaCallTooLarge;
    }
    return Reason::None;
  }

  // Taking an item out of one piece of the stream makes two pieces of it.
  std::uint32_t stream_segments() const {
    return shape_.segments + static_cast<std::uint32_t>(plan_.reduced.size());
  }

  bool try_long() {
    plan_.header_size = header_with(read_segments_ + stream_segments());
    return stream_segments() <= limits_.max_segments && plan_.header_size <= limits_.call_threshold;
  }

  const CallShape& shape_;
  const ReplyBound& bound_;
  const CallLimits& limits_;
  CallPlan& plan_;
  InlineVector<std::uint32_t, 4> write_counts_;  // segments of each Write chunk
  std::uint32_t read_segments_ = 0;              // of the reduced items
};

// Apart, so that a Call that goes inline like its Reply is planned in a few instructions.
[[gnu::noinline]] Reason plan_in_general(const CallShape& shape, const ReplyBound& bound,
                                         const CallLimits& limits, CallPlan& plan) {
  return CallPlanner(shape, bound, limits, plan).plan();
}

}  // namespace

Reason plan_call(const CallShape& shape, const ReplyBound& bound, const CallLimits& limits,
                 CallPlan& plan) {
  plan.clear();
  plan.stream_length = shape.length;
  plan.header_size = kMinHeaderSize;
  std::uint64_t reply = bound.payload_max;
  for (const ResultBound& result : bound.results) reply += padded(result.max_length);
  if (kMinHeaderSize + std::uint64_t{shape.length} <= limits.call_threshold &&
      kMinHeaderSize + reply <= limits.reply_threshold)
    return Reason::None;
  return plan_in_general(shape, bound, limits, plan);
}

}  // namespace stag::rpcrdma
