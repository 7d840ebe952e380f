// What this server asks of its clients: the delegations that it wants back (RFC 8881 10.4.5, 20.2).
//
// One loop, `home`, decides what is sent, and when; the Calls themselves run on the loops of their
// connections. A recall is Asked -> Sent -> Acknowledged -> returned, or revoked a lease after it
// was Asked. Once a second what is open is looked at: what could not be sent is sent again, what is
// overdue is revoked.
//
// Thread: recall() and probe() any, the rest home. The SharedState, home and the loops of all
// connections outlive it; it outlives the Calls.
#pragma once

#include <map>
#include <memory>

#include "base/loop.h"
#include "nfs/state/files.h"
#include "nfs/v4/callback/back_channel.h"

namespace stag::nfs::nfs4 {

class SharedState;

class Callbacks {
 public:
  Callbacks(SharedState& shared, Loop& home);
  ~Callbacks();
  Callbacks(const Callbacks&) = delete;

  void recall(const state::Recall& recall);
  // Finds out whether the client answers; `done` runs on home, when verdict() is there.
  void probe(std::shared_ptr<BackChannel> back, UniqueFunction<void()> done);

 private:
  struct Recalled {
    enum class Phase : std::uint8_t { Asked, Queued, Sent, Acknowledged };
    state::Recall recall;
    TimePoint asked;
    TimePoint next_try;
    Phase phase = Phase::Asked;
    std::weak_ptr<BackChannel> queued_at{};
    std::uint32_t tries_in_a_row = 0;
  };
  // One request on its way.
  struct Sending {
    DelegationKey key;
    std::shared_ptr<BackChannel> back;
    std::uint32_t slot = 0;
    state::ConnectionId connection = 0;
  };
  enum class Next : std::uint8_t { Done, AtOnce, Later };

  void begin(const state::Recall& recall);
  void start_probe(const std::shared_ptr<BackChannel>& back);
  void start(const DelegationKey& key, Recalled& recalled);
  bool start_on(const DelegationKey& key, Recalled& recalled,
                const std::shared_ptr<BackChannel>& back);
  CallbackRequest request_for(const Recalled& recalled, BackChannel& back, std::uint32_t slot);
  void finish(const Sending& sending, CallbackOutcome outcome);
  Next judge(const Sending& sending, const CallbackOutcome& outcome, const Recalled* recalled);
  Next judge_sequence(const Sending& sending, v4::nfsstat4 status);
  Next judge_operation(v4::nfsstat4 status, const Recalled* recalled) const;
  void serve_queue(BackChannel& back);
  void sweep();
  bool is_over(Recalled& recalled);
  void arm();

  SharedState& shared_;
  Loop& home_;
  std::map<DelegationKey, Recalled> recalled_;
  Timer timer_;
  bool armed_ = false;
};

}  // namespace stag::nfs::nfs4
