#include "nfs/v4/ops/callback_path.h"

#include "base/first_answer.h"
#include "nfs/v4/callback/callbacks.h"

namespace stag::nfs::nfs4 {

namespace {

// How long an OPEN waits for the client's answer to the first callback.
constexpr Duration kProbePatience = std::chrono::milliseconds(100);
// How old what is known of a connection to a client of version 4.0 may be.
constexpr Duration kAskAgain = std::chrono::minutes(1);

Task<void> probe(Compound& compound, Callbacks& callbacks, std::shared_ptr<BackChannel> back) {
  FirstAnswer<bool> ended(compound.admission().call().loop());
  callbacks.probe(std::move(back), compound.life()->clientid,
                  [tell = ended.from_anywhere()] { tell(true); });
  co_await ended.within(kProbePatience, false);
}

// Null where the client cannot be called.
std::shared_ptr<BackChannel> path_to_client(const Compound& compound) {
  const state::Clients& clients = compound.shared().clients;
  if (compound.slot() == nullptr) {
    const auto paths = clients.callback_paths(compound.life()->clientid);
    return paths.empty() ? nullptr : std::static_pointer_cast<BackChannel>(paths.front().second);
  }
  const state::SessionId& sessionid = compound.slot()->slot.sessionid;
  auto back = std::static_pointer_cast<BackChannel>(clients.callback_path(sessionid));
  return clients.back_channels(sessionid).empty() ? nullptr : back;
}

}  // namespace

Task<bool> can_call_back(Compound& compound) {
  using Verdict = BackChannel::Verdict;
  Callbacks* const callbacks = compound.shared().callbacks.load(std::memory_order_acquire);
  const std::shared_ptr<BackChannel> back = path_to_client(compound);
  if (callbacks == nullptr || back == nullptr) co_return false;
  // Nothing reports when a client of version 4.0 can be reached again.
  if (back->address() != nullptr && back->verdict() == Verdict::Fails)
    back->ask_again_after(kAskAgain, compound.now());
  const Verdict known = back->verdict();
  if (known == Verdict::Unknown || known == Verdict::Asking)
    co_await probe(compound, *callbacks, back);
  co_return back->verdict() == Verdict::Works;
}

v4::nfsstat4 check_callback_path(Compound& compound) {
  using Verdict = BackChannel::Verdict;
  Callbacks* const callbacks = compound.shared().callbacks.load(std::memory_order_acquire);
  const std::shared_ptr<BackChannel> back = path_to_client(compound);
  if (callbacks == nullptr || back == nullptr) return v4::NFS4ERR_CB_PATH_DOWN;
  const bool down = back->verdict() == Verdict::Fails;
  back->ask_again_after(kAskAgain, compound.now());
  if (back->verdict() == Verdict::Unknown) callbacks->probe(back, compound.life()->clientid, [] {});
  return down ? v4::NFS4ERR_CB_PATH_DOWN : v4::NFS4_OK;
}

}  // namespace stag::nfs::nfs4
