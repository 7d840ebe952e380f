#include "nfs/v4/callback/back_channel.h"

#include <algorithm>

namespace stag::nfs::nfs4 {

std::optional<rpc::Credentials> usable_credentials(
    const std::vector<v4::callback_sec_parms4>& offered) {
  bool none = false;
  for (const v4::callback_sec_parms4& one : offered) {
    if (one.cb_secflavor == v4::AUTH_SYS) {
      const v4::authsys_parms& sys = one.cbsp_sys_cred();
      return rpc::Credentials::sys(sys.machinename, sys.uid, sys.gid, sys.gids);
    }
    none = none || one.cb_secflavor == v4::AUTH_NONE;
  }
  if (none) return rpc::Credentials();
  return std::nullopt;
}

void BackChannel::open(const state::SessionId& sessionid,
                       const state::ChannelAttributes& attributes) noexcept {
  sessionid_ = sessionid;
  attributes_ = attributes;
  slot_count_ = std::clamp(attributes.max_requests, 1u, kSlots);
  open_.store(true, std::memory_order_release);
}

void BackChannel::replace(std::uint32_t program, rpc::Credentials credentials) {
  const BriefLock lock(mutex_);
  program_ = program;
  std::swap(credentials_, credentials);  // The old ones are freed without the lock.
  verdict_ = Verdict::Unknown;
  ++parameters_;
}

void BackChannel::ask_again() {
  const BriefLock lock(mutex_);
  verdict_ = Verdict::Unknown;
  ++parameters_;
}

BackChannel::Verdict BackChannel::verdict() const {
  const BriefLock lock(mutex_);
  return verdict_;
}

void BackChannel::ask_again_after(Duration age, TimePoint now) {
  const BriefLock lock(mutex_);
  if (verdict_ == Verdict::Asking || now < asked_at_ + age) return;
  verdict_ = Verdict::Unknown;
  ++parameters_;
}

bool BackChannel::begin_asking(std::uint32_t& about, TimePoint now) {
  const BriefLock lock(mutex_);
  const bool asking = verdict_ == Verdict::Asking && now < asked_at_ + kForgotten;
  if (asking || verdict_ == Verdict::Works || verdict_ == Verdict::Fails) return false;
  verdict_ = Verdict::Asking;
  asked_at_ = now;
  about = parameters_;
  return true;
}

void BackChannel::asked(std::uint32_t about, bool works) {
  const BriefLock lock(mutex_);
  if (about == parameters_) verdict_ = works ? Verdict::Works : Verdict::Fails;
}

void BackChannel::found(bool works) {
  const BriefLock lock(mutex_);
  verdict_ = works ? Verdict::Works : Verdict::Fails;
}

CallbackRequest BackChannel::request() const {
  CallbackRequest request;
  request.request_max = attributes_.max_request_size;
  request.response_max = attributes_.max_response_size;
  request.compound.minorversion = minor_;
  if (address_) {
    request.request_max = request.response_max = rpc::ChannelLimits::kUnlimited;
    request.compound.callback_ident = address_->ident;
  }
  const BriefLock lock(mutex_);
  request.program = program_;
  request.credentials = credentials_;
  return request;
}

std::optional<std::uint32_t> BackChannel::take_slot(TimePoint now) {
  if (slots_.empty()) slots_.resize(slot_count_);
  for (std::uint32_t i = 0; i < slot_count_; ++i) {
    if (slots_[i].busy && now < slots_[i].since + kForgotten) continue;
    slots_[i].busy = true;
    slots_[i].since = now;
    return i;
  }
  return std::nullopt;
}

}  // namespace stag::nfs::nfs4
