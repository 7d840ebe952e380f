// A port of RDMA devices at which a program listens before it can serve. A client that asks for a
// connection waits, as in the backlog of a socket, until a listener has the port
// (VerbsFabric::adopt()), and is turned down where the port goes without one.
//
// A listener cannot be had from another process, nor beside its own: the kernel takes commands at
// a file of RDMA-CM from nobody but the process that opened it, and RDMA_OPTION_ID_REUSEADDR is
// for ids that do not listen. So a successor listens as soon as its predecessor does not.
#pragma once

#include <memory>

#include "fabric/verbs/verbs_loop.h"
#include "net/socket_address.h"

namespace stag::fabric {

class VerbsPort {
 public:
  // On the thread of a loop, which keeps its credentials (base/loop_credentials.h). `at` is
  // numeric.
  static Result<std::shared_ptr<VerbsPort>, Reason> listen(const VerbsOptions& options,
                                                           const Address& at);
  // Whether a device serves the address, whoever listens there. On such a thread likewise.
  static Result<Ok, Reason> rehearse(const VerbsOptions& options, const Address& at);

  // The one that has the events of all that wait: with it the listener gets them. The kernel
  // would leave their ids where they are if it moved its own to another channel.
  const std::shared_ptr<rdma_event_channel>& channel() const { return id_.channel(); }
  // Once.
  CmId take() { return std::move(id_); }

 private:
  explicit VerbsPort(CmId id) : id_(std::move(id)) {}
  CmId id_;
};

// Has `id`, which is new, listen there.
Result<Ok, Reason> listen_at(const VerbsFunctions& functions, const CmId& id,
                             net::SocketAddress at);

}  // namespace stag::fabric
