// The replay cache: a retransmitted Call of a procedure that must not run twice is answered with
// the Reply of its first run (RFC 1813 section 4.5; RFC 5531 section 9 on XIDs). One cache serves
// all loops and transports, so a client that comes back on another connection, or another
// transport, finds its answer.
//
// Key: client address without port, XID, program, version, procedure, and a hash over the
// credential and the unreduced arguments, so that a client that reuses XIDs gets no stranger's
// answer. A duplicate of a Call still running waits, and the newest waiter gets the Reply; older
// ones are dropped. Done entries hold the Reply as an xdr::Stream with its items, so a replay is
// planned against the new Call's chunks. Bounded by bytes and age; shards behind short mutexes.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>

#include "base/address.h"
#include "base/loop.h"
#include "base/task.h"
#include "oncrpc/message.h"
#include "rpc/message.h"

namespace stag::rpc {

struct ReplayCacheOptions {
  std::size_t max_bytes = 64 << 20;  // of encoded Replies and bookkeeping, over all shards
  Duration max_age = std::chrono::seconds(120);
};

struct ReplayKey {
  std::array<std::byte, 32> digest{};
  friend bool operator==(const ReplayKey&, const ReplayKey&) = default;
};

// `payload` is the Call as received; `items` what it moved in Read chunks.
ReplayKey replay_key(const Origin& origin, const oncrpc::CallHeader& header, Bytes payload,
                     const ReducedItems& items);

class ReplayCache {
 public:
  explicit ReplayCache(ReplayCacheOptions options = {});
  ~ReplayCache();
  ReplayCache(const ReplayCache&) = delete;
  ReplayCache& operator=(const ReplayCache&) = delete;

  enum class Admission : std::uint8_t {
    Run,     // new: execute it and call finish() exactly once
    Replay,  // done before: `reply`
    Drop,    // a newer duplicate took this one's place, or the first run gave no answer
  };
  struct Admitted {
    Admission admission = Admission::Run;
    std::optional<OutgoingReply> reply;
  };

  // Waits, on `loop`, while the first run is in progress.
  Task<Admitted> admit(const ReplayKey& key, Loop& loop);
  // The outcome of a Run; nullopt: no answer was given, forget it. So is one that there is no
  // memory to keep; a duplicate is then run again.
  void finish(const ReplayKey& key, Loop& loop, const std::optional<OutgoingReply>& reply) noexcept;

  std::size_t bytes() const;
  std::size_t entries() const;

 private:
  struct Entry;
  struct Waiter;
  struct Shard;
  // True: decided, in waiter.admitted. False: `waiter` is resumed later.
  bool admit_now(const ReplayKey& key, Waiter& waiter);
  Shard& shard_of(const ReplayKey& key) const;

  ReplayCacheOptions options_;
  std::unique_ptr<Shard[]> shards_;
};

}  // namespace stag::rpc
