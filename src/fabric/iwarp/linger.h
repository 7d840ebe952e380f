// The good end of a TCP stream whose connection is gone already: what is left to send leaves, then
// FIN, then the peer's last bytes are read and dropped, so that the system does not answer them
// with a reset that would overtake our Terminate.
#pragma once

#include <memory>

#include "iwarp/batch.h"
#include "net/socket.h"

namespace stag::fabric {

// Takes all over and ends by itself: when the peer closes too, or after a second. The callbacks
// that wait on the socket are dropped. `batch` refers to no memory of others; `place` is given up
// at the end.
void linger(net::TcpSocket socket, iwarp::Batch batch, std::shared_ptr<void> place = nullptr);

}  // namespace stag::fabric
