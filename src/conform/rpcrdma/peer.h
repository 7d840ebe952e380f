// Peer: an end of a fabric connection that sends whatever bytes it is told to, so that a case
// chooses every word of a message, and sees every word that comes back.
//
// Thread: the fabric's loop. A Peer is closed before it is destroyed: close().
#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/cancel.h"
#include "fabric/fabric.h"
#include "rpcrdma/header.h"
#include "rpcrdma/private_data.h"

namespace stag::conform::rpcrdma {

namespace wire = stag::rpcrdma;

struct PeerOptions {
  std::vector<std::byte> private_data{};
  std::uint32_t receive_size = 1024;  // bytes of the longest message that it takes
  Duration timeout = std::chrono::seconds(10);
  CancelToken cancel{};
};

// What a message was answered with.
struct Answer {
  enum class Kind : std::uint8_t {
    Reply,      // `header` and `payload`
    Error,      // `error`
    Malformed,  // a message that is neither; `detail` says why
    Silence,    // nothing within the time
    Lost,       // the connection is gone
  };
  Kind kind = Kind::Silence;
  std::uint32_t xid = 0;
  wire::ErrorMessage error{};
  wire::Header header{};
  Buffer payload{};
  std::size_t size = 0;  // bytes of the message
  std::optional<std::uint32_t> invalidated{};
  std::string detail{};
  Reason reason = Reason::None;  // of Lost

  std::string text() const;
};

// What memory is filled with that the server may write.
inline constexpr std::byte kUntouched{0xee};

// Memory that the server may reach, and the segments that name it.
struct Exposed {
  std::vector<std::byte> memory;
  wire::Segments segments;
};

class Peer final : private fabric::Events {
 public:
  // Null: no connection; `why` says why.
  static Task<std::unique_ptr<Peer>> connect(fabric::Fabric& fabric, Address server,
                                             PeerOptions options, std::string& why);
  ~Peer();

  void send(Bytes message);
  // The next message, or that none came.
  Task<Answer> next();
  // The next message for this XID; others are passed over.
  Task<Answer> answer_to(std::uint32_t xid);

  // The memory lives until the Peer is closed.
  const Exposed& expose_source(Bytes data, std::vector<std::uint32_t> lengths);
  // `guard` bytes behind the last segment can be written, too, and are not announced.
  const Exposed& expose_sink(std::vector<std::uint32_t> lengths, std::uint32_t guard = 0);

  Bytes private_data() const { return connection_->peer_private_data(); }
  bool lost() const { return lost_; }
  // Awaited before the end.
  Task<void> close();

 private:
  explicit Peer(PeerOptions options) : options_(std::move(options)) {}
  const Exposed& expose(std::vector<std::byte> memory, const std::vector<std::uint32_t>& lengths,
                        bool to_write);
  void wake();
  Task<void> wait();

  void on_receive(Buffer message, std::optional<std::uint32_t> invalidated) override;
  void on_done(fabric::Token, Reason) override {}
  void on_revoked(std::uint32_t) override { wake(); }
  void on_disconnect(Reason reason) override;

  struct Arrived {
    Buffer message;
    std::optional<std::uint32_t> invalidated;
  };

  PeerOptions options_;
  std::unique_ptr<fabric::Connection> connection_;
  std::deque<Exposed> exposed_;
  std::deque<Arrived> arrived_;
  std::shared_ptr<CancelSource> waiting_;
  bool lost_ = false;
  Reason reason_ = Reason::None;
};

// A message that arrived, as an Answer.
Answer read_answer(const Buffer& message);

}  // namespace stag::conform::rpcrdma
