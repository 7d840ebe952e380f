#include <algorithm>

#include "rpcrdma/plan.h"

namespace stag::rpcrdma {
namespace {

// RFC 8166 4.3.2.2, 4.3.3: a chunk goes back with the lengths that were returned; none so far.
WriteChunk unused(const WriteChunk& offered) {
  WriteChunk chunk = offered;
  for (Segment& segment : chunk.segments) segment.length = 0;
  return chunk;
}

// Lays `length` bytes of one source into `offered` from its first segment on, each segment full
// before the next, no pad (RFC 8166 3.4.6, 3.4.6.2). The room was checked.
void fill(std::uint32_t item, std::uint32_t length, const WriteChunk& offered, WriteChunk& returned,
          ReplyPlan& plan) {
  std::uint32_t done = 0;
  for (std::size_t i = 0; i < offered.segments.size() && done < length; ++i) {
    const Segment& target = offered.segments[i];
    const std::uint32_t piece = std::min(target.length, length - done);
    if (piece == 0) continue;
    plan.writes.push_back({item, done, {target.handle, piece, target.offset}});
    returned.segments[i].length = piece;
    done += piece;
  }
}

// Reduces eligible results into Write chunks. A result for which there is no chunk, or an empty
// one, stays inline (RFC 8166 4.3.2.1, 4.3.2.3).
Reason reduce(const ReplyShape& shape, const WriteList& offered, ReplyPlan& plan) {
  std::uint32_t next = 0;
  for (std::uint32_t i = 0; i < shape.items.size(); ++i) {
    const Item& item = shape.items[i];
    const std::uint32_t place = shape.pairing == Pairing::ByIndex ? item.ordinal : next;
    if (place < next || place >= offered.size()) continue;
    next = place + 1;
    const WriteChunk& chunk = offered[place];
    if (chunk.segments.empty()) continue;
    if (total_length(chunk.segments) < item.length) return Reason::RdmaWriteChunkTooSmall;
    fill(i, item.length, chunk, plan.write_list[place], plan);
    plan.reduced.push_back(i);
    plan.stream_length -= item.length + static_cast<std::uint32_t>(xdr_pad(item.length));
  }
  return Reason::None;
}

// Apart, so that what most Calls are, one without chunks, is planned in a few instructions.
[[gnu::noinline]] Reason plan_with_chunks(const ReplyShape& shape, const WriteList& write_list,
                                          const std::optional<WriteChunk>& reply_chunk,
                                          std::uint32_t reply_threshold, ReplyPlan& plan) {
  for (const WriteChunk& chunk : write_list) plan.write_list.push_back(unused(chunk));
  if (reply_chunk) plan.reply_chunk = unused(*reply_chunk);
  if (const Reason reason = reduce(shape, write_list, plan); reason != Reason::None) return reason;

  const std::uint32_t header = header_size(plan.write_list, plan.reply_chunk);
  if (std::uint64_t{header} + plan.stream_length <= reply_threshold) return Reason::None;
  if (header > reply_threshold || !reply_chunk) return Reason::RdmaReplyTooLarge;
  if (total_length(reply_chunk->segments) < plan.stream_length)
    return Reason::RdmaReplyChunkTooSmall;
  plan.form = Form::Long;
  fill(kReplyStream, plan.stream_length, *reply_chunk, *plan.reply_chunk, plan);
  return Reason::None;
}

}  // namespace

Reason plan_reply(const ReplyShape& shape, const WriteList& write_list,
                  const std::optional<WriteChunk>& reply_chunk, std::uint32_t reply_threshold,
                  ReplyPlan& plan) {
  plan.clear();
  plan.stream_length = shape.length;
  if (!write_list.empty() || reply_chunk)
    return plan_with_chunks(shape, write_list, reply_chunk, reply_threshold, plan);
  const bool fits = std::uint64_t{kMinHeaderSize} + shape.length <= reply_threshold;
  return fits ? Reason::None : Reason::RdmaReplyTooLarge;
}

Result<ReplyPlan, Reason> plan_reply(const ReplyShape& shape, const WriteList& write_list,
                                     const std::optional<WriteChunk>& reply_chunk,
                                     std::uint32_t reply_threshold) {
  Result<ReplyPlan, Reason> result(std::in_place);
  const Reason reason = plan_reply(shape, write_list, reply_chunk, reply_threshold, *result);
  if (reason != Reason::None) result = Failure{reason};
  return result;
}

}  // namespace stag::rpcrdma
