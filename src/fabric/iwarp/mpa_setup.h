// MPA connection set-up on a TCP socket: the active side as a Task, the passive side as an object
// of its listener.
#pragma once

#include <array>
#include <functional>
#include <memory>

#include "fabric/fabric.h"
#include "fabric/iwarp/iwarp_connection.h"
#include "iwarp/mpa.h"
#include "net/loop.h"
#include "net/socket.h"

namespace stag::fabric {

iwarp::MpaOptions mpa_options(const IwarpOptions& options, const ConnectOptions& wishes);

// The ULP's part of an MPA frame's private data; the IRD and ORD words take the rest.
inline constexpr std::size_t kMostPrivateData = iwarp::kMaxPrivateData - iwarp::kDepthsSize;

// Connects, asks, and judges the answer. RFC 5044 7.1.2, RFC 6581 section 9.
Task<Result<IwarpSetup, Reason>> initiate(std::shared_ptr<const IwarpOptions> options,
                                          net::EpollLoop& loop, Address to, ConnectOptions wishes,
                                          CancelToken cancel);

// An accepted socket whose MPA Request is not complete yet. Never reads a byte beyond the Request.
class PassiveSetup {
 public:
  // Called once, from a turn of the loop; may destroy the setup. None: the Request is complete.
  using OnEnd = UniqueFunction<void(Reason)>;

  explicit PassiveSetup(net::TcpSocket socket) : socket_(std::move(socket)) {}
  PassiveSetup(const PassiveSetup&) = delete;
  PassiveSetup& operator=(const PassiveSetup&) = delete;

  void start(Duration limit, OnEnd on_end);
  // The frame of a complete Request; its private data lies in this object.
  Result<iwarp::MpaFrame, Reason> request() const;
  // Sends an answer; false when the socket does not take it.
  bool answer(const iwarp::MpaFrame& frame);
  net::TcpSocket& socket() { return socket_; }

 private:
  void on_readable();
  void end(Reason reason);

  net::TcpSocket socket_;
  std::array<std::byte, iwarp::kMaxMpaFrame> buffer_;
  std::size_t have_ = 0;
  Timer limit_;
  OnEnd on_end_;
};

}  // namespace stag::fabric
