// The fabric's end of a connection to a peer that does nothing.
#pragma once

#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "fabric/fabric.h"

namespace stag::testing {

// What a connection was asked to do; outlives it.
struct Seen {
  std::optional<Reason> closed;
  int sends = 0;
  std::vector<fabric::Token> reads;
};

// A connection on which nothing that is posted ends, unless the test says so.
class StuckConnection final : public fabric::Connection {
 public:
  StuckConnection(Loop& loop, Seen& seen) : loop_(loop), seen_(seen) {}

  void start(fabric::Events& events) override { events_ = &events; }
  void close(Reason reason) override {
    if (seen_.closed) return;
    seen_.closed = reason;
    loop_.post([this, reason] { events_->on_disconnect(reason); });
  }
  Loop& loop() override { return loop_; }
  const fabric::Parameters& parameters() const override { return parameters_; }
  Bytes peer_private_data() const override { return {}; }
  Address peer_address() const override { return {"peer", 1}; }
  Address local_address() const override { return {"here", 2}; }
  const fabric::Traffic& traffic() const override { return traffic_; }
  std::uint64_t progress_mark() const override { return 0; }
  void add_receive_credit(fabric::ReceiveCredit) override {}
  Result<fabric::RemoteMemory, Reason> expose_source(Bytes) override {
    return Failure{Reason::RegistrationsExhausted};
  }
  Result<fabric::RemoteMemory, Reason> expose_sink(MutableBytes) override {
    return Failure{Reason::RegistrationsExhausted};
  }
  fabric::Revocation revoke(std::uint32_t) override { return fabric::Revocation::Done; }
  fabric::Revocation abandon(std::uint32_t) override { return fabric::Revocation::Done; }
  void send(Rope, std::optional<std::uint32_t>, fabric::Flow, fabric::Token) override {
    ++seen_.sends;
  }
  void write(Rope, fabric::RemoteMemory, fabric::Flow, fabric::Token) override {}
  void read(fabric::RemoteMemory, MutableBytes, fabric::Flow, fabric::Token token) override {
    seen_.reads.push_back(token);
  }

  void end(fabric::Token token, Reason outcome = Reason::None) { events_->on_done(token, outcome); }
  void arrive(Buffer message) { events_->on_receive(std::move(message), std::nullopt); }

 private:
  Loop& loop_;
  Seen& seen_;
  fabric::Events* events_ = nullptr;
  fabric::Parameters parameters_{.outbound_reads = 8,
                                 .inbound_reads = 8,
                                 .max_registration = 1 << 20,
                                 .remote_invalidation = true};
  fabric::Traffic traffic_;
};

}  // namespace stag::testing
