// Channel: the client side of a transport, for one server. It carries whole RPC messages, many at
// a time, and hides its connections: a lost one is made again (with back-off and jitter) and calls
// that are waiting are sent again on the new one only (RFC 8166 section 4.6.x, RFC 8267 section 7:
// never retransmit on a live connection).
//
// Thread: a Channel belongs to one Loop; everything happens on its thread. Ownership: it outlives
// every call in progress; close() first, then destroy.
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

// What one connection carries of a Channel's calls. Sizes are bytes of an RPC message.
struct ChannelLimits {
  static constexpr std::uint32_t kUnlimited = ~std::uint32_t{0};

  std::uint32_t calls = kUnlimited;      // in progress at a time; more wait
  std::uint32_t call_max = kUnlimited;   // that goes in a message, record or datagram of its own
  std::uint32_t reply_max = kUnlimited;  // the same of a Reply
  bool chunks = false;                   // longer ones may go by chunks (RFC 8166 3.5)
};

class Channel {
 public:
  // `xid_seed` starts the XIDs; two Channels of one client should not share it.
  explicit Channel(std::uint32_t xid_seed) : next_xid_(xid_seed) {}
  virtual ~Channel() = default;
  Channel(const Channel&) = delete;
  Channel& operator=(const Channel&) = delete;

  // Sends `message` and returns its Reply. Returns only when no memory of the message is exposed to
  // the peer any more, also when cancelled or timed out. The Reply may be borrowed: its reader does
  // not suspend before it is done with it (rpc/message.h). A Reply is any RPC message of type REPLY
  // with the Call's XID; its status is the caller's to read.
  virtual Task<Result<ReplyMessage, CallError>> call(CallMessage& message) = 0;

  // Ends every call in progress with Reason::Shutdown and the connection with them; later calls
  // fail. Completes when all is quiet.
  virtual Task<void> close() = 0;

  // Serves Calls that the server sends on this connection (RFC 8167, RFC 8881 2.10.3.1). `service`
  // outlives the Channel. Set before the first call. Without one such Calls are dropped.
  virtual void serve_reverse(Service& service) = 0;

  // Of the connection that is there, as far as it is known: the server's grants change `calls` with
  // every Reply. nullopt: there is none.
  virtual std::optional<ChannelLimits> limits() const { return ChannelLimits{}; }

  virtual Loop& loop() = 0;
  virtual TransportKind kind() const = 0;
  // The server, in words: "rdma 127.0.0.1:20049".
  virtual std::string where() const = 0;

  // XIDs are unique among the calls in progress on this Channel, whichever Client makes them
  // (RFC 5531 section 9).
  std::uint32_t next_xid() { return next_xid_++; }

 private:
  std::uint32_t next_xid_;
};

// Makes Channels of one transport on one loop, with one set of options.
class Connector {
 public:
  virtual ~Connector() = default;
  // The Channels' loop, where connect() is called.
  virtual Loop& loop() = 0;
  // Resolves when the first connection is up, so that a wrong address is an error here and not at
  // the first call.
  virtual Task<Result<std::unique_ptr<Channel>, CallError>> connect(Address server,
                                                                    CancelToken cancel) = 0;
};

}  // namespace stag::rpc
