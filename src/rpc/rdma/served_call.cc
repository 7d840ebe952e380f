#include "rpc/rdma/served_call.h"

#include <algorithm>

namespace stag::rpc::rdma {

bool ServedCall::make_room(std::span<const rpcrdma::ArrivedItem> items) {
  for (const rpcrdma::ArrivedItem& item : items) {
    rooms_.push_back({Block::try_allocate(item.length), item.length});
    if (!rooms_.back().block) return false;
  }
  return true;
}

MutableBytes ServedCall::room(std::uint32_t item) {
  return rooms_[item].block.bytes().first(rooms_[item].length);
}

void ServedCall::arrival(const rpcrdma::CallArrival& arrival, Buffer payload,
                         const std::shared_ptr<Origin>& origin) {
  if (call_.origin == nullptr) call_.origin = origin;
  std::size_t first = 0;
  if (arrival.long_call) {
    call_.payload = std::move(rooms_[0].block).freeze(rooms_[0].length);
    first = 1;
  } else {
    call_.payload = arrival.held ? std::move(held_) : std::move(payload);
  }
  if (first < arrival.items.size()) call_.items = {};
  for (std::size_t i = first; i < arrival.items.size(); ++i)
    call_.items.add(arrival.items[i].position,
                    Rope(std::move(rooms_[i].block).freeze(rooms_[i].length)));
  rooms_.clear();
}

void ServedCall::serve(Service& service, ServedCallOwner& owner, rpcrdma::IncomingCall id) {
  owner_ = &owner;
  id_ = id;
  serving_ = service.serve(call_);
  serving_.start(*this);
}

void ServedCall::on_task_end() noexcept {
  // With it may go the owner, and this.
  const std::shared_ptr<void> alive = std::move(alive_);
  owner_->on_served(*this);
  serving_ = {};
}

const rpcrdma::ReplyShape& ServedCall::answer(const OutgoingReply& reply) {
  stream_ = &reply.stream;
  shape_.length = stream_->size();
  shape_.items.clear();
  shape_.pairing =
      reply.pairing == Pairing::Shift ? rpcrdma::Pairing::Shift : rpcrdma::Pairing::ByIndex;
  for (std::uint32_t i = 0; i < stream_->items().size(); ++i) {
    const xdr::Item& item = stream_->items()[i];
    if (item.id == xdr::kNoItem) continue;
    shape_.items.push_back({.position = item.position,
                            .length = item.length,
                            .segments = 1,
                            .source = i,
                            .ordinal = item.ordinal});
  }
  return shape_;
}

Rope ServedCall::placed(const rpcrdma::Placement& placement) {
  if (placement.item == rpcrdma::kReplyStream)
    return stream_without_reduced().slice(placement.offset, placement.to.length);
  const std::uint32_t source = shape_.items[placement.item].source;
  if (std::find(reduced_.begin(), reduced_.end(), source) == reduced_.end())
    reduced_.push_back(source);
  return stream_->item_bytes(source).slice(placement.offset, placement.to.length);
}

Rope ServedCall::stream_without_reduced() const {
  return stream_->without({reduced_.data(), reduced_.size()});
}

InlineVector<std::uint32_t, 2> ServedCall::moved(const rpcrdma::ReplyPlan& plan) const {
  InlineVector<std::uint32_t, 2> items;
  for (const std::uint32_t index : plan.reduced) items.push_back(shape_.items[index].source);
  return items;
}

Bytes ServedCall::plain_stream(const rpcrdma::ReplyPlan& plan) const {
  const InlineVector<std::uint32_t, 2> moved = this->moved(plan);
  return stream_->plain_without({moved.data(), moved.size()});
}

Rope ServedCall::inline_stream(const rpcrdma::ReplyPlan& plan) const {
  const InlineVector<std::uint32_t, 2> moved = this->moved(plan);
  return stream_->without({moved.data(), moved.size()});
}

void ServedCall::release() {
  held_ = {};
  rooms_.clear();
  call_.payload = {};
  if (!call_.items.empty()) call_.items = {};
  stream_ = nullptr;
  reduced_.clear();
}

}  // namespace stag::rpc::rdma
