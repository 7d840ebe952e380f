// Writing a batch of FPDUs to a socket.
#pragma once

#include "iwarp/batch.h"
#include "net/socket.h"

namespace stag::fabric {

inline iovec piece_of(Bytes bytes) {
  return {const_cast<std::byte*>(bytes.data()), bytes.size()};
}

// Writes as many of the ranges as one system call takes.
net::Transfer write_ranges(net::TcpSocket& socket, std::span<const Bytes> ranges);

// One system call's worth; the batch is not empty. What has left is taken off the batch.
inline net::Transfer write_batch(net::TcpSocket& socket, iwarp::Batch& batch) {
  const std::span<const Bytes> unsent = batch.unsent();
  const net::Transfer transfer = unsent.size() == 1 ? socket.try_write(piece_of(unsent.front()))
                                                    : write_ranges(socket, unsent);
  if (transfer.bytes > 0) batch.sent(transfer.bytes);
  return transfer;
}

}  // namespace stag::fabric
