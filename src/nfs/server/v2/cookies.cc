#include "nfs/server/v2/cookies.h"

namespace stag::nfs::nfs2 {

namespace {

constexpr std::uint32_t kLarge = 0x80000000;

}  // namespace

std::uint32_t Cookies::number_of(std::uint64_t cookie) {
  if (cookie < kLarge) return static_cast<std::uint32_t>(cookie);
  const std::lock_guard lock(mutex_);
  const auto known = numbers_.find(cookie);
  if (known != numbers_.end()) return known->second;
  const std::uint32_t number = kLarge | next_;
  const std::uint32_t at = next_ % most_;
  if (at == slots_.size())
    slots_.emplace_back();
  else
    numbers_.erase(slots_[at].cookie);
  slots_[at] = {number, cookie};
  numbers_[cookie] = number;
  next_ = (next_ + 1) % kLarge;
  return number;
}

std::optional<std::uint64_t> Cookies::cookie_of(std::uint32_t number) const {
  if (number < kLarge) return number;
  const std::lock_guard lock(mutex_);
  const std::uint32_t at = (number & ~kLarge) % most_;
  if (at >= slots_.size() || slots_[at].number != number) return std::nullopt;
  return slots_[at].cookie;
}

}  // namespace stag::nfs::nfs2
