#include "rpc/rdma/served_call.h"

namespace stag::rpc::rdma {
namespace {

constexpr std::size_t kFewItems = 8;

}  // namespace

bool ServedCall::place(Service& service, const rpcrdma::ArrivedItem& item) {
  call_.placement_asked = true;
  Buffer given = service.place(call_, item.position, item.length);
  const std::size_t size = given.exclusive().size();
  if (size == 0 || size > item.length || item.length - size >= pad_.size()) return false;
  buffers_.push_back(std::move(given));
  return true;
}

bool ServedCall::make_room(Service& service, std::span<const rpcrdma::ArrivedItem> items) {
  // What a Long Call is for, and the length of its arguments, is not known yet.
  if (items.size() == 1 && items[0].position != 0 && place(service, items[0])) return true;
  for (const rpcrdma::ArrivedItem& item : items) {
    Block block = Block::try_allocate(item.length);
    if (!block) return false;
    buffers_.push_back(std::move(block).freeze(item.length));
  }
  return true;
}

MutableBytes ServedCall::sink(std::uint32_t item, std::uint32_t offset, std::uint32_t length) {
  const MutableBytes all = buffer(item);
  if (offset >= all.size())
    return MutableBytes(pad_).first(std::min<std::size_t>(length, pad_.size()));
  return all.subspan(offset, std::min<std::size_t>(length, all.size() - offset));
}

void ServedCall::serve(Service& service, const rpcrdma::CallArrival& arrival, Buffer payload) {
  call_.reply_room = {arrival.inline_reply_max, arrival.reply_chunk_max, arrival.write_chunks};
  call_.close = Reason::None;
  std::size_t first = 0;
  if (arrival.long_call) {
    call_.payload = std::move(buffers_[0]);
    first = 1;
  } else if (!arrival.deferred) {
    call_.payload = std::move(payload);
  }
  if (first < arrival.items.size()) call_.items = {};
  for (std::size_t i = first; i < arrival.items.size(); ++i)
    call_.items.add(arrival.items[i].position, Rope(std::move(buffers_[i])));
  forget_buffers();
  serving_ = service.serve(call_);
  serving_.start(*this);
}

void ServedCall::on_task_end() noexcept {
  // With it may go the owner, and this.
  const std::shared_ptr<void> alive = std::move(alive_);
  owner_.on_served(*this);
  serving_ = {};
}

const rpcrdma::ReplyShape& ServedCall::shape() {
  const OutgoingReply& reply = *this->reply();
  shape_.length = reply.stream.size();
  shape_.items.clear();
  shape_.pairing =
      reply.pairing == Pairing::Shift ? rpcrdma::Pairing::Shift : rpcrdma::Pairing::ByIndex;
  for (std::uint32_t i = 0; i < reply.stream.items().size(); ++i) {
    const xdr::Item& item = reply.stream.items()[i];
    if (item.id == xdr::kNoItem) continue;
    shape_.items.push_back({.position = item.position,
                            .length = item.length,
                            .segments = 1,
                            .source = i,
                            .ordinal = item.ordinal});
  }
  return shape_;
}

InlineVector<std::uint32_t, 2> ServedCall::sources(
    const InlineVector<std::uint32_t, 2>& items) const {
  InlineVector<std::uint32_t, 2> sources;
  for (const std::uint32_t index : items) sources.push_back(shape_.items[index].source);
  return sources;
}

Rope ServedCall::item_bytes(std::uint32_t item) {
  return reply()->stream.item_bytes(shape_.items[item].source);
}

// Memory that many items took is not kept.
void ServedCall::forget_buffers() {
  if (!buffers_.empty()) static_cast<void>(std::exchange(buffers_, {}));
}

void ServedCall::release() {
  forget_buffers();
  if (shape_.items.size() > kFewItems) static_cast<void>(std::exchange(shape_.items, {}));
  call_.payload = {};
  call_.who.reset();
  call_.placement_asked = false;
  if (!call_.items.empty()) call_.items = {};
}

}  // namespace stag::rpc::rdma
