// What this server asks of its clients: the delegations that it wants back, what their files are
// like meanwhile (RFC 8881 10.4.3, 10.4.5), and that copies have ended (RFC 7862 16.1).
//
// One loop, `home`, decides what is sent, and when; the Calls themselves run on the loops of their
// connections. A client of version 4.0 is called on a connection that this server makes (decision
// 0042). What is pending is Asked -> Sent -> Answered -> over. Once a second what is open is
// looked at: what could not be sent is sent again, what is over goes.
//
// Thread: recall(), put_off(), wanted_locally(), ask_holder(), tell(), probe() and look_again()
// any, the rest home. The SharedState, home and the loops of all connections outlive it; it
// outlives the Calls.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "base/loop.h"
#include "nfs/state/files.h"
#include "nfs/v4/callback/back_channel.h"
#include "nfs/v4/callback/callback_connections.h"
#include "nfs/v4/callback/recall.h"

namespace stag::nfs::nfs4 {

class SharedState;

class Callbacks {
 public:
  // `connector`, on home, makes the connections to clients of version 4.0; null: these are not
  // called.
  Callbacks(SharedState& shared, Loop& home, rpc::Connector* connector);
  ~Callbacks();
  Callbacks(const Callbacks&) = delete;

  Loop& home() const { return home_; }
  // Whether clients of version 4.0 can be called, too.
  bool connects() const { return connections_.has_value(); }
  // Closes the connections to clients, to which no Call goes any more.
  Task<void> stop();
  void recall(const state::Recall& recall);
  // The client is told to come later with what it has of this export, and so cannot give it back:
  // nothing of that is revoked until it has had time to come again.
  void put_off(state::ClientId of, std::uint32_t export_id);
  // For a lease on this file (vfs/local.h): a program that wants it gets the delegations recalled,
  // and revoked in time. May outlive the Callbacks.
  vfs::LeaseWanted wanted_locally(const state::FileKey& file);
  // What the holder of a write delegation knows of its file; `done` runs once, on home, within a
  // second or two.
  void ask_holder(const state::Recall& delegation, HolderQuestion::Done done);
  // Sends `pending`, unless there is one with this key.
  void tell(const CallbackKey& key, std::unique_ptr<PendingCallback> pending);
  // Finds out whether the client, `of`, answers; `done` runs on home, when verdict() is there.
  void probe(std::shared_ptr<BackChannel> back, state::ClientId of, UniqueFunction<void()> done);

 private:
  struct Pending {
    enum class Phase : std::uint8_t { Asked, Queued, Sent, Answered };
    std::unique_ptr<PendingCallback> what{};
    TimePoint next_try{};
    Phase phase = Phase::Asked;
    std::weak_ptr<BackChannel> queued_at{};
    std::uint32_t tries_in_a_row = 0;
  };
  using PendingMap = std::map<CallbackKey, Pending>;
  // One request on its way.
  struct Sending {
    CallbackKey key;
    std::shared_ptr<BackChannel> back;
    std::uint32_t slot = 0;
    state::ConnectionId connection = 0;
  };
  // What carries it; without a channel, connections_.
  struct Connection {
    std::shared_ptr<rpc::Channel> channel{};
    state::ConnectionId id = 0;
  };
  enum class Next : std::uint8_t { Answered, Ended, AtOnce, Later };
  // Where the thread that hears of local programs finds the Callbacks, while they are there.
  struct Mailbox {
    std::mutex mutex;
    Callbacks* callbacks;
  };
  // A local program waits for a file.
  struct Wanted {
    state::FileKey file;
    TimePoint until;
  };

  template <class Make>
  void begin(const CallbackKey& key, Make make);
  void start_probe(const std::shared_ptr<BackChannel>& back, state::ClientId of);
  void start(const CallbackKey& key, Pending& pending);
  bool start_on(const CallbackKey& key, Pending& pending, const std::shared_ptr<BackChannel>& back);
  bool find_connection(const BackChannel& back, Connection& found) const;
  void send(const Connection& connection, const std::shared_ptr<BackChannel>& back,
            CallbackRequest request, CallbackDone done);
  CallbackRequest request_for(const PendingCallback& what, BackChannel& back,
                              std::uint32_t slot) const;
  void finish(const Sending& sending, CallbackOutcome outcome);
  void proceed(PendingMap::iterator at, Next next);
  Next judge(const Sending& sending, CallbackOutcome& outcome, PendingCallback* what);
  Next judge_answer(const CallbackOutcome& outcome, PendingCallback* what);
  Next judge_sequence(const Sending& sending, v4::nfsstat4 status);
  void serve_queue(BackChannel& back);
  void want(const state::FileKey& file, TimePoint until);
  bool ask_back(const Wanted& wanted);
  void sweep();
  void sweep_pending();
  void arm();
  // What is open may be looked at no more, for there was no memory for a timer.
  void look_again();

  SharedState& shared_;
  Loop& home_;
  std::optional<CallbackConnections> connections_;
  PendingMap pending_;
  const std::shared_ptr<Mailbox> mailbox_;
  std::vector<Wanted> wanted_;
  Timer timer_;
  bool armed_ = false;
  std::atomic<bool> unarmed_{false};  // a timer is due, and there is none
};

}  // namespace stag::nfs::nfs4
