// The abstract RDMA operations that RPC-over-RDMA needs (RFC 8166 section 2.3.2): register memory,
// Send, Send With Invalidate, Receive, RDMA Write, RDMA Read, and connections with private data
// (RFC 8797). Providers implement them: fabric/iwarp (software iWARP over TCP), fabric/verbs (RDMA
// hardware), fabric/sim (in process, virtual time).
//
// Thread: a Connection, its Events and everything posted to it belong to one Loop and are used on
// its thread only. Ownership: the owner of a Connection destroys it, never inside one of its Events
// calls (post to the loop instead). Events are never delivered from inside a function the owner
// calls, unless the function says so. Memory: what is exposed, read into, or borrowed by a Rope
// belongs to the fabric until the call that returns it: revoke()/abandon() + on_revoked for exposed
// memory, on_done for everything else.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/address.h"
#include "base/bytes.h"
#include "base/cancel.h"
#include "base/loop.h"
#include "base/reason.h"
#include "base/result.h"
#include "base/rope.h"
#include "base/task.h"

namespace stag::fabric {

inline std::size_t total_size(std::span<const Bytes> parts) {
  std::size_t size = 0;
  for (const Bytes part : parts) size += part.size();
  return size;
}

// A range of registered memory as it is named on the wire: opaque handle (STag, R_key), opaque
// 64-bit offset, length in bytes. Offsets are not zero-based and may be of any value (RFC 8166
// section 3.4.3; RFC 5041 Tagged Offset).
struct RemoteMemory {
  std::uint32_t handle = 0;
  std::uint32_t length = 0;
  std::uint64_t offset = 0;

  friend bool operator==(const RemoteMemory&, const RemoteMemory&) = default;
};

// Names one posted operation in on_done; chosen by the owner. kNoToken: no on_done wanted.
using Token = std::uint64_t;
inline constexpr Token kNoToken = 0;

// Operations of one flow are performed in the order posted: a Send after the RDMA Writes posted
// before it (RFC 8166 4.4.2). Different flows may overtake each other between whole messages, so a
// small Reply waits for no bulk data.
using Flow = std::uint64_t;

// Receives the owner is ready for: how many messages may arrive before it raises the number again,
// and their size. A peer that exceeds either loses the connection.
struct ReceiveCredit {
  std::uint32_t count = 0;  // messages, in all since the connection began minus those delivered
  std::uint32_t size = 0;   // bytes per message
};

enum class Revocation { Done, Pending };

// What both sides agreed on.
struct Parameters {
  std::uint32_t outbound_reads =
      0;  // ORD: RDMA Reads we keep outstanding; further ones wait in the provider
  std::uint32_t inbound_reads = 0;  // IRD: RDMA Reads the peer may keep outstanding at our side
  // Bytes, the longest range one handle may cover; it bounds how long a registration, which is
  // synchronous, keeps the loop from other work.
  std::uint32_t max_registration = 0;
  // Send With Invalidate works both ways: the provider can perform it, and the peer may invalidate
  // every handle that is exposed here.
  bool remote_invalidation = false;
  // The provider can drop what the peer writes into memory that its owner has taken back: abandon()
  // may be called. Where it cannot, such a Write ends the connection, and the owner keeps exposed
  // whatever the peer may still write to.
  bool discards = true;
};

// Counted since the connection began. Payload is what Sends, Writes and Reads carry, without any
// framing.
struct Traffic {
  std::uint64_t sends_out = 0, sends_in = 0;
  std::uint64_t writes_out = 0, write_bytes_out = 0, write_bytes_in = 0;
  std::uint64_t reads_out = 0, read_bytes_in = 0, reads_in = 0, read_bytes_out = 0;
  std::uint64_t payload_bytes_copied =
      0;  // in user space, between socket and final place (tagged payload only)
};

class Events {
 public:
  // A Send arrived. When message.owned() is false its bytes are valid only during this call.
  // `invalidated`: the handle of ours that the peer's Send With Invalidate revoked; that memory is
  // free already.
  virtual void on_receive(Buffer message, std::optional<std::uint32_t> invalidated) = 0;
  // The operation has ended: Reason::None when it succeeded. A Send or Write is done when its bytes
  // are no longer needed, a Read when its data is placed.
  virtual void on_done(Token token, Reason outcome) = 0;
  // A revocation that was Pending is complete; the memory is the owner's again.
  virtual void on_revoked(std::uint32_t handle) = 0;
  // The connection is gone, once, as the last event. Every outstanding operation has had its
  // on_done with a reason before, and all memory is free.
  virtual void on_disconnect(Reason reason) = 0;

 protected:
  ~Events() = default;
};

class Connection {
 public:
  // Closes at once when still open; no event follows. Memory is free when the destructor returns.
  virtual ~Connection() = default;

  // Events begin now (nothing is lost before). Called once.
  virtual void start(Events& events) = 0;
  // Ends the connection in good order: Sends and Writes posted before still leave, within a bounded
  // time; on_disconnect(reason) follows in a later loop turn.
  virtual void close(Reason reason) = 0;

  virtual Loop& loop() = 0;
  virtual const Parameters& parameters() const = 0;
  virtual Bytes peer_private_data() const = 0;
  virtual Address peer_address() const = 0;
  virtual Address local_address() const = 0;
  virtual const Traffic& traffic() const = 0;
  // A number that changes as long as the peer sends anything, or takes what is on its way to it:
  // who finds the same number twice knows that nothing moved in between. May cost a system call.
  virtual std::uint64_t progress_mark() const = 0;

  // Adds `more` to the number of messages that may still arrive; `size` bytes each from now on.
  // Never more at a time than ConnectOptions::receives_max, and never longer than at the beginning.
  virtual void add_receive_credit(ReceiveCredit more) = 0;

  // Lets the peer read `memory` / write into it, and nothing else, under a fresh handle, which is
  // good on this connection only, for a peer that has learned of it by a Send posted afterwards,
  // and as hard to predict as the provider can make it (hardware chooses its own). What the peer
  // has not filled of a sink is undefined afterwards. At most parameters().max_registration bytes.
  // Fails with RegistrationTooLong, with RegistrationsExhausted when the provider's table or limits
  // are full, and on a connection that ends or has ended with the reason for that.
  virtual Result<RemoteMemory, Reason> expose_source(Bytes memory) = 0;
  virtual Result<RemoteMemory, Reason> expose_sink(MutableBytes memory) = 0;

  // Ends the peer's access; a later access by the peer is its error and ends the connection. Done:
  // the memory is free now. Pending: on_revoked(handle) follows. A handle that is unknown (already
  // invalidated by the peer) is Done.
  virtual Revocation revoke(std::uint32_t handle) = 0;
  // Where parameters().discards: the same for a Call that was given up while the peer may still
  // work on it. What it writes is dropped, what it reads is answered from a private copy where the
  // provider can, else the connection closes.
  virtual Revocation abandon(std::uint32_t handle) = 0;

  // Bytes from the start of an exposed sink up to the end of what the peer has written there: what
  // lies behind them it has not. Also of one that the peer has invalidated, until on_receive(),
  // which says so, returns. nullopt where the provider does not know, as no device does.
  virtual std::optional<std::size_t> filled(std::uint32_t) const { return std::nullopt; }

  // Posts operations. They never fail at once: the outcome is on_done's. On a connection that is
  // gone, on_done brings the reason in a later loop turn.
  //
  // `invalidate`: the peer's handle to revoke with this Send (only when
  // parameters().remote_invalidation).
  virtual void send(Rope message, std::optional<std::uint32_t> invalidate, Flow flow,
                    Token token) = 0;
  // The same for a short message in parts, which the provider copies before this returns.
  virtual void send_copy(std::span<const Bytes> parts, std::optional<std::uint32_t> invalidate,
                         Flow flow, Token token) {
    const std::size_t size = total_size(parts);
    Block copy = Block::allocate(size);
    std::byte* to = copy.data();
    for (const Bytes part : parts) to = std::copy(part.begin(), part.end(), to);
    send(Rope(std::move(copy).freeze(size)), invalidate, flow, token);
  }
  // source.size() <= sink.length; places the bytes at sink.offset.
  virtual void write(Rope source, RemoteMemory sink, Flow flow, Token token) = 0;
  // sink.size() <= source.length; fetches the first sink.size() bytes.
  virtual void read(RemoteMemory source, MutableBytes sink, Flow flow, Token token) = 0;
};

// How a connection is asked for and answered.
struct ConnectOptions {
  std::vector<std::byte> private_data;  // at most 252 bytes on iWARP with Linux, 56 on InfiniBand
  // Sent in its place where Parameters::remote_invalidation turns out to be false, which a provider
  // may know only when it has found the device of a connection; nullopt: the same.
  std::optional<std::vector<std::byte>> private_data_without_invalidation{};
  ReceiveCredit receive{1, 4096};  // in force before the peer's first message can arrive
  // Depths of queues that some providers fix when a connection is made. Receives: the credit never
  // exceeds it. Sends: operations the owner posts before earlier ones have ended; more than that
  // wait in the provider.
  std::uint32_t receives_max = 1024;
  std::uint32_t sends_max = 1024;
  std::uint32_t inbound_reads = 32;   // IRD offered
  std::uint32_t outbound_reads = 32;  // ORD wished for
  bool crc = false;                   // iWARP: ask for CRC32C on every FPDU
  Duration timeout = std::chrono::seconds(10);
  // A peer that for this long makes no progress with what it owes - to take bytes of ours, to
  // answer a Read, to end a message that it has begun - loses the connection. However slow,
  // progress is progress, unless it is too little to be of use (fabric/stall_watch.h). Zero:
  // never.
  Duration stall_limit{0};

  // What the peer is sent on a connection that has `parameters`.
  const std::vector<std::byte>& private_data_for(const Parameters& parameters) const {
    const bool other = private_data_without_invalidation && !parameters.remote_invalidation;
    return other ? *private_data_without_invalidation : private_data;
  }
  // Bytes of the longer one.
  std::size_t private_data_size() const {
    const bool other = private_data_without_invalidation.has_value();
    return std::max(private_data.size(), other ? private_data_without_invalidation->size() : 0);
  }
};

struct ConnectRequest {
  Address peer;
  Address local;
  Bytes private_data;
};

class Acceptor {
 public:
  // A peer asks to connect: the answer's private data and receive credit, or the reason why not. On
  // the listener's loop.
  virtual Result<ConnectOptions, Reason> on_connect_request(const ConnectRequest& request) = 0;
  // A connection is up. On the connection's own loop. The passive side sends nothing before the
  // peer's first message; the provider holds back what is posted earlier.
  virtual void on_connection(std::unique_ptr<Connection> connection) = 0;

 protected:
  ~Acceptor() = default;
};

class Listener {
 public:
  // Stops listening; connections that are up live on.
  virtual ~Listener() = default;
  virtual Address local_address() const = 0;  // with the real port when 0 was asked for
  // Replaces ListenOptions::max_connections and max_connections_per_peer for connections that come
  // from now on; those that are there stay.
  virtual void limit_connections(std::uint32_t all, std::uint32_t per_peer) = 0;
};

struct ListenOptions {
  std::uint32_t max_connections = 16384;
  // From one address, so that one host cannot take all; 0: a quarter of all, but at least a few.
  // The peers of fabric/sim have no such limit.
  std::uint32_t max_connections_per_peer = 0;
  Duration setup_timeout =
      std::chrono::seconds(5);  // for a peer's connection request to be complete
};

// What a provider has on one loop: connections are made from it, and listeners stand on it. Those
// that a listener accepts are spread over the loops given to the provider, this one or others.
class Fabric {
 public:
  virtual ~Fabric() = default;
  // Where everything here is called and answered.
  virtual Loop& loop() = 0;
  // The loops that accepted connections belong to, in turn.
  virtual std::vector<Loop*> accepting_loops() = 0;
  // Bytes of private data that a connection request or its answer can carry; more fails it.
  virtual std::size_t max_private_data() const = 0;
  // Resolves when the connection is up (not yet started) or with the reason why not.
  virtual Task<Result<std::unique_ptr<Connection>, Reason>> connect(Address address,
                                                                    ConnectOptions options,
                                                                    CancelToken cancel) = 0;
  // The acceptor outlives the listener and every connection set-up in progress ends with the
  // listener.
  virtual Result<std::unique_ptr<Listener>, Reason> listen(Address address, ListenOptions options,
                                                           Acceptor& acceptor) = 0;
};

}  // namespace stag::fabric
