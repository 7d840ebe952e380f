// The replay cache: a retransmitted Call of a procedure that must not run twice is answered with
// the results of its first run (RFC 1813 section 4.5; RFC 5531 section 9 on XIDs). One cache serves
// all loops and transports, so a client that comes back on another connection, or another
// transport, finds its answer.
//
// Key: client address without port, XID, program, version, procedure, principal, and a hash over
// the plain, unreduced arguments. Credentials and verifiers are left out, since mechanisms count
// messages in them; a client that reuses XIDs still gets no stranger's answer. A duplicate of a
// Call still running waits, and the newest waiter gets the results; older ones are dropped.
//
// An entry keeps the results, not the message: a replay gets an RPC header and verifier of its own,
// and on RDMA a plan against the new Call's chunks. Entries share the bytes by reference with the
// Replies made from them, so one that is forgotten while its Reply still leaves takes nothing away.
//
// Bounded by bytes and age, and fairly: a client address keeps no more than it leaves free, so one
// that makes many Calls loses its own results and nobody else's. Shards behind short mutexes.
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
#include "rpc/authenticator.h"
#include "rpc/message.h"

namespace stag::rpc {

struct ReplayCacheOptions {
  std::size_t max_bytes = 64 << 20;  // of encoded results and bookkeeping, over all shards
  Duration max_age = std::chrono::seconds(120);
};

struct ReplayKey {
  std::array<std::byte, 32> digest{};
  friend bool operator==(const ReplayKey&, const ReplayKey&) = default;
};

// The plain arguments of a Call: what stands in `stream` from byte `offset` on. `items` is what it
// moved in Read chunks; null: nothing.
struct PlainArguments {
  Bytes stream;
  std::size_t offset = 0;
  const ReducedItems* items = nullptr;
};

ReplayKey replay_key(const Origin& origin, const oncrpc::CallHeader& header, const Caller& caller,
                     const PlainArguments& arguments);

class ReplayCache {
 public:
  explicit ReplayCache(ReplayCacheOptions options = {});
  ~ReplayCache();
  ReplayCache(const ReplayCache&) = delete;
  ReplayCache& operator=(const ReplayCache&) = delete;

  enum class Admission : std::uint8_t {
    Run,     // new: execute it and call finish() exactly once
    Replay,  // done before: `results`
    Drop,    // a newer duplicate took this one's place, or the first run gave no answer
  };
  struct Admitted {
    Admission admission = Admission::Run;
    std::optional<CallResults> results;
  };

  // Waits, on `loop`, while the first run is in progress.
  Task<Admitted> admit(const ReplayKey& key, Loop& loop);
  // The outcome of a Run; nullopt: no answer was given, forget it. So is one that there is no
  // memory to keep; a duplicate is then run again.
  void finish(const ReplayKey& key, Loop& loop, const std::optional<CallResults>& results) noexcept;

  std::size_t bytes() const;
  std::size_t entries() const;

 private:
  struct Entry;
  struct Waiter;
  struct Share;
  struct Shard;
  // True: decided, in waiter.admitted. False: `waiter` is resumed later.
  bool admit_now(const ReplayKey& key, Waiter& waiter);
  Shard& shard_of(const ReplayKey& key) const;

  ReplayCacheOptions options_;
  std::unique_ptr<Shard[]> shards_;
};

}  // namespace stag::rpc
