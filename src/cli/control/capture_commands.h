// The command "capture" of the control socket, for `stag capture`: what goes over the server's RDMA
// connections from now on, as pcapng without statistics. Its members "seconds" and "max" (bytes)
// end it, "client" is an address or a network: only those. Each row has a member "bytes", and so
// many bytes, whole blocks, stand behind its line; "frames" and "lost" count up to now. The asker
// answers each row by a line, "more" or "end". The last row has "end": "time", "size" or "asked".
//
// The rows go as fast as they are answered. What does not fit meanwhile into the memory of a
// capture is lost, and that memory is free when its connection ends, however it does.
#pragma once

#include <memory>

#include "cli/control/control_socket.h"
#include "fabric/capture/tap.h"

namespace stag::cli {

// Outlives the ControlSocket that has its command. On the loop of that.
class CaptureCommands {
 public:
  static constexpr std::size_t kMost = 4;                      // at a time
  static constexpr std::size_t kRoom = std::size_t{16} << 20;  // bytes that wait, of each
  static constexpr std::size_t kPiece = 256 << 10;             // bytes behind a row

  explicit CaptureCommands(std::shared_ptr<fabric::capture::Tap> tap, std::size_t room = kRoom)
      : tap_(std::move(tap)), room_(room) {}
  void add_to(ControlCommands& commands);

 private:
  Task<std::string> capture(const ControlRequest& request, ControlReply& reply,
                            const ControlPeer& peer);

  const std::shared_ptr<fabric::capture::Tap> tap_;
  const std::size_t room_;
  std::size_t running_ = 0;
};

}  // namespace stag::cli
