// TcpChannel: RPC over TCP with record marking (RFC 5531 section 11) as a rpc::Channel
// (rpc/channel.h). Many calls are in flight on one connection. A lost connection is replaced when
// calls wait for it (rpc/reconnector.h); they are sent again on the new one only. One on which the
// server is silent counts as lost (ChannelOptions::probe_after); the time-out of a call ends that
// call alone.
//
// Replies may be as long as the Calls say (ReplyBound), and in any case as StreamLimits has it. A
// longer one ends every call in progress with RpcRecordTooLong: whose it is nobody knows. A server
// that takes no Call of some length ends the connection at it: one of more than 4 MiB ends with
// RpcCallTooLong the second time.
//
// Thread: that of `loop`. Ownership: the TcpChannel owns its connection. Errors:
// CallError::transport with the Reason that the connection was lost or could not be made.
#pragma once

#include <atomic>
#include <memory>

#include "base/task_group.h"
#include "net/loop.h"
#include "rpc/channel.h"
#include "rpc/reconnector.h"
#include "rpc/tcp/options.h"
#include "rpc/tcp/requester.h"
#include "rpc/tcp/responder.h"
#include "rpc/tcp/silence_watch.h"
#include "rpc/tcp/stream.h"

namespace stag::rpc::tcp {

class TcpChannel final : public Channel,
                         private Requester::Owner,
                         private SilenceWatch::Owner,
                         private Reconnector::Owner,
                         private RecordStream::Events {
 public:
  // `loop` outlives the Channel. No connection is made before connect() or the first call. `from`:
  // see net::leave_from().
  TcpChannel(net::EpollLoop& loop, Address server, const ChannelOptions& options,
             std::string from = {});
  // close() was awaited, or the Channel never connected.
  ~TcpChannel() override;

  // Makes one attempt to connect; yields the Reason when it fails.
  Task<Result<Ok, Reason>> connect(CancelToken cancel) { return reconnector_.connect(cancel); }

  Task<Result<ReplyMessage, CallError>> call(CallMessage& message) override {
    return requester_.call(message);
  }
  Task<void> close() override;
  void serve_reverse(Service& service) override;
  std::optional<ChannelLimits> limits() const override {
    if (stream_ == nullptr) return std::nullopt;
    return ChannelLimits{.call_max = oncrpc::kLastFragment - 1, .reply_max = stream_->record_max()};
  }
  std::uint64_t connections_lost() const override {
    return connections_lost_.load(std::memory_order_relaxed);
  }
  Loop& loop() override { return loop_; }
  TransportKind kind() const override { return TransportKind::Tcp; }
  std::string where() const override { return requester_.where(); }

 private:
  void on_stream_wanted() override;
  void on_call_sent(const xdr::Stream& call) noexcept override {
    silence_.on_call_sent(*stream_, call);
    stream_->on_reply_awaited();
  }
  // For both, SilenceWatch and RecordStream.
  bool awaits_reply() const override { return requester_.waiting() > 0; }
  std::uint32_t xid_of_probe() override { return next_xid(); }
  void on_record(Buffer record) override;
  void on_stream_closed(Reason reason) override;

  Task<Result<Ok, Reason>> attempt(CancelToken cancel) override;
  bool wants_connection() const override { return requester_.waiting() > 0; }
  void on_attempt_failed(Reason reason) override { requester_.detach(reason); }
  void on_attempts_ended(Reason reason) override;

  void reconnect() noexcept;
  void end_calls(void (Requester::*end)(Reason) noexcept, Reason reason) noexcept;
  void adopt(net::TcpSocket socket);
  bool is_unanswered(bool by_peer);
  void end_hopeless(Reason end) noexcept;
  void serve_reverse_on(const std::shared_ptr<RecordStream>& stream);

  net::EpollLoop& loop_;
  Address server_;
  ChannelOptions options_;
  const std::string from_;
  Requester requester_;
  std::shared_ptr<Account> account_;  // memory budget of the stream; unlimited at a client
  std::shared_ptr<RecordStream> stream_;
  Service* service_ = nullptr;
  std::shared_ptr<Responder> responder_;
  SilenceWatch silence_;
  Reconnector reconnector_;
  TaskGroup tasks_;
  std::atomic<std::uint64_t> connections_lost_ = 0;
  bool ending_calls_ = false;     // close() waits: the caller of the last call may call it at once
  bool heard_ = false;            // whether any byte of the server ever arrived
  std::uint32_t unanswered_ = 0;  // connections in a row that ended before the first byte
};

// Makes TcpChannels on one loop with one set of options; they do not need it any more.
class TcpConnector final : public Connector {
 public:
  explicit TcpConnector(net::EpollLoop& loop, const ChannelOptions& options = {},
                        std::string from = {})
      : loop_(loop), options_(options), from_(std::move(from)) {}
  Loop& loop() override { return loop_; }
  Task<Result<std::unique_ptr<Channel>, CallError>> connect(Address server,
                                                            CancelToken cancel) override;

 private:
  net::EpollLoop& loop_;
  ChannelOptions options_;
  const std::string from_;
};

}  // namespace stag::rpc::tcp
