#include "rpc/udp/datagram_receiver.h"

#include <array>
#include <utility>

#include "base/failure.h"

namespace stag::rpc::udp {

DatagramReceiver::DatagramReceiver(net::UdpSocket& socket, net::EpollLoop& loop, Duration pause,
                                   OnDatagram on_datagram, OnFailure on_failure)
    : socket_(socket),
      loop_(loop),
      pause_(pause),
      on_datagram_(std::move(on_datagram)),
      on_failure_(std::move(on_failure)) {
  wait();
}

void DatagramReceiver::wait() {
  socket_.when_readable([this] { receive(); });
}

// One that there is no memory for is dropped like one that was lost on its way.
void DatagramReceiver::deliver(Bytes bytes, const net::Datagram& datagram) noexcept {
  try {
    on_datagram_(bytes, datagram);
  } catch (...) {
    trace_exception(Reason::RpcHandlerFailed, "udp");
  }
}

// Whatever fails meanwhile, also for want of memory, the next datagram is heard.
void DatagramReceiver::receive() noexcept {
  if (!std::exchange(in_turn_, true)) shares_.begin_turn();
  bool goes_on = true;
  try {
    goes_on = read_some();
  } catch (...) {
    trace_exception(Reason::RpcHandlerFailed, "udp");
  }
  if (goes_on && !socket_.closed()) wait();
}

// False: the socket itself fails, and there is a pause. Where others of the loop wait the turn may
// not be over yet.
bool DatagramReceiver::read_some() {
  // Shared by all of this thread: a datagram is copied out of it before the next one comes.
  thread_local std::array<std::byte, kLongestDatagram + 1> room;
  int failures = 0;
  bool emptied = false;
  for (int read = 0; shares_.may_read() && !socket_.closed(); ++read) {
    if (read >= kReadBeforeOthers && socket_.crowded()) return true;
    const Result<std::optional<net::Datagram>, Reason> datagram = socket_.try_receive(room);
    if (!datagram) {
      shares_.failed();
      on_failure_(datagram.error());
      // One that is too long is gone, and the next may be fine.
      if (datagram.error() == Reason::DatagramTooLong || ++failures < kFailuresBeforePause)
        continue;
      paused_ = loop_.after(pause_, [this] { receive(); });
      return false;
    }
    failures = 0;
    emptied = !datagram->has_value();
    if (emptied) break;
    if (shares_.serves([&] { return (*datagram)->from.address().host; }))
      deliver(Bytes(room).first((*datagram)->size), **datagram);
    else
      on_failure_(Reason::RpcTooManyCalls);
  }
  in_turn_ = false;
  shares_.end_turn(emptied);
  return true;
}

}  // namespace stag::rpc::udp
