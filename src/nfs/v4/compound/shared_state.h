// What all COMPOUNDs of a server share: its clients and what they hold, its exports as a pseudo
// file system, its limits.
#pragma once

#include <atomic>
#include <chrono>
#include <memory>

#include "base/brief_mutex.h"
#include "nfs/export/server_context.h"
#include "nfs/state/clients.h"
#include "nfs/state/files.h"
#include "nfs/v4/compound/pseudo_fs.h"

namespace stag::nfs::nfs4 {

inline constexpr std::uint32_t kFirstMinor = 1;
inline constexpr std::uint32_t kLastMinor = 2;

struct Nfs4Options {
  std::uint32_t lease_seconds = 90;
  state::ClientLimits clients{};
  state::StateLimits states{};
};

// Thread: any. Constant but for its parts, which have locks of their own.
class SharedState {
 public:
  // `context` outlives it.
  SharedState(const ServerContext& context, const Nfs4Options& wanted)
      : server(context),
        options(wanted),
        clients({.epoch = static_cast<std::uint32_t>(context.boot_verifier),
                 .lease = std::chrono::seconds(wanted.lease_seconds),
                 .key = process_sip_key(),
                 .limits = wanted.clients}),
        files({.epoch = static_cast<std::uint32_t>(context.boot_verifier),
               .key = process_sip_key(),
               .limits = wanted.states}) {}

  const ServerContext& server;
  const Nfs4Options options;
  state::Clients clients;
  state::Files files;

  // Of these exports, which the caller keeps.
  std::shared_ptr<const PseudoFs> pseudo_fs(const std::shared_ptr<const Exports>& exports);
  // Lets leases run out, and ends clients that nobody waits for any more; once a second at most,
  // however often it is called.
  void expire(TimePoint now);
  // Ends a client that lapsed and holds what somebody else wants.
  void end_lapsed(state::ClientId client);
  void release(const state::LifePtr& ended) {
    if (ended != nullptr) files.release(*ended);
  }

 private:
  std::atomic<TimePoint::rep> next_expiry_{0};  // as time since the clock's zero
  BriefMutex mutex_;
  std::weak_ptr<const Exports> exports_;  // that pseudo_fs_ was made of
  std::shared_ptr<const PseudoFs> pseudo_fs_;
};

}  // namespace stag::nfs::nfs4
