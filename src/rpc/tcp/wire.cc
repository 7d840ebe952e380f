#include "rpc/tcp/wire.h"

#include "net/loop.h"

namespace stag::rpc::tcp {

Loop& SocketWire::loop() const {
  return socket_.loop();
}

}  // namespace stag::rpc::tcp
