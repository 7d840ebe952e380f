// RPC over UDP: the client's side. A Call is sent again, with its XID, each time its patience runs
// out, which doubles from time to time (RFC 5531 section 5: over UDP the client cares for
// retransmission itself). Replies are taken from the server's address only, and matched by XID.
#pragma once

#include <optional>
#include <vector>

#include "base/completion.h"
#include "net/loop.h"
#include "net/udp.h"
#include "rpc/channel.h"
#include "rpc/udp/datagram_receiver.h"
#include "rpc/udp/options.h"

namespace stag::rpc::udp {

class UdpChannel final : public Channel {
 public:
  // `from`: see net::leave_from().
  UdpChannel(net::EpollLoop& loop, Address server, const ChannelOptions& options,
             std::string from = {});
  // Only after close(), or when it was never opened.
  ~UdpChannel() override;

  // Finds the address and makes the socket; nothing is sent.
  Task<Result<Ok, Reason>> open(CancelToken cancel);

  // Without a deadline it asks for ever. When nobody listens it goes on asking, as the server may
  // be on its way; the time-out's reason is then ConnectionRefused.
  Task<Result<ReplyMessage, CallError>> call(CallMessage& message) override;
  Task<void> close() override;
  // UDP has no connection on which a server could call back.
  void serve_reverse(Service&) override { trace(Reason::RpcNoReverseDirection, where()); }
  std::optional<ChannelLimits> limits() const override {
    return ChannelLimits{.call_max = kLongestDatagram, .reply_max = kLongestDatagram};
  }
  Loop& loop() override { return loop_; }
  TransportKind kind() const override { return TransportKind::Udp; }
  std::string where() const override { return where_; }

 private:
  struct Pending;
  static Result<Buffer, Reason> datagram_of(CallMessage& message);
  // The error of a call that was sent.
  CallError failed(Reason reason) const;
  void transmit(Pending& pending);
  void transmit_again(Pending& pending);
  void expire(Pending& pending);
  void end(Pending& pending, Result<ReplyMessage, CallError> result);
  bool remove(Pending& pending);
  void on_datagram(Bytes message);

  net::EpollLoop& loop_;
  Address server_;
  ChannelOptions options_;
  const std::string from_;
  std::string where_;
  std::optional<net::UdpSocket> socket_;
  std::optional<DatagramReceiver> receiver_;
  std::vector<Pending*> waiting_;  // for their Reply
  std::size_t active_ = 0;         // calls whose coroutine has not returned
  Reason trouble_ = Reason::None;  // what the system said last about the server
  Reason shut_ = Reason::None;
};

// Its Channels do not need it any more.
class UdpConnector final : public Connector {
 public:
  explicit UdpConnector(net::EpollLoop& loop, const ChannelOptions& options = {},
                        std::string from = {})
      : loop_(loop), options_(options), from_(std::move(from)) {}
  Loop& loop() override { return loop_; }
  // `loop` is a net::EpollLoop. That nobody listens is known at the first call only.
  Task<Result<std::unique_ptr<Channel>, CallError>> connect(Address server,
                                                            CancelToken cancel) override;

 private:
  net::EpollLoop& loop_;
  ChannelOptions options_;
  const std::string from_;
};

}  // namespace stag::rpc::udp
