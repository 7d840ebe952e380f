// What may be chosen about a TCP socket.
#pragma once

namespace stag::net {

struct TcpOptions {
  // Bytes; 0 leaves the size to the system, which tunes it.
  int send_buffer = 0;
  int receive_buffer = 0;
  // Small messages leave at once.
  bool no_delay = true;
};

}  // namespace stag::net
