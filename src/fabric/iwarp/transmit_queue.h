// What a connection has still to send, and in which order: the transmit scheduler.
//
// Whole messages leave one after the other, because two tagged messages must never interleave (RFC
// 5041 section 5.1). Within a flow the order posted is kept. Between flows small messages go first:
// a Send whose Writes are done, then Read Requests as far as the limit of outstanding ones allows,
// then bulk, where Read Responses and the Writes of the flows take turns. A Write longer than
// `write_limit` is cut into several messages, so that a small Reply waits for one of them at most.
// A flow's turn is `turn_limit` bytes: were it one message, all of several large Writes would end
// at the same time, and who waits for them would have nothing to do until then. Sends go first for
// as many bytes, then one bulk message has its turn: a peer whose RDMA Reads were not answered for
// all the Calls that we send would give us up. Records of operations and flows are kept for
// later ones, as many as a full load of Calls needs: a peer that had thousands of segments written
// while others were on their way does not leave them with its connection.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "fabric/fabric.h"
#include "fabric/iwarp/ring.h"
#include "iwarp/rdmap.h"

namespace stag::fabric {

enum class OperationKind : std::uint8_t { Send, Write, Read };

struct Operation {
  OperationKind kind = OperationKind::Send;
  Flow flow = 0;
  Token token = kNoToken;
  Rope bytes;                               // Send, Write
  RemoteMemory remote;                      // Write: the sink, Read: the source
  MutableBytes sink;                        // Read
  std::optional<std::uint32_t> invalidate;  // Send
};

// One message to begin now. An operation whose last message this is not carries kNoToken.
struct Outgoing {
  std::optional<iwarp::ReadRequest> response;  // a Read Response; `operation` means nothing then
  Operation operation;
};

class TransmitQueue {
 public:
  // In bytes of payload.
  explicit TransmitQueue(std::size_t write_limit, std::size_t turn_limit)
      : write_limit_(write_limit), turn_limit_(turn_limit) {}
  ~TransmitQueue();
  TransmitQueue(const TransmitQueue&) = delete;
  TransmitQueue& operator=(const TransmitQueue&) = delete;

  void post(Operation&& operation);
  // Whether a Send of this flow that is posted now would be the next message.
  bool is_next(Flow flow) const { return sends_.head == nullptr && find(flow) == nullptr; }
  // Responses are sent in the order of their requests (RFC 5040 section 5.2.1).
  void respond(const iwarp::ReadRequest& request) { responses_.push(request); }
  std::optional<Outgoing> next(bool may_read);
  // Removes any operation, for a connection that is gone; nothing when none is left.
  std::optional<Operation> drop();
  bool empty() const { return active_.empty() && responses_.empty(); }

 private:
  struct Node {
    Operation operation;
    std::size_t sent = 0;  // bytes of a Write in messages handed out
    Node* next = nullptr;
  };
  struct FlowQueue {
    Flow flow = 0;
    Node* head = nullptr;
    Node* tail = nullptr;
    FlowQueue* next = nullptr;
    std::size_t in_turn = 0;  // bytes of Writes handed out since others had their turn
  };
  struct List {
    FlowQueue* head = nullptr;
    FlowQueue* tail = nullptr;
    void push(FlowQueue* queue);
    void push_front(FlowQueue* queue);
    FlowQueue* pop();
    void remove(FlowQueue* queue);
  };
  // Two for each Reply of 128 Calls in progress: its data and its Send.
  static constexpr std::size_t kMostKept = 256;
  template <class T>
  class Pool {
   public:
    ~Pool() {
      while (free_ != nullptr) std::unique_ptr<T> ended(std::exchange(free_, free_->next));
    }
    std::unique_ptr<T> take();
    void give(T* item);

   private:
    T* free_ = nullptr;
    std::size_t kept_ = 0;
  };

  List& list_of(const FlowQueue& queue);
  FlowQueue* find(Flow flow) const;
  // The head of a flow that is in no list; afterwards the flow is in its list again, or gone.
  Operation take_head(FlowQueue* queue);
  // The next message of the first Write's flow.
  Operation take_part();
  void put_back(FlowQueue* queue);

  const std::size_t write_limit_;
  const std::size_t turn_limit_;
  List sends_, reads_, writes_;  // flows by the kind of their first operation
  Ring<iwarp::ReadRequest> responses_;
  bool responses_turn_ = false;
  std::size_t sends_in_turn_ = 0;  // bytes of Sends handed out while bulk waited
  std::vector<FlowQueue*> active_;
  Pool<Node> nodes_;
  Pool<FlowQueue> flows_;
};

}  // namespace stag::fabric
