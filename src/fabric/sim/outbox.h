// What one side of a connection has posted: every operation until it has ended, and the flows in
// which those that have not left yet wait.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <vector>

#include "base/rope.h"
#include "fabric/fabric.h"
#include "fabric/sim/random.h"

namespace stag::fabric {

enum class SimOperationKind : std::uint8_t { Send, Write, Read };

struct SimOperation {
  SimOperationKind kind = SimOperationKind::Send;
  Flow flow = 0;
  Token token = kNoToken;
  Rope data;                                // Send, Write
  RemoteMemory remote;                      // Write: the sink; Read: the source
  MutableBytes sink;                        // Read
  std::size_t read_size = 0;                // Read: bytes to fetch
  std::optional<std::uint32_t> invalidate;  // Send
  bool departed = false;
};

class Outbox {
 public:
  using Id = std::uint64_t;

  // `queued`: it waits in its flow; otherwise it only waits to be failed.
  Id post(SimOperation operation, bool queued);
  // The next operation to leave: the oldest one of the flow whose turn it is, or of any flow by
  // chance. A Read goes only when `may_read`, and holds its flow up until then.
  std::optional<Id> depart(bool may_read, Random* shuffle);

  // Null when it has ended.
  SimOperation* find(Id id);
  // Ends it.
  std::optional<SimOperation> take(Id id);
  // Ends the oldest operation posted before `limit`.
  std::optional<SimOperation> take_oldest(Id limit);

  // Takes Reads that have not left out of their flows: they wait to be failed.
  void hold_reads();
  Id next_id() const { return next_id_; }
  bool empty() const { return operations_.empty(); }
  // Whether a Send or Write is still under way or waits to leave.
  bool sending() const;
  std::uint32_t outstanding_reads() const { return outstanding_reads_; }

 private:
  struct Lane {
    Flow flow;
    std::deque<Id> waiting;
  };
  void unqueue(Id id, const SimOperation& operation);
  void ended(const SimOperation& operation);

  Id next_id_ = 1;
  std::uint32_t outstanding_reads_ = 0;
  std::map<Id, SimOperation> operations_;
  std::vector<Lane> lanes_;  // flows with something waiting, the next one's turn first
};

}  // namespace stag::fabric
