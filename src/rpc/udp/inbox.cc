#include "rpc/udp/inbox.h"

#include <array>
#include <utility>

#include "base/failure.h"

namespace stag::rpc::udp {

Inbox::Inbox(net::UdpSocket& socket, net::EpollLoop& loop, Duration pause, OnDatagram on_datagram,
             OnFailure on_failure)
    : socket_(socket),
      loop_(loop),
      pause_(pause),
      on_datagram_(std::move(on_datagram)),
      on_failure_(std::move(on_failure)) {
  wait();
}

void Inbox::wait() {
  socket_.when_readable([this] { receive(); });
}

// One that there is no memory for is dropped like one that was lost on its way.
void Inbox::deliver(Bytes bytes, const net::Datagram& datagram) noexcept {
  try {
    on_datagram_(bytes, datagram);
  } catch (...) {
    trace_exception(Reason::RpcHandlerFailed, "udp");
  }
}

void Inbox::receive() {
  // Shared by all of this thread: a datagram is copied out of it before the next one comes.
  thread_local std::array<std::byte, kLongestDatagram + 1> room;
  int failures = 0;
  for (int i = 0; i < kDatagramsPerTurn && !socket_.closed(); ++i) {
    const Result<std::optional<net::Datagram>, Reason> datagram = socket_.try_receive(room);
    if (datagram && !datagram->has_value()) break;
    if (datagram) {
      failures = 0;
      deliver(Bytes(room).first((*datagram)->size), **datagram);
      continue;
    }
    on_failure_(datagram.error());
    // One that is too long is gone, and the next may be fine.
    if (datagram.error() != Reason::DatagramTooLong && ++failures == kFailuresBeforePause) {
      paused_ = loop_.after(pause_, [this] { receive(); });
      return;
    }
  }
  if (!socket_.closed()) wait();
}

}  // namespace stag::rpc::udp
