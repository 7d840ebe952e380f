// Link: one RDMA connection with its RPC-over-RDMA core, at either end. The one place where
// `rpcrdma` and `fabric` meet: fabric events go into the core, the core's actions become fabric
// operations, {call, item, offset, length} becomes memory. It decides nothing itself.
//
// Requester side: start()/give_up() on PendingCalls (the Channels). Responder side: Calls go to a
// Service, each in a coroutine of its own, which keeps the Link alive when it has to wait; when the
// connection is gone meanwhile its Reply goes nowhere.
//
// Thread: the connection's loop. A Link is shared between its owner and the Calls it serves;
// close() it before letting go of it.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "fabric/fabric.h"
#include "rpc/channel.h"
#include "rpc/observer.h"
#include "rpc/rdma/abandoned_calls.h"
#include "rpc/rdma/options.h"
#include "rpc/rdma/pending_call.h"
#include "rpc/rdma/served_call.h"
#include "rpc/rdma/settling_calls.h"
#include "rpc/service.h"
#include "rpcrdma/connection.h"

namespace stag::rpc::rdma {

class Link;

class LinkOwner {
 public:
  // The connection is gone and every PendingCall on it has ended. The Link may be let go, not
  // destroyed, inside.
  virtual void on_link_down(Link& link, Reason reason) = 0;

 protected:
  ~LinkOwner() = default;
};

// Which side of the connection this is; Calls in the reverse direction change nothing about it.
enum class Side : std::uint8_t { Client, Server };

struct LinkSettings {
  TransportOptions transport;
  Side side = Side::Client;
  std::uint32_t credits_requested = 64;
  std::uint32_t credits_granted = 0;  // 0: no Calls are served yet
  bool reserve_probe_credit = false;
  rpcrdma::PeerQuirks quirks;
  // Whether our properties went to the peer as private data. When not, the defaults are ours.
  bool announced = true;
  bool requests_chunks = true;  // our Calls may have chunks (RFC 8167 5.3)
  bool serves_chunks = true;    // the peer's may
  // Shared with the Calls in progress, which outlive the server.
  std::shared_ptr<ByteBudget> budget;
  TransferStats* transfer_stats = nullptr;
};

// For connections of an end that asks for `requested` credits and grants `granted`. They carry our
// properties as private data (RFC 8797).
fabric::ConnectOptions connection_options(const TransportOptions& options,
                                          const fabric::Fabric& fabric, Side side,
                                          std::uint32_t requested, std::uint32_t granted);

class Link final : public std::enable_shared_from_this<Link>,
                   private fabric::Events,
                   private rpcrdma::Sink,
                   private ServedCallOwner {
 public:
  Link(std::unique_ptr<fabric::Connection> connection, const LinkSettings& settings,
       LinkOwner& owner);
  ~Link();

  // Events begin. `service` may be null; `reverse` becomes Origin::reverse.
  void open(Service* service, std::weak_ptr<rpc::Channel> reverse);
  // The owner lets go: nobody hears of this Link any more.
  void disown() { owner_ = nullptr; }
  // Ends the connection; on_link_down() follows later. Also what the core asks for.
  void close(Reason reason) override;
  bool up() const { return up_ && !ending_; }

  // Sends `call` when there is credit; call.done() resolves, possibly before this returns.
  void start(PendingCall& call);
  // Ends it without waiting for the peer; done() resolves with `reason` as soon as its memory is
  // free.
  void give_up(PendingCall& call, Reason reason);

  // Calls of the peer are served from now on (RFC 8167).
  void serve(Service& service, std::uint32_t credits);

  Loop& loop() { return loop_; }
  const std::string& where() const { return where_; }
  const Address& peer() const { return origin_->peer; }
  // The limits of our Calls.
  ChannelLimits limits() const;
  // Calls on the wire without a Reply.
  std::uint32_t in_flight() const { return core_.requester().in_flight(); }
  // Whether the peer sent or took any bytes since the last time this was asked.
  bool progressed();

 private:
  // Runs what an event asks for. Where memory runs out in the middle of it, the connection ends.
  template <class Work>
  void guarded(Work work) noexcept;
  void on_out_of_memory() noexcept;

  // fabric::Events
  void on_receive(Buffer message, std::optional<std::uint32_t> invalidated) override;
  void on_done(fabric::Token token, Reason outcome) override;
  void on_revoked(std::uint32_t handle) override;
  void on_disconnect(Reason reason) override;

  // rpcrdma::Sink
  void post_receives(std::uint32_t count) override;
  void drop(Reason reason) override;
  void send_error(Buffer message, Reason reason) override;
  Result<rpcrdma::ExposedChunks, Reason> expose(rpcrdma::OutgoingCall& call) override;
  void send_call(rpcrdma::OutgoingCall& call, Bytes header) override;
  void deliver_reply(rpcrdma::OutgoingCall& call, const rpcrdma::ReplyArrival& reply) override;
  void fail_call(rpcrdma::OutgoingCall& call, const rpcrdma::CallFailure& failure) override;
  std::unique_ptr<rpcrdma::IncomingCall> make_call() override;
  bool is_worth_reading(Bytes payload) const override;
  std::uint64_t reply_max(Bytes payload) const override;
  void defer_call(rpcrdma::IncomingCall& call, Bytes payload) override;
  bool start_reads(rpcrdma::IncomingCall& call,
                   std::span<const rpcrdma::ArrivedItem> items) override;
  void read(rpcrdma::IncomingCall& call, std::uint32_t item, std::uint32_t offset,
            const rpcrdma::Segment& from) override;
  Bytes long_call(rpcrdma::IncomingCall& call) override;
  void deliver_call(rpcrdma::IncomingCall& call, const rpcrdma::CallArrival& arrival) override;
  void send_reply(rpcrdma::IncomingCall& call, Bytes header, const rpcrdma::ReplyPlan& plan,
                  std::optional<std::uint32_t> invalidate) override;
  void forget_call(rpcrdma::IncomingCall& call, Reason reason) override;

  // Part of the message that is being received, to be used after on_receive() has returned.
  Buffer kept(Bytes part) const;
  void on_served(ServedCall& call) noexcept override;
  void answer(ServedCall& call);
  void write(ServedCall& call, const rpcrdma::ReplyPlan& plan, const Rope& stream);
  void tell_of_end(Reason reason) noexcept;
  void finish(PendingCall& call, Reason reason, bool connection_lost);
  void settle(PendingCall& call);
  Reason take_back_results(PendingCall& call, const rpcrdma::ReplyArrival& reply);
  void release_memory(PendingCall& call);
  void cut_off(PendingCall& call) noexcept;
  void watch_settling();
  void watch_reads();
  void on_reads_tick();
  void watch_records() noexcept;
  void on_records_tick();

  std::unique_ptr<fabric::Connection> connection_;
  const Buffer* arriving_ = nullptr;  // the message, inside on_receive()
  Loop& loop_;
  const LinkSettings settings_;
  const std::uint32_t receive_size_;  // bytes of the largest message of the peer
  LinkOwner* owner_;
  std::string where_;
  Service* service_ = nullptr;
  Observer* observer_ = nullptr;  // of the server's side, while the connection is up
  std::shared_ptr<Origin> origin_;
  const std::shared_ptr<ByteBudget::Share> budget_;  // null: there is no limit
  rpcrdma::Connection core_;
  SettlingCalls settling_;
  Timer settling_timer_;  // runs since the oldest of them came
  AbandonedCalls abandoned_;
  fabric::Flow next_flow_ = 1;
  std::uint32_t reads_ = 0;          // outstanding
  std::uint32_t reads_at_tick_ = 0;  // of them, when the current interval of reads_timer_ began
  std::uint64_t bytes_at_tick_ = 0;  // that Reads had brought until then
  Timer reads_timer_;
  bool reads_watched_ = false;
  std::uint64_t sends_at_tick_ = 0;  // of the peer, when the current interval of the next one began
  Timer records_timer_;              // runs while there are more records than an idle Link keeps
  bool records_watched_ = false;
  std::uint32_t errors_leaving_ = 0;
  bool up_ = true;
  bool out_of_memory_ = false;  // inside the core: all it is still told is the end
  bool ending_ = false;         // no new call gets anywhere; on_disconnect is on its way
  std::uint64_t progress_mark_ = 0;
};

}  // namespace stag::rpc::rdma
