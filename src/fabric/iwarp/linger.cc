#include "fabric/iwarp/linger.h"

#include <algorithm>
#include <array>
#include <memory>

#include "fabric/iwarp/gather.h"
#include "net/loop.h"

namespace stag::fabric {

net::Transfer write_ranges(net::TcpSocket& socket, std::span<const Bytes> ranges) {
  std::array<iovec, 256> pieces;
  const std::size_t count = std::min(ranges.size(), pieces.size());
  std::transform(ranges.begin(), ranges.begin() + static_cast<std::ptrdiff_t>(count),
                 pieces.begin(), piece_of);
  return socket.try_write(std::span(pieces).first(count));
}

namespace {

constexpr Duration kPatience = std::chrono::seconds(1);
// A peer that goes on sending is not listened to for longer.
constexpr std::size_t kMostDropped = 16 << 20;

class Linger : public std::enable_shared_from_this<Linger> {
 public:
  Linger(net::TcpSocket socket, iwarp::Batch batch, std::shared_ptr<void> place)
      : socket_(std::move(socket)), batch_(std::move(batch)), place_(std::move(place)) {}

  void start() {
    // The owner that waited on the socket before may be gone long before the socket is.
    socket_.ignore_readable();
    socket_.when_writable({});
    // The timer is what keeps this alive.
    limit_ = socket_.loop().after(kPatience, [self = shared_from_this()] { self->end(); });
    write();
  }

 private:
  auto step(void (Linger::*next)()) {
    return [weak = weak_from_this(), next] {
      if (const auto self = weak.lock()) ((*self).*next)();
    };
  }
  void end() {
    socket_.close();
    limit_.cancel();
  }
  void write() {
    while (!batch_.empty()) {
      const net::Transfer transfer = write_batch(socket_, batch_);
      if (transfer.reason != Reason::None) return end();
      if (transfer.drained) return socket_.when_writable(step(&Linger::write));
    }
    socket_.shutdown_write();
    drop();
  }
  void drop() {
    std::array<std::byte, 4096> nowhere;
    const iovec piece{nowhere.data(), nowhere.size()};
    for (;;) {
      const net::Transfer transfer = socket_.try_read(std::span(&piece, 1));
      dropped_ += transfer.bytes;
      if (transfer.reason != Reason::None || dropped_ > kMostDropped) return end();
      if (transfer.drained) return socket_.when_readable(step(&Linger::drop));
    }
  }

  net::TcpSocket socket_;
  iwarp::Batch batch_;
  std::shared_ptr<void> place_;
  std::size_t dropped_ = 0;
  Timer limit_;
};

}  // namespace

void linger(net::TcpSocket socket, iwarp::Batch batch, std::shared_ptr<void> place) {
  if (socket.closed()) return;
  std::make_shared<Linger>(std::move(socket), std::move(batch), std::move(place))->start();
}

}  // namespace stag::fabric
