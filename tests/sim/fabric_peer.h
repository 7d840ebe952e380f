// One side of a connection that asks its peer for work and does the peer's, the way RPC-over-RDMA
// uses a fabric: a request exposes memory and names it in a message, the peer reads or writes that
// memory and replies, and all memory is freed the moment the contract allows it. It checks
// everything that the contract of fabric/fabric.h promises about order, data, credit and outcomes.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <vector>

#include "fabric/fabric.h"
#include "fabric/sim/random.h"

namespace stag::testing {

class FabricPeer final : public fabric::Events {
 public:
  // Requests of one side that wait for their replies; each side receives that many requests and
  // replies.
  static constexpr std::uint32_t kWindow = 4;
  static constexpr fabric::ReceiveCredit kCredit{2 * kWindow, 128};

  // `completed` is told of each request that was answered, `ended` once, last.
  FabricPeer(std::unique_ptr<fabric::Connection> connection, fabric::Random& random,
             std::function<void()> completed, std::function<void()> ended);
  ~FabricPeer();

  bool may_ask() const { return !disconnected_ && requests_.size() < kWindow; }
  void ask();
  // Gives up some request that waits for its reply, and some Read under way.
  void give_up_something();
  void close() { connection_->close(Reason::Shutdown); }

 private:
  using Memory = std::vector<std::byte>;
  struct Note {
    bool reply = false;
    bool write = false;  // the peer is to write into the memory, else to read it
    std::uint64_t id = 0;
    std::uint64_t flow = 0;
    std::uint64_t sequence = 0;  // within the flow
    std::uint32_t seed = 0;
    fabric::RemoteMemory memory;
  };
  struct Request {
    bool write = false;
    bool given_up = false;
    std::uint32_t seed = 0;
    fabric::RemoteMemory remote;
    std::unique_ptr<Memory> memory;
  };
  struct Work {
    Note request;
    std::unique_ptr<Memory> memory;
    bool read = false;
  };

  void on_receive(Buffer message, std::optional<std::uint32_t> invalidated) override;
  void on_done(fabric::Token token, Reason outcome) override;
  void on_revoked(std::uint32_t handle) override;
  void on_disconnect(Reason reason) override;

  fabric::Token post(Work work);
  void send(Note note, std::optional<std::uint32_t> invalidate);
  void serve(const Note& note);
  void answer(const Note& request);
  void on_reply(const Note& note, std::optional<std::uint32_t> invalidated);
  void release(std::uint32_t handle, std::unique_ptr<Memory> memory, fabric::Revocation revocation);

  std::unique_ptr<fabric::Connection> connection_;
  fabric::Random& random_;
  std::function<void()> completed_, ended_;
  bool disconnected_ = false;
  std::uint64_t next_id_ = 1;
  fabric::Token next_token_ = 1;
  std::map<std::uint64_t, Request> requests_;
  std::map<fabric::Token, Work> posted_;                       // each ends once
  std::map<std::uint32_t, std::unique_ptr<Memory>> revoking_;  // until on_revoked
  std::map<std::uint64_t, std::uint64_t> sent_, received_;     // sequence numbers by flow
};

}  // namespace stag::testing
