// The passive side: TCP connections become iWARP connections.
#pragma once

#include <list>
#include <memory>
#include <optional>

#include "base/brief_mutex.h"
#include "fabric/fabric.h"
#include "fabric/iwarp/iwarp_options.h"
#include "fabric/iwarp/mpa_setup.h"
#include "net/connection_limits.h"
#include "net/listener.h"

namespace stag::fabric {

class IwarpListener final : public Listener {
 public:
  static std::unique_ptr<Listener> open(std::shared_ptr<const IwarpOptions> options,
                                        net::EpollLoop& loop,
                                        std::vector<net::EpollLoop*> accepting,
                                        net::TcpListener tcp, ListenOptions listen,
                                        Acceptor& acceptor);
  ~IwarpListener() override;
  Address local_address() const override { return tcp_.local(); }
  void limit_connections(std::uint32_t all, std::uint32_t per_peer) override {
    places_->change(all, per_peer);
  }

 private:
  struct Peer;
  // What connections on their way to another loop still need when the listener goes: whether it
  // has. Held while one is delivered, so that the acceptor is not called after the listener's end.
  struct Gate {
    BriefMutex mutex;
    bool closed = false;
  };

  IwarpListener(std::shared_ptr<const IwarpOptions> options, net::EpollLoop& loop,
                std::vector<net::EpollLoop*> accepting, net::TcpListener tcp, ListenOptions listen,
                Acceptor& acceptor);
  void on_accept(net::AcceptedSocket accepted);
  Result<net::ConnectionLimits::Place, Reason> take_place(const Address& peer);
  void drop_oldest();
  void on_request(Peer& peer);
  void reject(Peer& peer, const iwarp::MpaFrame& request);
  void deliver(IwarpSetup setup);

  std::shared_ptr<const IwarpOptions> options_;
  net::EpollLoop& loop_;
  const std::vector<net::EpollLoop*> accepting_;
  net::TcpListener tcp_;
  ListenOptions listen_;
  Acceptor& acceptor_;
  std::list<Peer> half_open_;  // the oldest first
  std::size_t next_loop_ = 0;
  std::shared_ptr<net::ConnectionLimits> places_;
  std::shared_ptr<Gate> gate_;
};

}  // namespace stag::fabric
