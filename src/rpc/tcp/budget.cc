#include "rpc/tcp/budget.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace stag::rpc::tcp {

ByteBudget::~ByteBudget() {
  STAG_CHECK(used_ == 0 && hosts_.empty());
}

std::uint64_t ByteBudget::used() const {
  const BriefLock lock(mutex_);
  return used_;
}

bool ByteBudget::fits(const Host& host, std::uint64_t bytes) const {
  if (used_ == 0) return true;
  if (used_ > limit_ || bytes > limit_ - used_) return false;
  return host.used == 0 || host.used + bytes <= (limit_ - used_ - bytes) / kPart;
}

void ByteBudget::enqueue(Account& account) {
  Host& host = account.host_->second;
  account.queued_ = true;
  account.next_ = nullptr;
  (host.last == nullptr ? host.first : host.last->next_) = &account;
  host.last = &account;
  ++account.budget_->waiting_;
}

void ByteBudget::dequeue(Account& account) {
  Host& host = account.host_->second;
  Account* before = nullptr;
  Account** at = &host.first;
  while (*at != &account) before = *at, at = &before->next_;
  *at = account.next_;
  if (host.last == &account) host.last = before;
  account.queued_ = false;
  --account.budget_->waiting_;
}

// An account that is granted bytes here has them before it knows, so that no other overtakes it.
ByteBudget::Granted ByteBudget::serve_waiting() {
  Granted first;
  if (waiting_ == 0) return first;
  Granted* last = &first;
  for (auto& [name, host] : hosts_) {
    while (host.first != nullptr && (host.first->wanted_ == 0 || fits(host, host.first->wanted_))) {
      Account& account = *host.first;
      dequeue(account);
      // One that is about to end on its own loop needs nothing any more.
      Granted granted = account.weak_from_this().lock();
      if (granted == nullptr) continue;
      account.charge(account.wanted_);
      *last = std::move(granted);
      last = &account.next_granted_;
    }
  }
  return first;
}

void ByteBudget::tell(Granted granted) noexcept {
  while (granted != nullptr) {
    Granted next = std::move(granted->next_granted_);
    try {
      granted->tell_later();
    } catch (...) {
      granted->ask_again();
    }
    granted = std::move(next);
  }
}

Account::Account(std::shared_ptr<ByteBudget> budget, const std::string& host, Loop& loop,
                 std::uint64_t most)
    : budget_(std::move(budget)), loop_(loop), most_(most) {
  if (budget_ == nullptr) return;
  const BriefLock lock(budget_->mutex_);
  host_ = &*budget_->hosts_.try_emplace(host).first;
  ++host_->second.accounts;
}

Account::~Account() {
  if (budget_ == nullptr) return;
  ByteBudget::Granted granted;
  {
    const BriefLock lock(budget_->mutex_);
    if (queued_) ByteBudget::dequeue(*this);
    uncharge(charged_);
    if (--host_->second.accounts == 0) budget_->hosts_.erase(budget_->hosts_.find(host_->first));
    granted = budget_->serve_waiting();
  }
  ByteBudget::tell(std::move(granted));
}

std::uint64_t Account::counted(std::uint64_t held) {
  return held <= kUncounted ? 0 : (held - kUncounted + kStep - 1) / kStep * kStep;
}

bool Account::try_take(std::uint64_t bytes) {
  if (budget_ == nullptr) return true;
  starving_ = !try_count(bytes);
  if (starving_) return false;
  held_ += bytes;
  ++grants_;
  return true;
}

bool Account::try_count(std::uint64_t bytes) {
  if (held_ > 0 && bytes > most_ - std::min(most_, held_)) {
    refused_ = true;
    return false;
  }
  const std::uint64_t count = counted(held_ + bytes);
  if (count > 0) {
    known_ = true;
    const BriefLock lock(budget_->mutex_);
    const std::uint64_t missing = count - std::min(count, charged_);
    const ByteBudget::Host& host = host_->second;
    // What it was refused it does not get by what it has to take meanwhile.
    if (queued_ && wanted_ > 0 && missing == 0) return false;
    if (missing > 0 && (host.first != nullptr || !budget_->fits(host, missing))) {
      wanted_ = missing;
      if (!queued_) ByteBudget::enqueue(*this);
      return false;
    }
    charge(missing);
  }
  return true;
}

void Account::charge(std::uint64_t bytes) {
  charged_ += bytes;
  host_->second.used += bytes;
  budget_->used_ += bytes;
}

void Account::uncharge(std::uint64_t bytes) {
  charged_ -= bytes;
  host_->second.used -= bytes;
  budget_->used_ -= bytes;
}

// It could not be told of what it has: it hears of it when another account gives something back.
void Account::ask_again() noexcept {
  const BriefLock lock(budget_->mutex_);
  if (queued_) return;
  wanted_ = 0;
  ByteBudget::enqueue(*this);
}

void Account::take(std::uint64_t bytes) noexcept {
  if (budget_ == nullptr) return;
  held_ += bytes;
  const std::uint64_t count = counted(held_);
  if (count == 0) return;
  known_ = true;
  const BriefLock lock(budget_->mutex_);
  charge(count - std::min(count, charged_));
}

void Account::give(std::uint64_t bytes) noexcept {
  if (budget_ == nullptr) return;
  STAG_CHECK(bytes <= held_);
  held_ -= bytes;
  if (bytes > 0 && refused_) {
    try {
      tell_later();
      refused_ = false;
    } catch (...) {
      // The next one tells.
    }
  }
  if (!known_) return;
  const std::uint64_t count = counted(held_);
  ByteBudget::Granted granted;
  {
    const BriefLock lock(budget_->mutex_);
    if (count < charged_) {
      uncharge(charged_ - count);
      granted = budget_->serve_waiting();
    }
    known_ = charged_ > 0 || queued_;
  }
  ByteBudget::tell(std::move(granted));
}

void Account::tell_later() {
  loop_.post([weak = weak_from_this()] {
    const auto account = weak.lock();
    if (account == nullptr) return;
    if (account->on_room) account->on_room();
    // What was granted and is no longer wanted.
    account->give(0);
  });
}

}  // namespace stag::rpc::tcp
