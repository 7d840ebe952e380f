// Channel: the client side of a transport, for one server. It carries whole RPC messages, many at a
// time. Where the transport has connections the Channel hides them: it replaces a lost connection
// (with back-off and jitter) and sends the calls in progress again on the new connection only (RFC
// 8267 section 7: a client never retransmits on a live connection). A UDP Channel retransmits.
//
// Thread: a Channel belongs to one Loop and is used on its thread. Ownership: the Channel outlives
// every call in progress; await close(), then destroy it.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "base/address.h"
#include "base/cancel.h"
#include "base/loop.h"
#include "base/result.h"
#include "base/task.h"
#include "rpc/call_error.h"
#include "rpc/message.h"

namespace stag::rpc {

class Service;

// What one connection of a Channel can carry. Sizes are bytes of an RPC message.
struct ChannelLimits {
  static constexpr std::uint32_t kUnlimited = ~std::uint32_t{0};

  std::uint32_t calls = kUnlimited;      // calls in progress at a time; further calls wait
  std::uint32_t call_max = kUnlimited;   // of a Call in one inline message, record or datagram
  std::uint32_t reply_max = kUnlimited;  // of a Reply in one
  bool chunks = false;                   // longer messages go by chunks (RFC 8166 section 3.5)
};

class Channel {
 public:
  // The first XID is `xid_seed`; two Channels of one client should not share it.
  explicit Channel(std::uint32_t xid_seed) : next_xid_(xid_seed) {}
  virtual ~Channel() = default;
  Channel(const Channel&) = delete;
  Channel& operator=(const Channel&) = delete;

  // Sends `message` and yields its Reply: any RPC message of type REPLY with the Call's XID,
  // whatever status it has. The Task ends only when no memory of the message is exposed to the peer
  // any more, also when the call is cancelled or times out. The Reply's bytes may be borrowed: the
  // caller decodes them before it suspends (ReplyMessage).
  virtual Task<Result<ReplyMessage, CallError>> call(CallMessage& message) = 0;

  // Ends every call in progress with Reason::Shutdown and closes the connection; later calls fail.
  // The Task ends when no call is left and the connection is closed.
  virtual Task<void> close() = 0;

  // Serves Calls that the server sends on this connection (RFC 8167, RFC 8881 section 2.10.3.1).
  // Called before the first call(). `service` outlives the Channel. Without a service such Calls
  // are dropped.
  virtual void serve_reverse(Service& service) = 0;

  // The limits of the present connection; the server's credit grants change `calls` with every
  // Reply. nullopt when there is no connection.
  virtual std::optional<ChannelLimits> limits() const { return ChannelLimits{}; }

  // How many connections of this Channel were lost by now: the server of the next one may have been
  // started again, and know nothing of what it had in memory only. Counted before anything arrives
  // on the next connection. Thread: any, until close() (rpc/proxy_channel.h).
  virtual std::uint64_t connections_lost() const { return 0; }

  virtual Loop& loop() = 0;
  virtual TransportKind kind() const = 0;
  // The server, for messages: "rdma 127.0.0.1:20049".
  virtual std::string where() const = 0;

  // The next XID: unique among the calls in progress on this Channel, whichever Client makes them
  // (RFC 5531 section 9).
  std::uint32_t next_xid() { return next_xid_++; }

 private:
  std::uint32_t next_xid_;
};

// Makes Channels of one transport on one loop, with one set of options.
class Connector {
 public:
  virtual ~Connector() = default;
  // The loop that connect() is called on and that the Channels belong to.
  virtual Loop& loop() = 0;
  // Connects to `server`. The Task ends when the first connection is up, so that a wrong address is
  // an error here and not at the first call. The Connector outlives the Channel.
  virtual Task<Result<std::unique_ptr<Channel>, CallError>> connect(Address server,
                                                                    CancelToken cancel) = 0;
};

}  // namespace stag::rpc
