// Writing a batch of FPDUs to a socket.
#pragma once

#include "iwarp/batch.h"
#include "net/socket.h"

namespace stag::fabric {

// One system call's worth; the batch is not empty. What has left is taken off the batch.
net::Transfer write_batch(net::TcpSocket& socket, iwarp::Batch& batch);

}  // namespace stag::fabric
