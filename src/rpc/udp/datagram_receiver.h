// What comes on a UDP socket: some datagrams a turn, so that a flood of them leaves the loop time
// for its connections, and its other senders their share (shares.h); fewer at a time where others
// of the loop wait, for a turn may then take several of the loop's. Where the socket itself fails,
// a pause instead of a turn without end.
#pragma once

#include "base/unique_function.h"
#include "net/loop.h"
#include "net/udp.h"
#include "rpc/udp/options.h"
#include "rpc/udp/shares.h"

namespace stag::rpc::udp {

// One may be told of by the system for each datagram that was sent; so many one after the other
// without a datagram among them are the socket's own.
inline constexpr int kFailuresBeforePause = 8;

// Read one after the other where others of the loop wait.
inline constexpr int kReadBeforeOthers = 8;

// Used and destroyed on the loop's thread.
class DatagramReceiver {
 public:
  // The bytes are gone after the call, which must not destroy the DatagramReceiver.
  using OnDatagram = UniqueFunction<void(Bytes, const net::Datagram&)>;
  using OnFailure = UniqueFunction<void(Reason)>;

  // A datagram that is dropped because its sender has had its share fails with RpcTooManyCalls.
  // Begins at once. The socket outlives it; once that is closed nothing comes any more.
  DatagramReceiver(net::UdpSocket& socket, net::EpollLoop& loop, Duration pause,
                   OnDatagram on_datagram, OnFailure on_failure);

 private:
  void wait();
  void receive() noexcept;
  bool read_some();
  void deliver(Bytes bytes, const net::Datagram& datagram) noexcept;

  net::UdpSocket& socket_;
  net::EpollLoop& loop_;
  Duration pause_;
  OnDatagram on_datagram_;
  OnFailure on_failure_;
  DatagramShares shares_;
  bool in_turn_ = false;
  Timer paused_;
};

}  // namespace stag::rpc::udp
