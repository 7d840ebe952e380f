#include "rpc/rdma/pending_call.h"

#include <algorithm>
#include <array>
#include <limits>
#include <new>

#include "fabric/kept_ranges.h"
#include "rpcrdma/wire.h"

namespace stag::rpc::rdma {
namespace {

// Pieces that are no longer than this together are exposed as a copy in one piece: so the pieces of
// what most often goes inline need not be counted.
constexpr std::size_t kGathered = 8 << 10;

std::uint32_t parts_of(std::uint64_t length, std::uint32_t max) {
  return length <= max ? 1 : static_cast<std::uint32_t>((length + max - 1) / max);
}

// XID and direction.
constexpr std::size_t kBeginOfReply = 8;

// Bytes from the start of a chunk that the peer has written; nullopt where the fabric does not
// know.
std::optional<std::uint64_t> written_to(const rpcrdma::Segments& chunk,
                                        const fabric::Connection& connection) {
  std::uint64_t bytes = 0;
  for (const rpcrdma::Segment& segment : chunk) {
    const std::optional<std::size_t> filled = connection.filled(segment.handle);
    if (!filled) return std::nullopt;
    bytes += *filled;
    if (*filled < segment.length) break;
  }
  return bytes;
}

bool owned_by_us(const Rope& bytes) {
  return std::all_of(bytes.pieces().begin(), bytes.pieces().end(),
                     [](const Buffer& piece) { return piece.owned(); });
}

}  // namespace

bool ExposedMemory::owned() const {
  return std::all_of(
             results.begin(), results.end(),
             [](const ForResult& result) { return result.memory.empty() || result.block; }) &&
         owned_by_us(position_zero) && std::all_of(arguments.begin(), arguments.end(), owned_by_us);
}

void PendingCall::prepare(const fabric::Parameters& parameters, const TransportOptions& options) {
  max_registration_ = parameters.max_registration;
  max_segments_ = options.max_segments;
  pad_read_chunks_ = options.pad_read_chunks;
  // A caller that may leave early cannot take its memory along where the fabric goes on writing to
  // it, except memory that it keeps registered, which then costs the connection (decision 0078).
  uses_result_buffers_ =
      parameters.discards || !(message_->deadline || message_->cancel.has_source());
  xid = message_->xid;
  describe_call();
  describe_reply();
}

inline void PendingCall::describe_call() {
  const xdr::Stream& stream = message_->stream;
  shape.length = stream.size();
  shape.items.clear();
  shape.segments = stream.items().empty() || stream.size() <= kGathered
                       ? parts_of(stream.size(), max_registration_)
                       : segments_when_gathered(stream.rope());
  for (std::uint32_t i = 0; i < stream.items().size(); ++i) {
    const xdr::Item& item = stream.items()[i];
    if (item.id == xdr::kNoItem) continue;
    const auto pad = pad_read_chunks_ ? static_cast<std::uint32_t>(xdr_pad(item.length)) : 0;
    const std::uint32_t segments = item.length + pad <= kGathered
                                       ? parts_of(item.length + pad, max_registration_)
                                       : segments_when_gathered(chunk_of(i));
    shape.items.push_back({.position = item.position,
                           .length = item.length,
                           .segments = segments,
                           .source = i,
                           .ordinal = item.ordinal,
                           .chunk_pad = pad});
  }
}

inline void PendingCall::describe_reply() {
  bound.payload_max = message_->reply.payload_max;
  bound.pairing = message_->reply.pairing == Pairing::Shift ? rpcrdma::Pairing::Shift
                                                            : rpcrdma::Pairing::ByIndex;
  // No call fails for the room that it has: results that are longer than what can be offered are
  // the server's to refuse.
  const auto most = static_cast<std::uint32_t>(std::min<std::uint64_t>(
      std::uint64_t{max_segments_} * max_registration_, std::numeric_limits<std::uint32_t>::max()));
  bound.reply_chunk_max = most;
  bound.segments =
      parts_of(std::min<std::uint64_t>(message_->reply.total_max(), most), max_registration_);
  bound.results.clear();
  for (const ItemBound& item : message_->reply.items) {
    const std::uint32_t offered = std::min(item.max_length, most);
    bound.results.push_back({.max_length = offered,
                             .segments = parts_of(offered, max_registration_),
                             .wanted_inline = false});
  }
}

// Small pieces are worth one copy, and more pieces than the chunk may have segments.
Rope PendingCall::gathered(Rope bytes, std::uint32_t most_segments) const {
  const bool copied =
      bytes.size() <= kGathered || segments_of(bytes, max_registration_) > most_segments;
  return copied ? Rope(bytes.flatten()) : bytes;
}

// Of more than kGathered bytes.
std::uint32_t PendingCall::segments_when_gathered(const Rope& bytes) const {
  const std::uint32_t segments = segments_of(bytes, max_registration_);
  return segments > max_segments_ ? parts_of(bytes.size(), max_registration_) : segments;
}

// What is left of the stream in a Long Call. A stream that was counted as one copy may have few
// enough pieces without the items that go apart: the header has no room for them.
Rope PendingCall::position_zero(std::span<const std::uint32_t> moved) const {
  const auto planned = shape.segments + static_cast<std::uint32_t>(moved.size());
  return gathered(message_->stream.without(moved), planned);
}

Rope PendingCall::chunk_of(std::size_t source) const {
  Rope bytes = message_->stream.item_bytes(source);
  if (!pad_read_chunks_) return bytes;
  // RFC 8166 3.4.5.2: the pad may be a segment of its own.
  static constexpr std::array<std::byte, 3> kZeros{};
  bytes.append(Buffer::borrow(Bytes(kZeros).first(xdr_pad(bytes.size()))));
  return bytes;
}

ExposedMemory::ForResult PendingCall::result_memory(std::size_t result, std::uint32_t length,
                                                    InlineVector<bool, 4>& used) const {
  const xdr::ItemId wanted = message_->reply.items[result].item;
  for (std::size_t i = 0; i < message_->result_buffers.size(); ++i) {
    const ResultBuffer& buffer = message_->result_buffers[i];
    if (used[i] || buffer.item != wanted) continue;
    if (!uses_result_buffers_ && !fabric::KeptRanges::of_this_thread()->has_sink(buffer.memory))
      continue;
    used[i] = true;
    if (buffer.memory.size() < length) break;
    return {buffer.memory.first(length), {}};
  }
  ExposedMemory::ForResult own{{}, Block::try_allocate(length)};
  if (own.block) own.memory = own.block.bytes().first(length);
  return own;
}

Result<rpcrdma::ExposedChunks, Reason> PendingCall::expose(fabric::Connection& connection) {
  rpcrdma::ExposedChunks chunks;
  const InlineVector<std::uint32_t, 2> moved = this->reduced_items();
  if (plan().form == rpcrdma::Form::Long) {
    memory_.position_zero = position_zero({moved.data(), moved.size()});
    auto segments = registrations_.expose_source(connection, memory_.position_zero);
    if (!segments) return Failure{segments.error()};
    chunks.position_zero = *std::move(segments);
  }
  for (const std::uint32_t source : moved) {
    memory_.arguments.push_back(gathered(chunk_of(source), max_segments_));
    auto segments = registrations_.expose_source(connection, memory_.arguments.back());
    if (!segments) return Failure{segments.error()};
    chunks.arguments.push_back(*std::move(segments));
  }
  InlineVector<bool, 4> used;
  for (std::size_t i = 0; i < message_->result_buffers.size(); ++i) used.push_back(false);
  for (std::size_t i = 0; i < plan().write_chunks.size(); ++i) {
    const std::uint32_t length = plan().write_chunks[i];
    memory_.results.push_back(length == 0 ? ExposedMemory::ForResult{}
                                          : result_memory(i, length, used));
    if (memory_.results.back().memory.size() != length) return Failure{Reason::OutOfMemory};
    auto segments = registrations_.expose_sink(connection, memory_.results.back().memory);
    if (!segments) return Failure{segments.error()};
    chunks.results.push_back(*std::move(segments));
  }
  if (plan().reply_chunk != 0) {
    memory_.reply = Block::try_allocate(plan().reply_chunk);
    if (!memory_.reply) return Failure{Reason::OutOfMemory};
    const MutableBytes room = memory_.reply.bytes().first(plan().reply_chunk);
    // The memory may have held the Reply to an earlier call.
    std::fill_n(room.begin(), std::min(room.size(), kBeginOfReply), std::byte{0});
    auto segments = registrations_.expose_sink(connection, room);
    if (!segments) return Failure{segments.error()};
    chunks.reply = *std::move(segments);
  }
  return chunks;
}

// Which items of the stream go apart.
InlineVector<std::uint32_t, 2> PendingCall::reduced_items() const {
  InlineVector<std::uint32_t, 2> items;
  for (const std::uint32_t index : plan().reduced) items.push_back(shape.items[index].source);
  return items;
}

void PendingCall::add_inline_stream(xdr::Stream::Parts& to) const {
  if (plan().reduced.empty()) return message_->stream.add_parts_without({}, to);
  const InlineVector<std::uint32_t, 2> moved = this->reduced_items();
  message_->stream.add_parts_without({moved.data(), moved.size()}, to);
}

// Owned bytes: a Reply may end the call while the Send is still queued, and then nothing may point
// into the caller's memory.
Rope PendingCall::inline_stream() const {
  const InlineVector<std::uint32_t, 2> moved = this->reduced_items();
  Rope stream = message_->stream.without({moved.data(), moved.size()});
  if (owned_by_us(stream)) return stream;
  // Several pieces are gathered into a copy; one alone comes back as it is.
  Buffer copy = stream.flatten();
  return copy.owned() ? Rope(std::move(copy)) : Rope::copy_of(copy.bytes());
}

Reason PendingCall::check_written(const fabric::Connection& connection,
                                  const rpcrdma::ReplyArrival& arrival) {
  const rpcrdma::Header& offered = header();
  std::uint64_t results = 0;
  for (std::size_t i = 0; i < arrival.written.size(); ++i) {
    const std::uint64_t said = arrival.written[i];
    if (said > written_to(offered.write_list[i].segments, connection).value_or(said))
      return Reason::RdmaChunkNotWritten;
    results += said + xdr_pad(said);
  }
  if (!arrival.long_reply) return Reason::None;
  const std::uint64_t said = arrival.reply_chunk_length;
  reply_written_ = written_to(offered.reply_chunk->segments, connection).value_or(said);
  // Some count what they put into Write chunks as well.
  return said > reply_written_ + results ? Reason::RdmaChunkNotWritten : Reason::None;
}

void PendingCall::collect(const rpcrdma::ReplyArrival& arrival, ReplyMessage& reply) {
  if (arrival.long_reply) {
    const std::uint64_t length =
        std::min<std::uint64_t>({arrival.reply_chunk_length, reply_written_, plan().reply_chunk});
    reply.payload = std::move(memory_.reply).freeze(length);
    memory_.holds_reply = true;
  } else {
    reply.payload = Buffer::borrow(arrival.payload);
  }
  const bool by_index = message_->reply.pairing == Pairing::ByIndex;
  for (std::size_t i = 0; i < memory_.results.size(); ++i) {
    const xdr::ItemId place = by_index ? message_->reply.items[i].item : xdr::kNoItem;
    ExposedMemory::ForResult& result = memory_.results[i];
    const std::size_t written = i < arrival.written.size() ? arrival.written[i] : 0;
    const std::size_t length = std::min(written, result.memory.size());
    if (result.memory.empty())
      reply.items.add_inline(place);
    else if (length == 0)  // an empty Rope would not keep the Block until release()
      reply.items.add_written(Rope(), place);
    else if (result.block)
      reply.items.add_written(Rope(std::move(result.block).freeze(length)), place);
    else
      reply.items.add_written(Rope::borrow(result.memory.first(length)), place);
  }
}

bool PendingCall::reply_is_own() const {
  if (!memory_.holds_reply || end->reason != Reason::None) return true;
  const Bytes stream = end->reply.payload.bytes();
  return stream.size() >= kBeginOfReply && load_be<std::uint32_t>(stream.data()) == xid &&
         load_be<std::uint32_t>(stream.data() + 4) == rpcrdma::REPLY;
}

void PendingCall::keep_reply() {
  Buffer& payload = end->reply.payload;
  try {
    if (!payload.owned()) payload = Buffer::copy_of(payload.bytes());
  } catch (const std::bad_alloc&) {
    payload = {};
    end->reason = Reason::OutOfMemory;
  }
}

void PendingCall::count(TransferStats& stats, const rpcrdma::ReplyArrival& arrival) const {
  const auto add = [](TransferStats::Count& counter, std::uint64_t n) {
    counter.fetch_add(n, std::memory_order_relaxed);
  };
  add(stats.calls, 1);
  if (plan().form == rpcrdma::Form::Long) {
    add(stats.position_zero_chunks, 1);
    add(stats.position_zero_bytes, plan().stream_length);
  } else {
    add(stats.inline_bytes, plan().stream_length);
  }
  for (const std::uint32_t index : plan().reduced) {
    add(stats.read_chunks, 1);
    add(stats.read_chunk_bytes, shape.items[index].length);
  }
  for (const std::uint32_t written : arrival.written) {
    add(stats.write_chunks, written != 0 ? 1 : 0);
    add(stats.write_chunk_bytes, written);
  }
  if (arrival.long_reply) {
    add(stats.reply_chunks, 1);
    add(stats.reply_chunk_bytes, arrival.reply_chunk_length);
  } else {
    add(stats.inline_bytes, arrival.payload.size());
  }
}

void PendingCall::release() {
  STAG_CHECK(!registrations_.held());
  memory_.results.clear();
  memory_.reply = {};
  memory_.holds_reply = false;
  memory_.position_zero = {};
  memory_.arguments.clear();
}

}  // namespace stag::rpc::rdma
