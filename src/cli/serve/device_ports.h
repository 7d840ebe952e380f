// The ports of RDMA devices that a successor is to have (docs/decisions/0056-handing-over.md). No
// listener can be passed, nor listen beside another one: it listens there as soon as its
// predecessor does not any more, long before it serves, so that clients wait instead of being
// refused.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/address.h"
#include "cli/serve/options.h"
#include "endpoint/loops.h"
#include "fabric/verbs/verbs_options.h"

namespace stag::fabric {
class VerbsPort;
}  // namespace stag::fabric

namespace stag::cli {

class DevicePorts {
 public:
  // Of the addresses of `--fabric verbs`. `loops` open the devices, and have the listeners later.
  // `functions`: for tests without a device; null: those of the installed rdma-core.
  DevicePorts(const ServeOptions& options, std::shared_ptr<endpoint::Loops> loops,
              std::shared_ptr<const fabric::VerbsFunctions> functions = nullptr);
  ~DevicePorts();
  const std::shared_ptr<endpoint::Loops>& loops() const { return loops_; }

  // Whether a device serves each address; whose the port is does not matter. The error is one
  // sentence. Blocking: a host name is resolved.
  Result<Ok, std::string> rehearse();
  // Listens where it does not yet, and nobody else does.
  void listen_where_free();
  // The one at `at`, if it listens.
  std::shared_ptr<fabric::VerbsPort> take(const Address& at);

 private:
  struct Port {
    Address wanted;
    Address numeric{};
    bool waits = false;  // for its end elsewhere
    std::shared_ptr<fabric::VerbsPort> listening{};
  };

  fabric::VerbsOptions verbs_;
  const std::shared_ptr<endpoint::Loops> loops_;
  std::vector<Port> ports_;
};

}  // namespace stag::cli
