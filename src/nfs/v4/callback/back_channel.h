// The way back to the client of one session (RFC 8881 2.10.3.1), or to a client of version 4.0 (RFC
// 7530 16.33): what the client said about it, its slots, and whether it works. Which connections
// carry a session's, state::Clients knows; to an address of a client, CallbackConnections makes
// them.
//
// Thread: parameters and verdict any; slots and queue the loop of Callbacks.
#pragma once

#include <array>
#include <atomic>
#include <list>
#include <optional>
#include <vector>

#include "base/address.h"
#include "base/brief_mutex.h"
#include "nfs/proto/nfs4.h"
#include "nfs/state/clients.h"
#include "nfs/v4/callback/callback_request.h"

namespace stag::nfs::nfs4 {

// The first credentials of csa_sec_parms or bca_sec_parms that this server can use: AUTH_SYS, or
// AUTH_NONE where nothing else is offered, as Linux takes that for CB_NULL only.
std::optional<rpc::Credentials> usable_credentials(
    const std::vector<v4::callback_sec_parms4>& offered);

// Where a client of version 4.0 listens for callbacks.
struct CallbackAddress {
  Address address;          // numeric
  std::string client;       // the client's own address, whose limits count
  std::uint32_t ident = 0;  // callback_ident
};

class BackChannel final : public state::CallbackPath {
 public:
  // The slots used, of however many the client has.
  static constexpr std::uint32_t kSlots = 16;
  // How many callers may wait for a verdict at the same time.
  static constexpr std::size_t kAskers = 64;
  // Calls take ten seconds at most; what was not heard of for this long never will be.
  static constexpr Duration kForgotten = std::chrono::seconds(30);

  enum class Verdict : std::uint8_t { Unknown, Asking, Works, Fails };

  BackChannel(std::uint32_t minor, std::uint32_t program, rpc::Credentials credentials)
      : minor_(minor), program_(program), credentials_(std::move(credentials)) {}
  // Of a client of version 4.0, which has no sessions: slots only count what is in progress.
  BackChannel(CallbackAddress address, std::uint32_t program, rpc::Credentials credentials)
      : minor_(0),
        address_(std::move(address)),
        open_(true),
        program_(program),
        credentials_(std::move(credentials)) {}

  // The session is made; before this nothing is sent. Takes no memory.
  void open(const state::SessionId& sessionid, const state::ChannelAttributes& attributes) noexcept;
  bool is_open() const { return open_.load(std::memory_order_acquire); }
  const state::SessionId& sessionid() const { return sessionid_; }

  // BACKCHANNEL_CTL. What was found out about the path holds no more.
  void replace(std::uint32_t program, rpc::Credentials credentials);
  // A connection was added: neither.
  void ask_again();
  // The same, of what was found out longer ago than that.
  void ask_again_after(Duration age, TimePoint now);
  Verdict verdict() const;
  // Whether the caller is to ask, and tells by asked() what it found.
  bool begin_asking(std::uint32_t& about, TimePoint now);
  void asked(std::uint32_t about, bool works);
  // What came of a callback, whatever was asked.
  void found(bool works);

  CallbackRequest request() const;
  std::uint32_t minor() const { return minor_; }
  // Of a client of version 4.0, else null.
  const CallbackAddress* address() const { return address_ ? &*address_ : nullptr; }

  // The loop of Callbacks only, from here on.
  struct Slot {
    std::uint32_t sequenceid = 0;  // of the last request that was executed
    bool busy = false;
    TimePoint since{};  // when it was taken last
    // The last that was sent with the next number and not answered, and whether others were.
    struct Doubtful {
      CallbackKey key;
      bool others = false;
    };
    std::optional<Doubtful> doubtful{};
  };
  std::optional<std::uint32_t> take_slot(TimePoint now);
  Slot& slot(std::uint32_t number) { return slots_[number]; }
  std::uint32_t highest_slot() const { return slot_count_ - 1; }
  // Those that wait for a slot. A std::deque takes half a KiB while it is empty.
  std::list<CallbackKey> queue;
  // Those that wait for a verdict.
  std::vector<UniqueFunction<void()>> askers;
  // SEQ_MISORDERED, so often.
  std::uint32_t misordered = 0;
  // It is of no use any more; the client is told in SEQUENCE.
  bool faulty = false;

 private:
  const std::uint32_t minor_;
  const std::optional<CallbackAddress> address_{};
  state::SessionId sessionid_{};
  state::ChannelAttributes attributes_{};
  std::atomic<bool> open_{false};
  mutable BriefMutex mutex_;
  std::uint32_t program_;
  rpc::Credentials credentials_;
  Verdict verdict_ = Verdict::Unknown;
  TimePoint asked_at_{};
  std::uint32_t parameters_ = 0;  // counts changes
  std::uint32_t slot_count_ = kSlots;
  std::vector<Slot> slots_;  // empty until the first is taken: most sessions are never called back
};

}  // namespace stag::nfs::nfs4
