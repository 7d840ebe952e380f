#include "fabric/iwarp/transmit_queue.h"

#include <algorithm>
#include <utility>

namespace stag::fabric {

void TransmitQueue::List::push(FlowQueue* queue) {
  queue->next = nullptr;
  (head == nullptr ? head : tail->next) = queue;
  tail = queue;
}

void TransmitQueue::List::push_front(FlowQueue* queue) {
  queue->next = head;
  if (head == nullptr) tail = queue;
  head = queue;
}

TransmitQueue::FlowQueue* TransmitQueue::List::pop() {
  FlowQueue* first = head;
  head = first->next;
  return first;
}

void TransmitQueue::List::remove(FlowQueue* queue) {
  FlowQueue* before = nullptr;
  for (FlowQueue* at = head; at != queue; at = at->next) before = at;
  (before == nullptr ? head : before->next) = queue->next;
  if (tail == queue) tail = before;
}

template <class T>
std::unique_ptr<T> TransmitQueue::Pool<T>::take() {
  if (free_ == nullptr) return std::make_unique<T>();
  std::unique_ptr<T> item(std::exchange(free_, free_->next));
  item->next = nullptr;
  --kept_;
  return item;
}

template <class T>
void TransmitQueue::Pool<T>::give(T* item) {
  std::unique_ptr<T> ended(item);
  if (kept_ == kMostKept) return;
  *item = T();
  item->next = std::exchange(free_, ended.release());
  ++kept_;
}

TransmitQueue::~TransmitQueue() {
  while (drop()) {
  }
}

TransmitQueue::List& TransmitQueue::list_of(const FlowQueue& queue) {
  switch (queue.head->operation.kind) {
    case OperationKind::Send:
      return sends_;
    case OperationKind::Read:
      return reads_;
    case OperationKind::Write:
      break;
  }
  return writes_;
}

TransmitQueue::FlowQueue* TransmitQueue::find(Flow flow) const {
  // The latest first: who posts a Write posts its Send next.
  for (std::size_t i = active_.size(); i > 0; --i)
    if (active_[i - 1]->flow == flow) return active_[i - 1];
  return nullptr;
}

void TransmitQueue::post(Operation&& operation) {
  std::unique_ptr<Node> node = nodes_.take();
  node->operation = std::move(operation);
  if (FlowQueue* queue = find(node->operation.flow)) {
    queue->tail = queue->tail->next = node.release();
    return;
  }
  std::unique_ptr<FlowQueue> flow = flows_.take();
  active_.push_back(flow.get());
  FlowQueue* const queue = flow.release();
  queue->flow = node->operation.flow;
  queue->head = queue->tail = node.release();
  list_of(*queue).push(queue);
}

void TransmitQueue::put_back(FlowQueue* queue) {
  if (queue->head != nullptr) {
    List& list = list_of(*queue);
    if (&list == &writes_ && queue->in_turn != 0 && queue->in_turn < turn_limit_)
      return list.push_front(queue);
    queue->in_turn = 0;
    return list.push(queue);
  }
  active_.erase(std::find(active_.begin(), active_.end(), queue));
  if (active_.empty() && active_.capacity() > kMostKept)
    static_cast<void>(std::exchange(active_, {}));
  flows_.give(queue);
}

Operation TransmitQueue::take_head(FlowQueue* queue) {
  Node* node = queue->head;
  Operation operation = std::move(node->operation);
  queue->head = node->next;
  nodes_.give(node);
  put_back(queue);
  return operation;
}

Operation TransmitQueue::take_part() {
  Node* node = writes_.head->head;
  Operation& whole = node->operation;
  const std::size_t size = std::min(write_limit_, whole.bytes.size() - node->sent);
  Operation part;
  // Where there is no memory for this everything is as it was.
  if (size < whole.bytes.size()) part.bytes = whole.bytes.slice(node->sent, size);
  FlowQueue* queue = writes_.pop();
  queue->in_turn += size;
  if (size == whole.bytes.size()) return take_head(queue);
  part.kind = OperationKind::Write;
  part.flow = whole.flow;
  part.remote = whole.remote;
  part.remote.offset += node->sent;
  node->sent += size;
  if (node->sent == whole.bytes.size()) {
    part.token = whole.token;
    take_head(queue);
  } else {
    put_back(queue);
  }
  return part;
}

std::optional<Outgoing> TransmitQueue::next(bool may_read) {
  const bool bulk_waits = !responses_.empty() || writes_.head != nullptr;
  if (sends_.head != nullptr && (!bulk_waits || sends_in_turn_ < turn_limit_)) {
    Operation send = take_head(sends_.pop());
    sends_in_turn_ = bulk_waits ? sends_in_turn_ + send.bytes.size() : 0;
    return Outgoing{std::nullopt, std::move(send)};
  }
  if (may_read && reads_.head != nullptr) return Outgoing{std::nullopt, take_head(reads_.pop())};
  sends_in_turn_ = 0;
  const bool respond_now = !responses_.empty() && (responses_turn_ || writes_.head == nullptr);
  responses_turn_ = !respond_now;
  if (respond_now) return Outgoing{responses_.pop(), {}};
  if (writes_.head != nullptr) return Outgoing{std::nullopt, take_part()};
  return std::nullopt;
}

std::optional<Operation> TransmitQueue::drop() {
  if (active_.empty()) return std::nullopt;
  FlowQueue* queue = active_.front();
  list_of(*queue).remove(queue);
  return take_head(queue);
}

}  // namespace stag::fabric
