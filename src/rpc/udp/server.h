// RPC over UDP (RFC 5531 section 5): one datagram is one
// message. Kept for the small programs that clients still ask by UDP (MOUNT, NLM, NSM, rpcbind);
// nothing that moves data belongs here.
//
// The server's side is one socket on one loop. Datagrams are lost, doubled and forged: what is no
// Call is dropped, the number of Calls in progress is bounded, of each address and in all (the
// client asks again), and a Call
// that must not run twice is answered from the replay cache, which rpc::Server keeps for all
// transports.
#pragma once

#include <memory>
#include <vector>

#include "base/network.h"
#include "base/task_group.h"
#include "net/loop.h"
#include "net/udp.h"
#include "rpc/service.h"
#include "rpc/udp/datagram_receiver.h"
#include "rpc/udp/options.h"
#include "rpc/udp/shares.h"

namespace stag::rpc::udp {

// An address that is not the sender's gets no more than this for a small Call, and no more than
// that many times a larger one: what is asked by UDP has short answers.
inline constexpr std::size_t kSmallReply = 512;  // bytes
inline constexpr std::size_t kMostReplyPerCall = 4;

// Thread: made, closed and destroyed on its loop, which runs the Calls too.
class UdpServer {
 public:
  // On a socket that is bound already. `service` and the loop outlive the server.
  static std::unique_ptr<UdpServer> serve(net::EpollLoop& loop, net::UdpSocket socket,
                                          Service& service, const ServerOptions& options = {});
  // After close().
  ~UdpServer();

  // With the real port.
  const Address& local() const { return local_; }

  // From now on Calls may come from these networks only (ServerOptions::allow).
  void allow(std::vector<IpNetwork> networks) { options_.allow = std::move(networks); }
  // Stops listening and waits for the Calls in progress; their Replies are dropped.
  Task<void> close();

 private:
  UdpServer(net::EpollLoop& loop, net::UdpSocket socket, Service& service,
            const ServerOptions& options);
  void on_datagram(Bytes message, const net::Datagram& datagram);
  Task<void> answer(CallShares::Place place, std::shared_ptr<const Origin> origin, Buffer message,
                    net::SocketAddress to, net::SocketAddress from);
  // False: it did not leave, as where it is longer than `most` bytes.
  bool send(const Rope& reply, std::size_t most, const net::SocketAddress& to,
            const net::SocketAddress& from);

  net::EpollLoop& loop_;
  net::UdpSocket socket_;
  Service& service_;
  ServerOptions options_;
  Address local_;
  CallShares shares_;
  TaskGroup tasks_;
  DatagramReceiver receiver_;
};

}  // namespace stag::rpc::udp
