// A peer at the other end of a Link that does nothing of itself: it sends what a test gives it,
// takes what is sent to it, and answers Reads when it is told to.
#pragma once

#include <algorithm>
#include <array>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "fabric/fabric.h"
#include "rpcrdma/header.h"
#include "testing/blob_program.h"
#include "xdr/encoder.h"

namespace stag::rpc::rdma {

// Outlives its connection.
struct SilentPeer {
  Address address;
  fabric::Events* events = nullptr;
  std::optional<Reason> closed;
  std::deque<fabric::Token> reads;
  std::deque<MutableBytes> sinks;  // of all Reads
  int sends = 0;
  std::uint32_t last_xid = 0;  // of what was sent
  fabric::Traffic traffic;
  // Whether memory can be exposed to it, and whether it takes a turn to revoke that. By handle.
  bool exposes = false, revokes_later = false;
  std::array<Bytes, 256> reachable{};
  std::uint32_t max_registration = 1 << 20;  // bytes, as of when its connection begins
  std::uint32_t handles = 0;

  bool reaches(Bytes memory) const {
    return std::any_of(reachable.begin(), reachable.end(), [memory](Bytes bytes) {
      return !bytes.empty() && bytes.data() < memory.data() + memory.size() &&
             memory.data() < bytes.data() + bytes.size();
    });
  }
  void arrive(Buffer message) { events->on_receive(std::move(message), std::nullopt); }
  void end_read(Reason outcome = Reason::None) {
    const fabric::Token token = reads.front();
    reads.pop_front();
    events->on_done(token, outcome);
  }
  void lose_connection() {
    closed = Reason::ConnectionLost;
    reachable = {};
    events->on_disconnect(Reason::ConnectionLost);
  }
};

class SilentConnection final : public fabric::Connection {
 public:
  SilentConnection(Loop& loop, SilentPeer& peer) : loop_(loop), peer_(peer) {}

  void start(fabric::Events& events) override { peer_.events = &events; }
  void close(Reason reason) override {
    if (peer_.closed) return;
    loop_.post([&peer = peer_, reason] {
      peer.reachable = {};
      peer.events->on_disconnect(reason);
    });
    peer_.closed = reason;
  }
  Loop& loop() override { return loop_; }
  const fabric::Parameters& parameters() const override { return parameters_; }
  Bytes peer_private_data() const override { return {}; }
  Address peer_address() const override { return peer_.address; }
  Address local_address() const override { return {"here", 2}; }
  const fabric::Traffic& traffic() const override { return peer_.traffic; }
  std::uint64_t progress_mark() const override { return 0; }
  void add_receive_credit(fabric::ReceiveCredit) override {}
  Result<fabric::RemoteMemory, Reason> expose_source(Bytes memory) override {
    return exposed(memory);
  }
  Result<fabric::RemoteMemory, Reason> expose_sink(MutableBytes memory) override {
    return exposed(memory);
  }
  fabric::Revocation revoke(std::uint32_t handle) override {
    if (!peer_.revokes_later) return freed(handle);
    if (peer_.reachable[handle].empty()) return fabric::Revocation::Done;
    loop_.post([&peer = peer_, handle] {
      if (std::exchange(peer.reachable[handle], {}).empty()) return;
      peer.events->on_revoked(handle);
    });
    return fabric::Revocation::Pending;
  }
  // As one does that keeps a copy for the peer.
  fabric::Revocation abandon(std::uint32_t handle) override {
    static_cast<void>(std::make_unique<std::byte[]>(1));
    return freed(handle);
  }
  void send(Rope message, std::optional<std::uint32_t>, fabric::Flow,
            fabric::Token token) override {
    loop_.post([&peer = peer_, token] { peer.events->on_done(token, Reason::None); });
    peer_.last_xid = load_be<std::uint32_t>(message.pieces().front().data());
    ++peer_.sends;
  }
  void write(Rope, fabric::RemoteMemory, fabric::Flow, fabric::Token) override {}
  void read(fabric::RemoteMemory, MutableBytes sink, fabric::Flow, fabric::Token token) override {
    peer_.sinks.push_back(sink);
    peer_.reads.push_back(token);
  }

 private:
  Result<fabric::RemoteMemory, Reason> exposed(Bytes memory) {
    if (!peer_.exposes) return Failure{Reason::RegistrationsExhausted};
    const std::uint32_t handle = peer_.handles++ % peer_.reachable.size();
    peer_.reachable[handle] = memory;
    return fabric::RemoteMemory{handle, static_cast<std::uint32_t>(memory.size()), 0};
  }
  fabric::Revocation freed(std::uint32_t handle) {
    peer_.reachable[handle] = {};
    return fabric::Revocation::Done;
  }

  Loop& loop_;
  SilentPeer& peer_;
  const fabric::Parameters parameters_{
      .outbound_reads = 8, .inbound_reads = 8, .max_registration = peer_.max_registration};
};

// A NULL Call of a program, the blob program unless told otherwise, with these chunks.
inline Buffer silent_call(std::uint32_t xid, rpcrdma::Header header,
                          std::uint32_t program = testing::kBlobProgram) {
  header.xid = xid;
  header.credits = 16;
  Rope message = Rope::copy_of(rpcrdma::EncodedHeader(header).bytes());
  xdr::Encoder encoder;
  for (const std::uint32_t word : {xid, 0u, 2u, program, 1u, 0u, 0u, 0u, 0u, 0u, 0u, 0u})
    encoder.u32(word);
  message.append(std::move(encoder).finish().rope());
  return message.flatten();
}

}  // namespace stag::rpc::rdma
