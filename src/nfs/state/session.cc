#include "nfs/state/session.h"

#include <algorithm>
#include <new>

namespace stag::nfs::state {

void tell(Slot::Waiters& waiters) noexcept {
  for (auto& waiter : waiters) {
    try {
      waiter();
    } catch (const std::bad_alloc&) {
      // It asks again when its time is over.
    }
  }
}

std::optional<CacheShare> CacheShare::take(std::atomic<std::uint64_t>& used, std::uint64_t limit,
                                           std::shared_ptr<AddressAccount> account,
                                           std::uint64_t bytes, const CacheUse& returning) {
  const std::uint64_t of_address =
      account->cache.fetch_add(bytes, std::memory_order_relaxed) + bytes;
  const std::uint64_t of_all = used.fetch_add(bytes, std::memory_order_relaxed) + bytes;
  CacheShare share(used, std::move(account), bytes);
  if (of_address > limit / 4 + returning.of_address || of_all > limit + returning.of_all)
    return std::nullopt;
  const std::uint64_t own = of_address - std::min(of_address, returning.of_address + bytes);
  const std::uint64_t all = of_all - std::min(of_all, returning.of_all + bytes);
  if (!leaves_enough(own, all, bytes, limit)) return std::nullopt;
  return share;
}

CacheShare::~CacheShare() {
  if (account_ == nullptr) return;
  account_->cache.fetch_sub(bytes_, std::memory_order_relaxed);
  used_.fetch_sub(bytes_, std::memory_order_relaxed);
}

// RFC 8881 18.34.3: binding again changes nothing, and who demands a change is refused; but a
// connection that lost its back direction is given it again.
BindResult Session::bind(ConnectionId connection, std::uint32_t asked, std::uint32_t required,
                         const CallbackConnection& callbacks, std::size_t most) {
  const auto known = std::find_if(bound_.begin(), bound_.end(), [&](const Bound& bound) {
    return bound.connection == connection && !bound.lost_back;
  });
  const std::uint32_t granted = known != bound_.end() ? known->directions
                                : callbacks.expired() ? asked & ~channel::kBack
                                                      : asked;
  if (granted == 0 || (granted & ~asked) != 0 || (required & ~granted) != 0)
    return {Status::Inval, 0};
  if (known == bound_.end()) {
    std::erase_if(bound_, [&](const Bound& bound) { return bound.connection == connection; });
    if (bound_.size() >= most) {
      const auto gone = std::find_if(bound_.begin(), bound_.end(), [](const Bound& bound) {
        return bound.lost_back && bound.callbacks.expired();
      });
      bound_.erase(gone != bound_.end() ? gone : bound_.begin());
    }
    bound_.push_back({connection, granted, callbacks});
    if ((granted & channel::kBack) != 0) had_back_channel_ = true;
  }
  return {Status::Ok, granted};
}

void Session::unbind_back(ConnectionId connection) {
  for (Bound& bound : bound_) {
    if (bound.connection != connection || (bound.directions & channel::kBack) == 0) continue;
    bound.directions &= ~channel::kBack;
    bound.lost_back = true;
  }
  std::erase_if(bound_, [](const Bound& bound) { return bound.directions == 0; });
}

bool Session::serves(ConnectionId connection) const {
  return std::any_of(bound_.begin(), bound_.end(), [&](const Bound& bound) {
    return bound.connection == connection && (bound.directions & channel::kFore) != 0;
  });
}

void Session::on_sequence(ConnectionId connection) {
  if (sequenced_[newest_] == connection) return;
  if (std::find(sequenced_.begin(), sequenced_.end(), connection) != sequenced_.end()) return;
  newest_ = (newest_ + 1) % sequenced_.size();
  sequenced_[newest_] = connection;
}

bool Session::is_associated_with(ConnectionId connection) const {
  const auto is_it = [&](const Bound& bound) { return bound.connection == connection; };
  return std::any_of(bound_.begin(), bound_.end(), is_it) ||
         std::find(sequenced_.begin(), sequenced_.end(), connection) != sequenced_.end();
}

std::vector<Clients::BackChannel> Session::back_channels() const {
  std::vector<Clients::BackChannel> found;
  for (auto bound = bound_.rbegin(); bound != bound_.rend(); ++bound)
    if (bound->carries_callbacks()) found.push_back({bound->connection, bound->callbacks});
  return found;
}

bool Session::has_back_channel() const {
  return std::any_of(bound_.begin(), bound_.end(),
                     [](const Bound& bound) { return bound.carries_callbacks(); });
}

}  // namespace stag::nfs::state
