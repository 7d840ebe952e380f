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
                       const state::ChannelAttributes& attributes) {
  sessionid_ = sessionid;
  attributes_ = attributes;
  slots_.resize(std::clamp(attributes.max_requests, 1u, kSlots));
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

bool BackChannel::begin_asking(std::uint32_t& about) {
  const BriefLock lock(mutex_);
  if (verdict_ != Verdict::Unknown) return false;
  verdict_ = Verdict::Asking;
  about = parameters_;
  return true;
}

void BackChannel::asked(std::uint32_t about, bool works) {
  const BriefLock lock(mutex_);
  if (about == parameters_) verdict_ = works ? Verdict::Works : Verdict::Fails;
}

CallbackRequest BackChannel::request() const {
  CallbackRequest request;
  request.request_max = attributes_.max_request_size;
  request.compound.minorversion = minor_;
  const BriefLock lock(mutex_);
  request.program = program_;
  request.credentials = credentials_;
  return request;
}

std::optional<std::uint32_t> BackChannel::take_slot() {
  for (std::uint32_t i = 0; i < slots_.size(); ++i) {
    if (slots_[i].busy) continue;
    slots_[i].busy = true;
    return i;
  }
  return std::nullopt;
}

}  // namespace stag::nfs::nfs4
