// The passive side: requests become connections, each on its own loop.
//
// RDMA-CM binds a listener at an address to the device that serves it. When that device is removed
// the listener looks from time to time whether a device serves the address again, the same or
// another one, and listens there.
#pragma once

#include <memory>

#include "fabric/verbs/verbs_connection.h"
#include "fabric/verbs/verbs_loop.h"
#include "fabric/verbs/verbs_port.h"
#include "net/connection_limits.h"
#include "net/socket_address.h"

namespace stag::fabric {

class VerbsListener final : public Listener, private CmUser {
 public:
  // `port`: one that listens at `at`; null: there is none.
  static Result<std::unique_ptr<Listener>, Reason> open(const std::shared_ptr<VerbsShared>& shared,
                                                        net::EpollLoop& loop,
                                                        std::vector<net::EpollLoop*> accepting,
                                                        const Address& at, ListenOptions listen,
                                                        Acceptor& acceptor,
                                                        const std::shared_ptr<VerbsPort>& port);
  ~VerbsListener() override;
  Address local_address() const override { return local_; }
  void limit_connections(std::uint32_t all, std::uint32_t per_peer) override {
    places_->change(all, per_peer);
  }

 private:
  VerbsListener(std::shared_ptr<VerbsShared> shared, std::shared_ptr<VerbsLoop> loop,
                std::vector<net::EpollLoop*> accepting, ListenOptions listen, Acceptor& acceptor);
  Result<Ok, Reason> bind(const Address& at, VerbsPort* port);
  // At at_.
  Result<Ok, Reason> listen();
  // `id` listens.
  Result<Ok, Reason> keep(CmId id);
  void on_cm(CmNotice notice) override;
  void on_removed();
  void try_again_later();
  void try_again();
  void on_request(CmId id, CmNotice notice);

  const std::shared_ptr<VerbsShared> shared_;
  const std::shared_ptr<VerbsLoop> loop_;
  const std::vector<net::EpollLoop*> accepting_;
  const ListenOptions listen_;
  Acceptor& acceptor_;
  const std::shared_ptr<net::ConnectionLimits> places_;
  struct Gate;
  const std::shared_ptr<Gate> gate_;
  CmId id_;  // none while no device serves the address
  net::SocketAddress at_;
  Address local_;
  Reason trouble_ = Reason::None;  // why it does not listen, as it was last told
  Timer again_;
  std::size_t next_loop_ = 0;
};

}  // namespace stag::fabric
