// rpc::rdma::Channel: RPC-over-RDMA as a rpc::Channel (rpc/channel.h): one server, one connection
// at a time, which is replaced when it is lost.
//
// A new connection has a new core (RFC 8166 section 3.3.3, RFC 8797): one credit and its own
// thresholds until its first Reply. Calls in progress are sent again there with the same XID and
// new registrations; no Call is sent twice on one connection.
//
// Thread: the loop of the Fabric. Ownership: the Channel owns its connection and the records of its
// calls. Errors: a call ends with a CallError only after the peer can no longer reach its memory.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "base/completion.h"
#include "base/deadlines.h"
#include "base/task_group.h"
#include "fabric/fabric.h"
#include "rpc/channel.h"
#include "rpc/null_call.h"
#include "rpc/rdma/link.h"
#include "rpc/rdma/options.h"
#include "rpc/reconnector.h"

namespace stag::rpc::rdma {

class Channel final : public rpc::Channel, private LinkOwner, private Reconnector::Owner {
 public:
  // `fabric` outlives the Channel. No connection is made before connect() or the first call.
  Channel(fabric::Fabric& fabric, Address server, ChannelOptions options);
  // No call is in progress, and close() was awaited or the Channel never connected.
  ~Channel() override;

  // Makes one attempt to connect; yields the Reason when it fails.
  Task<Result<Ok, Reason>> connect(CancelToken cancel) { return reconnector_.connect(cancel); }

  Task<Result<ReplyMessage, CallError>> call(CallMessage& message) override;
  Task<void> close() override;
  void serve_reverse(Service& service) override;
  std::optional<ChannelLimits> limits() const override;
  std::uint64_t connections_lost() const override {
    return connections_lost_.load(std::memory_order_relaxed);
  }
  Loop& loop() override { return loop_; }
  TransportKind kind() const override { return TransportKind::Rdma; }
  std::string where() const override { return "rdma " + to_string(server_); }

 private:
  // One call, on a Link or between two connections.
  struct Entry;
  struct KeepEntry {
    Channel* channel;
    void operator()(Entry* entry) const { channel->keep(entry); }
  };
  class Active;
  using EntryInUse = std::unique_ptr<Entry, KeepEntry>;

  void on_link_down(Link& link, Reason reason) override;
  static Reason begin_transmission(CallMessage& message);
  EntryInUse entry_for(CallMessage& message);
  void keep(Entry* entry);
  bool connected() const;
  // Waits for a connection; Reason::None when there is one, else why there will be none.
  Task<Reason> connection(Entry& entry);
  void begin(Entry& entry);
  Task<Result<Ok, Reason>> attempt(CancelToken cancel) override;
  bool wants_connection() const override;
  void on_attempt_failed(Reason reason) override;
  bool begins_with_probe() const;
  void begin_with_probe() noexcept;
  void remember_target(const CallMessage& message);
  void on_attempts_ended(Reason reason) override;
  // `announced`: whether the server was told our properties.
  void adopt(std::unique_ptr<fabric::Connection> connection, bool announced);
  void give_up(Entry& entry, Reason reason);
  void wake_waiting(Reason reason);
  bool try_again(Entry& entry);
  bool enlarge(Entry& entry);
  // Whether that has begun now.
  bool watch_health();
  void on_health_tick();
  Task<void> probe(std::shared_ptr<Link> link);
  void end_if_quiet();

  fabric::Fabric& fabric_;
  Loop& loop_;
  const Address server_;
  const ChannelOptions options_;
  Service* reverse_service_ = nullptr;

  std::shared_ptr<Link> link_;
  std::atomic<std::uint64_t> connections_lost_ = 0;
  bool closing_ = false;
  Reconnector reconnector_;
  Reason unreachable_ = Reason::None;  // why the last attempt failed, as long as there is none else
  Deadlines deadlines_;
  std::vector<std::unique_ptr<Entry>> kept_;  // records of ended calls, for the next calls
  std::vector<Entry*> waiting_;               // calls that wait for a connection
  std::uint32_t active_ = 0;                  // calls in progress
  CallTarget last_;                           // the program that a NULL call asks
  Timer health_timer_;
  bool health_watched_ = false;
  std::uint32_t silence_ = 0;     // intervals in a row in which no byte moved
  PendingCall* probe_ = nullptr;  // the health check in progress
  TaskGroup tasks_;               // health checks
  Completion<Ok>* quiet_ = nullptr;
};

// Makes Channels on one fabric with one set of options.
class Connector final : public rpc::Connector {
 public:
  // `fabric` outlives the Connector and its Channels.
  explicit Connector(fabric::Fabric& fabric, ChannelOptions options = {})
      : fabric_(fabric), options_(options) {}

  Loop& loop() override { return fabric_.loop(); }
  Task<Result<std::unique_ptr<rpc::Channel>, CallError>> connect(Address server,
                                                                 CancelToken cancel) override;

 private:
  fabric::Fabric& fabric_;
  ChannelOptions options_;
};

}  // namespace stag::rpc::rdma
