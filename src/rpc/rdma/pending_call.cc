#include "rpc/rdma/pending_call.h"

#include <algorithm>
#include <array>

namespace stag::rpc::rdma {
namespace {

std::uint32_t parts_of(std::uint64_t length, std::uint32_t max) {
  return length <= max ? 1 : static_cast<std::uint32_t>((length + max - 1) / max);
}

}  // namespace

void PendingCall::prepare(std::uint32_t max_registration, const TransportOptions& options) {
  max_registration_ = max_registration;
  max_segments_ = options.max_segments;
  pad_read_chunks_ = options.pad_read_chunks;
  xid = message_->xid;
  describe_call();
  describe_reply();
}

void PendingCall::describe_call() {
  const xdr::Stream& stream = message_->stream;
  shape.length = stream.size();
  shape.items.clear();
  shape.segments = stream.items().empty() ? parts_of(stream.size(), max_registration_)
                                          : segments_of(gathered(stream.rope()), max_registration_);
  for (std::uint32_t i = 0; i < stream.items().size(); ++i) {
    const xdr::Item& item = stream.items()[i];
    if (item.id == xdr::kNoItem) continue;
    const auto pad = pad_read_chunks_ ? static_cast<std::uint32_t>(xdr_pad(item.length)) : 0;
    const std::uint32_t segments =
        item.in_head && pad == 0 ? 1 : segments_of(gathered(chunk_of(i)), max_registration_);
    shape.items.push_back({.position = item.position,
                           .length = item.length,
                           .segments = segments,
                           .source = i,
                           .ordinal = item.ordinal,
                           .chunk_pad = pad});
  }
}

void PendingCall::describe_reply() {
  bound.payload_max = message_->reply.payload_max;
  bound.pairing = message_->reply.pairing == Pairing::Shift ? rpcrdma::Pairing::Shift
                                                            : rpcrdma::Pairing::ByIndex;
  bound.segments = parts_of(message_->reply.total_max(), max_registration_);
  bound.results.clear();
  for (const ItemBound& item : message_->reply.items)
    bound.results.push_back({.max_length = item.max_length,
                             .segments = parts_of(item.max_length, max_registration_),
                             .wanted_inline = false});
}

// More pieces than a chunk may have segments are worth one copy.
Rope PendingCall::gathered(Rope bytes) const {
  return segments_of(bytes, max_registration_) > max_segments_ ? Rope(bytes.flatten()) : bytes;
}

Rope PendingCall::chunk_of(std::size_t source) const {
  Rope bytes = message_->stream.item_bytes(source);
  if (!pad_read_chunks_) return bytes;
  // RFC 8166 3.4.5.2: the pad may be a segment of its own.
  static constexpr std::array<std::byte, 3> kZeros{};
  bytes.append(Buffer::borrow(Bytes(kZeros).first(xdr_pad(bytes.size()))));
  return bytes;
}

PendingCall::Room PendingCall::room_for(std::size_t result, std::uint32_t length,
                                        InlineVector<bool, 4>& used) const {
  const xdr::ItemId wanted = message_->reply.items[result].item;
  for (std::size_t i = 0; i < message_->sinks.size(); ++i) {
    const Sink& sink = message_->sinks[i];
    if (used[i] || sink.item != wanted) continue;
    used[i] = true;
    if (sink.memory.size() < length) break;
    return {sink.memory.first(length), {}};
  }
  Room room{{}, Block::try_allocate(length)};
  if (room.block) room.memory = room.block.bytes().first(length);
  return room;
}

Result<rpcrdma::ExposedChunks, Reason> PendingCall::expose(fabric::Connection& connection) {
  rpcrdma::ExposedChunks chunks;
  const InlineVector<std::uint32_t, 2> moved = this->moved();
  if (plan().form == rpcrdma::Form::Long) {
    position_zero_ = gathered(message_->stream.without({moved.data(), moved.size()}));
    auto segments = leases_.expose_source(connection, position_zero_);
    if (!segments) return Failure{segments.error()};
    chunks.position_zero = *std::move(segments);
  }
  for (const std::uint32_t source : moved) {
    arguments_.push_back(gathered(chunk_of(source)));
    auto segments = leases_.expose_source(connection, arguments_.back());
    if (!segments) return Failure{segments.error()};
    chunks.arguments.push_back(*std::move(segments));
  }
  InlineVector<bool, 4> used;
  for (std::size_t i = 0; i < message_->sinks.size(); ++i) used.push_back(false);
  for (std::size_t i = 0; i < plan().write_chunks.size(); ++i) {
    const std::uint32_t length = plan().write_chunks[i];
    rooms_.push_back(length == 0 ? Room{} : room_for(i, length, used));
    if (rooms_.back().memory.size() != length) return Failure{Reason::OutOfMemory};
    auto segments = leases_.expose_sink(connection, rooms_.back().memory);
    if (!segments) return Failure{segments.error()};
    chunks.results.push_back(*std::move(segments));
  }
  if (plan().reply_chunk != 0) {
    reply_room_ = Block::try_allocate(plan().reply_chunk);
    if (!reply_room_) return Failure{Reason::OutOfMemory};
    auto segments = leases_.expose_sink(connection, reply_room_.bytes().first(plan().reply_chunk));
    if (!segments) return Failure{segments.error()};
    chunks.reply = *std::move(segments);
  }
  return chunks;
}

// Which items of the stream go apart.
InlineVector<std::uint32_t, 2> PendingCall::moved() const {
  InlineVector<std::uint32_t, 2> items;
  for (const std::uint32_t index : plan().reduced) items.push_back(shape.items[index].source);
  return items;
}

Bytes PendingCall::plain_stream() const {
  const InlineVector<std::uint32_t, 2> moved = this->moved();
  return message_->stream.plain_without({moved.data(), moved.size()});
}

// Owned bytes: a Reply may end the call while the Send is still queued, and then nothing may point
// into the caller's memory.
Rope PendingCall::inline_stream() const {
  const InlineVector<std::uint32_t, 2> moved = this->moved();
  Rope stream = message_->stream.without({moved.data(), moved.size()});
  const bool owned = std::all_of(stream.pieces().begin(), stream.pieces().end(),
                                 [](const Buffer& piece) { return piece.owned(); });
  if (owned) return stream;
  // Several pieces are gathered into a copy; one alone comes back as it is.
  Buffer copy = stream.flatten();
  return copy.owned() ? Rope(std::move(copy)) : Rope::copy_of(copy.bytes());
}

void PendingCall::collect(const rpcrdma::ReplyArrival& arrival, ReplyMessage& reply) {
  if (arrival.long_reply) {
    const std::size_t length =
        std::min<std::size_t>(arrival.reply_chunk_length, reply_room_.capacity());
    reply.payload = std::move(reply_room_).freeze(length);
  } else {
    reply.payload = Buffer::borrow(arrival.payload);
  }
  const bool by_index = message_->reply.pairing == Pairing::ByIndex;
  for (std::size_t i = 0; i < rooms_.size(); ++i) {
    const xdr::ItemId place = by_index ? message_->reply.items[i].item : xdr::kNoItem;
    Room& room = rooms_[i];
    const std::size_t written = i < arrival.written.size() ? arrival.written[i] : 0;
    const std::size_t length = std::min(written, room.memory.size());
    if (room.memory.empty())
      reply.items.add_inline(place);
    else if (room.block)
      reply.items.add_written(Rope(std::move(room.block).freeze(length)), place);
    else
      reply.items.add_written(Rope::borrow(room.memory.first(length)), place);
  }
}

void PendingCall::keep_reply() {
  Buffer& payload = outcome->reply.payload;
  if (!payload.owned()) payload = Buffer::copy_of(payload.bytes());
}

void PendingCall::count(Moved& moved, const rpcrdma::ReplyArrival& arrival) const {
  const auto add = [](Moved::Count& counter, std::uint64_t n) {
    counter.fetch_add(n, std::memory_order_relaxed);
  };
  add(moved.calls, 1);
  if (plan().form == rpcrdma::Form::Long) {
    add(moved.position_zero_chunks, 1);
    add(moved.position_zero_bytes, plan().stream_length);
  } else {
    add(moved.inline_bytes, plan().stream_length);
  }
  for (const std::uint32_t index : plan().reduced) {
    add(moved.read_chunks, 1);
    add(moved.read_chunk_bytes, shape.items[index].length);
  }
  for (const std::uint32_t written : arrival.written) {
    add(moved.write_chunks, written != 0 ? 1 : 0);
    add(moved.write_chunk_bytes, written);
  }
  if (arrival.long_reply) {
    add(moved.reply_chunks, 1);
    add(moved.reply_chunk_bytes, arrival.reply_chunk_length);
  } else {
    add(moved.inline_bytes, arrival.payload.size());
  }
}

void PendingCall::release() {
  STAG_CHECK(!leases_.held());
  if (!plan().needs_memory()) return;
  rooms_.clear();
  reply_room_ = {};
  position_zero_ = {};
  arguments_.clear();
}

}  // namespace stag::rpc::rdma
