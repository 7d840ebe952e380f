// What goes wrong on a SimFabric, and when: only what RDMA permits. A reliable fabric never loses,
// repeats or reorders one message of a flow; it loses connections.
#pragma once

#include <cstdint>
#include <optional>

#include "base/loop.h"
#include "fabric/sim/random.h"

namespace stag::fabric {

// Counts are of the whole fabric and start at 1; 0 means never. A "step" is anything that travels:
// connection requests and answers, messages, Read Responses, acknowledgements. Kill at each step of
// a run in turn, and every place where a connection can die has been tried; at an
// acknowledgement's step the peer has the message and the sender hears of a loss.
struct Faults {
  std::uint64_t kill_at_step = 0;      // the connection is lost instead of this step
  std::uint32_t kill_permille = 0;     // every step is such a step by this chance
  std::optional<Duration> kill_after;  // from the plan's beginning: all connections are lost

  std::uint64_t fail_send = 0;    // the nth Send ends in an error, which ends its connection
  std::uint64_t fail_write = 0;   // the nth RDMA Write
  std::uint64_t fail_read = 0;    // the nth RDMA Read
  std::uint64_t fail_expose = 0;  // the nth registration is refused
  std::uint32_t fail_expose_permille = 0;
  std::uint64_t lose_ack = 0;  // the connection dies instead of the nth acknowledgement

  std::uint32_t refuse_connects = 0;  // the first n connection requests are refused
  std::uint32_t lose_connects = 0;    // the next n are never answered

  Duration max_delay{0};                          // every step takes up to this much longer
  bool reorder_flows = false;                     // messages of different flows leave in any order
  std::uint32_t pending_revocation_permille = 0;  // a revocation takes time by this chance
};

// Faults under way.
class FaultPlan {
 public:
  FaultPlan(const Faults& faults, Random& random) : faults_(faults), random_(&random) {}

  const Faults& faults() const { return faults_; }
  std::uint64_t steps() const { return steps_; }

  bool kills_step() {
    ++steps_;
    return steps_ == faults_.kill_at_step || random_->chance(faults_.kill_permille);
  }
  bool fails_send() { return ++sends_ == faults_.fail_send; }
  bool fails_write() { return ++writes_ == faults_.fail_write; }
  bool fails_read() { return ++reads_ == faults_.fail_read; }
  bool loses_ack() { return ++acks_ == faults_.lose_ack; }
  bool fails_expose() {
    return ++exposes_ == faults_.fail_expose || random_->chance(faults_.fail_expose_permille);
  }
  bool refuses_connect() { return ++connects_ <= faults_.refuse_connects; }
  // Asked after refuses_connect() said no.
  bool loses_connect() const {
    return connects_ <= faults_.refuse_connects + faults_.lose_connects;
  }
  bool revokes_slowly() { return random_->chance(faults_.pending_revocation_permille); }
  Duration delay() {
    return Duration(static_cast<Duration::rep>(
        random_->below(static_cast<std::uint64_t>(faults_.max_delay.count()))));
  }

 private:
  Faults faults_;
  Random* random_;
  std::uint64_t steps_ = 0, sends_ = 0, writes_ = 0, reads_ = 0, acks_ = 0, exposes_ = 0;
  std::uint64_t connects_ = 0;
};

}  // namespace stag::fabric
