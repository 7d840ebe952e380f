// The replay cache: a retransmitted Call of a procedure that must not run twice is answered with
// the results of its first run (RFC 1813 section 4.5; RFC 5531 section 9 on XIDs). One cache serves
// all loops and transports, so a client that comes back on another connection, or another
// transport, finds its answer.
//
// Key: client address without port, XID, program, version, procedure, principal, and a hash over
// the plain, unreduced arguments. Credentials and verifiers are left out, since mechanisms count
// messages in them; a client that reuses XIDs still gets no other client's answer. A duplicate of a
// Call that is still running waits; the newest waiting duplicate gets the results, older ones are
// dropped.
//
// An entry keeps a copy of the results, not the message: a replay gets an RPC header and verifier
// of its own, and on RDMA a plan against the new Call's chunks. Entries share their bytes by
// reference with the Replies made from them, so an entry may be removed while such a Reply is still
// being sent.
//
// Bounds: bytes and age, shared fairly: a client address keeps no more bytes than it leaves free,
// so that a client which makes many Calls evicts its own results only. Of results that would be a
// large part of all (longest()) no copy is kept: a duplicate gets SYSTEM_ERR, and is not executed
// either.
//
// Thread: any; the entries lie in shards behind short mutexes.
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
  Duration max_age = std::chrono::seconds(120);  // an entry is kept this long after its Call ended
};

// A hash of what identifies a Call (see above).
struct ReplayKey {
  std::array<std::byte, 32> digest{};
  friend bool operator==(const ReplayKey&, const ReplayKey&) = default;
};

// The plain arguments of a Call: the bytes of `stream` from `offset` on, and `items`, which came in
// Read chunks (null: no item did).
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
    // The Call is new, or the run it waited for gave no answer: the caller runs it and calls
    // finish() exactly once.
    Run,
    Replay,  // the Call has run before: `results` has its results, or SYSTEM_ERR
    Drop,    // a newer duplicate has taken this one's place
  };
  struct Admitted {
    Admission admission = Admission::Run;
    std::optional<CallResults> results;
  };

  // Decides about a Call with this key. Waits, on `loop`, while the first run is in progress.
  Task<Admitted> admit(const ReplayKey& key, Loop& loop);
  // Ends a Run with its results. nullopt: the Call got no answer; a duplicate that waits runs, or
  // the key is forgotten. Results that there is no memory to keep are forgotten too; a duplicate
  // then runs again.
  void finish(const ReplayKey& key, Loop& loop, const std::optional<CallResults>& results) noexcept;

  // Bytes of the longest results that are kept.
  std::size_t longest() const;
  // Bytes and entries that are kept now.
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
