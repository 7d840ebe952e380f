// One session: its slots with what was asked and answered last on each (RFC 8881 2.10.6), and the
// connections that it is bound to. Not thread-safe: the shard of its client is.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "base/unique_function.h"
#include "nfs/state/clients.h"

namespace stag::nfs::state {

struct ClientRecord;

class Slot {
 public:
  using Waiters = std::vector<UniqueFunction<void()>>;
  enum class Judgement : std::uint8_t { New, Running, Done, Misordered, FalseRetry };

  Slot() = default;
  // One on which `last` was done.
  explicit Slot(SequenceId last) : sequenceid_(last), used_(true) {}

  // What a request with this sequence ID is; nothing changes.
  Judgement judge(SequenceId sequenceid, const Fingerprint& fingerprint) const {
    if (sequenceid == sequenceid_ + 1) return running_ ? Judgement::Misordered : Judgement::New;
    // RFC 8881 18.36.4: nothing was asked on a fresh slot, not even number 0.
    if (sequenceid != sequenceid_ || !used_) return Judgement::Misordered;
    // Also of another request, which a client sends to hear that this one has ended (RFC 8267 6.6):
    // until then the slot takes no other number.
    if (running_) return Judgement::Running;
    return fingerprint == fingerprint_ ? Judgement::Done : Judgement::FalseRetry;
  }
  // A new one starts; the reply that nobody can ask for any more is returned, to be freed outside.
  [[nodiscard]] ReplyPtr start(const Fingerprint& fingerprint) {
    ++sequenceid_;
    used_ = running_ = true;
    fingerprint_ = fingerprint;
    return std::exchange(reply_, nullptr);
  }
  // Returns the waiters, to be called outside.
  [[nodiscard]] Waiters finish(ReplyPtr reply) {
    running_ = false;
    reply_ = std::move(reply);
    return std::exchange(waiters_, {});
  }

  bool runs(SequenceId sequenceid) const { return running_ && sequenceid == sequenceid_; }
  const ReplyPtr& reply() const { return reply_; }
  Waiters& waiters() { return waiters_; }

 private:
  SequenceId sequenceid_ = 0;
  bool used_ = false;
  bool running_ = false;
  Fingerprint fingerprint_;
  ReplyPtr reply_;
  Waiters waiters_;
};

// Calls each of them, without a lock.
void tell(Slot::Waiters& waiters) noexcept;

// Bytes of the caches.
struct CacheUse {
  std::uint64_t of_address = 0;
  std::uint64_t of_all = 0;
};

// Bytes of the caches, of all and of an address, that are given back in the end.
class CacheShare {
 public:
  // Nothing when that many are not free, or beyond a quarter of all for the address, or it would
  // have more than it leaves free. What is
  // `returning`, because its place is taken, is as good as free.
  static std::optional<CacheShare> take(std::atomic<std::uint64_t>& used, std::uint64_t limit,
                                        std::shared_ptr<AddressAccount> account,
                                        std::uint64_t bytes, const CacheUse& returning);
  CacheShare(CacheShare&& other) noexcept = default;
  CacheShare& operator=(CacheShare&&) = delete;
  ~CacheShare();

 private:
  CacheShare(std::atomic<std::uint64_t>& used, std::shared_ptr<AddressAccount> account,
             std::uint64_t bytes)
      : used_(used), account_(std::move(account)), bytes_(bytes) {}

  std::atomic<std::uint64_t>& used_;
  std::shared_ptr<AddressAccount> account_;  // null: moved from
  const std::uint64_t bytes_;
};

class Session {
 public:
  // `client` outlives its place in the shard.
  Session(ClientRecord& client, const ChannelAttributes& fore, CacheShare share)
      : client_(client), fore_(fore), share_(std::move(share)), slots_(fore.max_requests) {}

  // Bytes of the caches that such a session takes.
  static std::uint64_t cost_of(const ChannelAttributes& fore) {
    return std::uint64_t{fore.max_requests} * (sizeof(Slot) + fore.max_response_size_cached);
  }

  SessionId id{};
  ClientRecord& client() const { return client_; }
  const ChannelAttributes& fore() const { return fore_; }
  std::vector<Slot>& slots() { return slots_; }

  // As Clients::bind_connection; at most `most` are remembered.
  BindResult bind(ConnectionId connection, std::uint32_t asked, std::uint32_t required,
                  const CallbackConnection& callbacks, std::size_t most);
  // No callback goes by it any more; what it is to requests stays (RFC 8881 2.10.3.1).
  void unbind_back(ConnectionId connection);
  // Whether requests come on this connection, which was bound.
  bool serves(ConnectionId connection) const;
  // A COMPOUND of the session came by it. The latest few are remembered, apart from those bound:
  // who sends a SEQUENCE takes nobody's back channel away.
  void on_sequence(ConnectionId connection);
  // By any of its channels, bound or not (RFC 8881 2.10.3.1).
  bool is_associated_with(ConnectionId connection) const;
  std::vector<Clients::BackChannel> back_channels() const;
  bool has_back_channel() const;
  // It had one, and it is lost.
  bool lost_back_channel() const { return had_back_channel_ && !has_back_channel(); }
  bool backchannel_fault = false;
  CallbackPathPtr callback_path;  // may be null

 private:
  struct Bound {
    bool carries_callbacks() const {
      return (directions & channel::kBack) != 0 && !callbacks.expired();
    }
    ConnectionId connection = 0;
    std::uint32_t directions = 0;
    CallbackConnection callbacks;
    bool lost_back = false;  // Callbacks failed on it since it was bound.
  };

  ClientRecord& client_;
  const ChannelAttributes fore_;
  const CacheShare share_;
  std::vector<Slot> slots_;
  std::vector<Bound> bound_;  // the oldest first
  // As many as clients make for one server; a ring, `newest_` its last one.
  std::array<ConnectionId, 16> sequenced_{};
  std::size_t newest_ = 0;
  bool had_back_channel_ = false;
};

}  // namespace stag::nfs::state
