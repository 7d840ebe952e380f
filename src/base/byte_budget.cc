#include "base/byte_budget.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace stag {
namespace {

// Bytes of a READ or WRITE of 1 MiB with its headers and bookkeeping.
constexpr std::uint64_t kOrdinary = 2 << 20;

template <class Queue, class T>
typename Queue::node_type node_for(T* element) {
  Queue queue;
  return queue.extract(queue.insert(element).first);
}

}  // namespace

ByteBudget::Account::Account(std::string host)
    : address(std::move(host)), node(node_for<Queue<Account>>(this)) {}

ByteBudget::ByteBudget(std::uint64_t limit)
    : limit_(limit), sure_(std::min(limit / 2, std::max(limit / 64, kOrdinary))) {}

ByteBudget::~ByteBudget() {
  STAG_CHECK(accounts_.empty());
}

// Bytes that must be free for a request.
std::uint64_t ByteBudget::need(const Share& share, std::uint64_t bytes) const {
  const std::uint64_t all = share.account_.used.load(std::memory_order_relaxed) + bytes;
  if (all <= sure_) return bytes;
  return (share.is_ordinary(bytes) ? 4 : 8) * all + bytes;
}

// When nothing is reserved even more than the limit is given, so that no request waits for ever. Of
// one address on several loops each may get one request too many at the same moment.
bool ByteBudget::try_take(Share& share, std::uint64_t bytes) {
  std::uint64_t used = used_.load();
  do {
    if (used != 0 && (used >= limit_ || need(share, bytes) > limit_ - used)) return false;
  } while (!used_.compare_exchange_weak(used, used + bytes));
  share.account_.used.fetch_add(bytes, std::memory_order_relaxed);
  share.used_.fetch_add(bytes, std::memory_order_relaxed);
  return true;
}

// A Share that begins to wait counts itself before it reads used_; this function changes used_
// before it reads the count, so that one of the two sees the other.
void ByteBudget::give_back(Share& share, std::uint64_t bytes) {
  share.used_.fetch_sub(bytes, std::memory_order_relaxed);
  share.account_.used.fetch_sub(bytes, std::memory_order_relaxed);
  used_.fetch_sub(bytes);
  if (waiting_.load() == 0) return;
  const std::lock_guard lock(mutex_);
  if (share.queue_ != nullptr) {
    dequeue(share);
    enqueue(share);
  } else if (share.account_.queued()) {
    rank(share.account_);
  }
  serve(nullptr);
}

ByteBudget::Account& ByteBudget::join(const std::string& address) {
  const std::lock_guard lock(mutex_);
  auto found = accounts_.find(address);
  if (found == accounts_.end())
    found = accounts_.emplace(address, std::make_unique<Account>(address)).first;
  ++found->second->shares;
  return *found->second;
}

void ByteBudget::leave(Account& account) {
  const std::lock_guard lock(mutex_);
  if (--account.shares == 0) accounts_.erase(account.address);
}

void ByteBudget::enqueue(Share& share) {
  waiting_.fetch_add(1);
  Account& account = share.account_;
  share.queue_ = share.is_ordinary(share.wanted_) ? &account.ordinary : &account.further;
  share.queue_->insert(std::move(share.node_));
  rank(account);
}

void ByteBudget::dequeue(Share& share) {
  Account& account = share.account_;
  share.node_ = std::exchange(share.queue_, nullptr)->extract(&share);
  waiting_.fetch_sub(1);
  if (!account.ordinary.empty() || !account.further.empty()) return rank(account);
  account.node = queue_.extract(&account);
}

// An account's bytes change unseen as long as they only become more: then it is ranked when its
// turn comes.
void ByteBudget::rank(Account& account) {
  if (account.queued()) account.node = queue_.extract(&account);
  account.next = nullptr;
  for (const Queue<Share>* queue : {&account.ordinary, &account.further}) {
    if (queue->empty()) continue;
    Share& oldest = **queue->begin();
    const std::uint64_t its_need = need(oldest, oldest.wanted_);
    if (account.next != nullptr && its_need >= account.need) continue;
    account.next = &oldest;
    account.need = its_need;
  }
  account.order = account.next->order;
  queue_.insert(std::move(account.node));
}

// `asking` checks the outcome itself. The loops of the other Shares are notified while the mutex is
// locked: the loop of a Share exists until the Share has left.
void ByteBudget::serve(const Share* asking) {
  while (!queue_.empty()) {
    Account& account = **queue_.begin();
    rank(account);
    if (*queue_.begin() != &account) continue;
    Share& share = *account.next;
    if (!try_take(share, share.wanted_)) return;
    dequeue(share);
    share.granted_.store(share.wanted_, std::memory_order_release);
    if (&share == asking) continue;
    share.loop_.post([waiter = share.weak_from_this()] {
      if (const std::shared_ptr<Share> alive = waiter.lock()) alive->on_room_();
    });
  }
}

ByteBudget::Share::Share(std::shared_ptr<ByteBudget> budget, const std::string& address, Loop& loop,
                         Loop::Function on_room)
    : budget_(std::move(budget)),
      node_(node_for<Queue<Share>>(this)),
      loop_(loop),
      on_room_(std::move(on_room)),
      account_(budget_->join(address)) {}

ByteBudget::Share::~Share() {
  stop_waiting();
  STAG_CHECK(used_ == 0);
  budget_->leave(account_);
}

bool ByteBudget::Share::is_ordinary(std::uint64_t bytes) const {
  return used_.load(std::memory_order_relaxed) + bytes <= kOrdinary;
}

bool ByteBudget::Share::reserve(std::uint64_t bytes) {
  if (wanted_ == 0) {
    if (budget_->waiting_.load() == 0 && budget_->try_take(*this, bytes)) return true;
    wanted_ = bytes;
    const std::lock_guard lock(budget_->mutex_);
    order = ++budget_->next_order_;
    budget_->enqueue(*this);
    budget_->serve(this);
  }
  STAG_CHECK(bytes == wanted_);
  if (granted_.exchange(0, std::memory_order_acquire) == 0) return false;
  wanted_ = 0;
  return true;
}

void ByteBudget::Share::release(std::uint64_t bytes) {
  budget_->give_back(*this, bytes);
}

void ByteBudget::Share::stop_waiting() {
  if (wanted_ == 0) return;
  {
    const std::lock_guard lock(budget_->mutex_);
    if (queue_ != nullptr) budget_->dequeue(*this);
    wanted_ = 0;
  }
  if (const std::uint64_t granted = granted_.exchange(0)) release(granted);
}

}  // namespace stag
