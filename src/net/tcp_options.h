// Options of a TCP socket.
#pragma once

namespace stag::net {

struct TcpOptions {
  // Bytes of the socket buffers (SO_SNDBUF, SO_RCVBUF); 0: the system chooses and adapts the size.
  int send_buffer = 0;
  int receive_buffer = 0;
  // TCP_NODELAY: small messages leave at once.
  bool no_delay = true;
};

}  // namespace stag::net
