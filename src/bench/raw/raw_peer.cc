#include "bench/raw/raw_peer.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <utility>
#include <vector>

#include "bench/raw/fpdu_blocks.h"
#include "bench/raw/raw_wire.h"

namespace stag::bench {
namespace {

enum class Mode : std::uint32_t { Exchange, StreamToClient, StreamToServer };

// What the measuring side orders from the peer before each measurement; the peer answers it with
// one byte.
struct Order {
  Mode mode;
  std::uint32_t request_bytes;
  std::uint32_t reply_bytes;
  std::uint32_t depth;
  std::uint64_t total_bytes;  // of a stream
  bool fpdus;                 // what a stream's blocks are sent in
};

constexpr std::size_t kBatchBytes = 256 << 10;

template <class T>
bool write_value(Wire& wire, const T& value) {
  return wire.write_all(reinterpret_cast<const std::byte*>(&value), sizeof value);
}
template <class T>
bool read_value(Wire& wire, T& value) {
  return wire.read_all(reinterpret_cast<std::byte*>(&value), sizeof value);
}

// Requests are counted, not looked at; one request whose first byte is 1 ends the exchange.
bool answer_exchange(Wire& wire, const Order& order) {
  std::vector<std::byte> in(std::max<std::size_t>(kBatchBytes, order.request_bytes));
  std::vector<std::byte> out(std::max<std::size_t>(kBatchBytes, order.reply_bytes));
  std::size_t filled = 0;
  while (true) {
    const std::size_t n = wire.read_some(in.data() + filled, in.size() - filled);
    if (n == 0) return false;
    filled += n;
    std::size_t requests = filled / order.request_bytes;
    const std::size_t used = requests * order.request_bytes;
    const bool last = requests > 0 && in[used - order.request_bytes] == std::byte{1};
    while (requests > 0) {
      const std::size_t batch = std::min(requests, out.size() / order.reply_bytes);
      if (!wire.write_all(out.data(), batch * order.reply_bytes)) return false;
      requests -= batch;
    }
    filled -= used;
    std::memmove(in.data(), in.data() + used, filled);
    if (last) return true;
  }
}

bool send_fpdus(Wire& wire, std::size_t block_bytes, std::uint64_t total) {
  FpduBlocks blocks(block_bytes);
  for (std::uint64_t sent = 0; sent < total; sent += block_bytes)
    if (!wire.write_all(blocks.next())) return false;
  return true;
}

bool receive_fpdus(Wire& wire, std::size_t block_bytes, std::uint64_t total) {
  FpduBlocks blocks(block_bytes);
  for (std::uint64_t received = 0; received < total; received += block_bytes)
    if (!wire.read_all(blocks.next())) return false;
  return true;
}

bool send_stream(Wire& wire, std::size_t block_bytes, std::uint64_t total, bool fpdus) {
  if (fpdus) return send_fpdus(wire, block_bytes, total);
  const std::vector<std::byte> block(block_bytes, std::byte{0x5a});
  for (std::uint64_t sent = 0; sent < total; sent += block_bytes)
    if (!wire.write_all(block.data(), block_bytes)) return false;
  return true;
}

bool receive_stream(Wire& wire, std::size_t block_bytes, std::uint64_t total, bool fpdus) {
  if (fpdus) return receive_fpdus(wire, block_bytes, total);
  std::vector<std::byte> block(block_bytes);
  for (std::uint64_t received = 0; received < total; received += block_bytes)
    if (!wire.read_all(block.data(), block_bytes)) return false;
  return true;
}

[[noreturn]] void serve_orders(int socket, std::uint32_t busy_poll_us) {
  Wire wire(socket, busy_poll_us);
  Order order;
  const std::byte done{1};
  while (read_value(wire, order)) {
    bool ok = write_value(wire, done);
    switch (order.mode) {
      case Mode::Exchange:
        ok = ok && answer_exchange(wire, order);
        break;
      case Mode::StreamToClient:
        ok = ok && send_stream(wire, order.reply_bytes, order.total_bytes, order.fpdus);
        break;
      case Mode::StreamToServer:
        ok = ok && receive_stream(wire, order.request_bytes, order.total_bytes, order.fpdus) &&
             write_value(wire, done);
        break;
    }
    if (!ok) break;
  }
  _exit(0);
}

bool give_order(Wire& wire, const Order& order) {
  std::byte ready;
  return write_value(wire, order) && read_value(wire, ready);
}

}  // namespace

Result<RawPeer, std::string> RawPeer::start(std::uint32_t busy_poll_us) {
  const int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof address;
  if (listener < 0 || bind(listener, reinterpret_cast<sockaddr*>(&address), length) != 0 ||
      listen(listener, 1) != 0 ||
      getsockname(listener, reinterpret_cast<sockaddr*>(&address), &length) != 0)
    return Failure{std::string("cannot listen on loopback: ") + std::strerror(errno)};
  const pid_t pid = fork();
  if (pid < 0)
    return Failure{std::string("cannot start the peer process: ") + std::strerror(errno)};
  if (pid == 0) {
    const int accepted = accept(listener, nullptr, nullptr);
    close(listener);
    serve_orders(accepted, busy_poll_us);
  }
  const int connected = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const int status = connect(connected, reinterpret_cast<sockaddr*>(&address), length);
  close(listener);
  RawPeer peer(pid, connected, busy_poll_us);
  if (status != 0)
    return Failure{std::string("cannot connect on loopback: ") + std::strerror(errno)};
  return peer;
}

RawPeer::RawPeer(RawPeer&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)),
      socket_(std::exchange(other.socket_, -1)),
      busy_poll_us_(other.busy_poll_us_) {}

RawPeer::~RawPeer() {
  if (socket_ >= 0) close(socket_);
  if (pid_ > 0) {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
}

namespace {

// Requests under way, answered in their order.
class Pipeline {
 public:
  explicit Pipeline(unsigned depth) : sent_(depth) {}

  void send(std::uint64_t now, std::uint64_t count) {
    for (; count > 0; --count, ++newest_) sent_[newest_ % sent_.size()] = now;
  }
  void answered(std::uint64_t now, std::uint64_t count, Histogram& latency) {
    for (; count > 0; --count, ++oldest_) latency.add(now - sent_[oldest_ % sent_.size()]);
  }
  std::uint64_t in_flight() const { return newest_ - oldest_; }
  std::uint64_t operations() const { return oldest_; }

 private:
  std::vector<std::uint64_t> sent_;
  std::uint64_t oldest_ = 0, newest_ = 0;
};

// False when the connection was lost.
bool exchange_until(std::uint64_t end, Wire& wire, const Order& order, Pipeline& pipeline,
                    Sample& sample) {
  const std::vector<std::byte> requests(order.request_bytes * std::size_t{order.depth});
  std::vector<std::byte> in(std::max<std::size_t>(kBatchBytes, order.reply_bytes));
  pipeline.send(nanoseconds_now(), order.depth);
  if (!wire.write_all(requests.data(), requests.size())) return false;
  std::size_t filled = 0;
  while (pipeline.in_flight() > 0) {
    const std::size_t n = wire.read_some(in.data() + filled, in.size() - filled);
    if (n == 0) return false;
    filled += n;
    const std::size_t replies = filled / order.reply_bytes;
    filled %= order.reply_bytes;
    const std::uint64_t now = nanoseconds_now();
    pipeline.answered(now, replies, sample.latency);
    if (now >= end || replies == 0) continue;
    pipeline.send(now, replies);
    if (!wire.write_all(requests.data(), replies * order.request_bytes)) return false;
  }
  return true;
}

}  // namespace

Sample RawPeer::exchange(std::size_t request_bytes, std::size_t reply_bytes, unsigned depth,
                         double seconds) {
  Wire wire(socket_, busy_poll_us_);
  const Order order{Mode::Exchange,
                    static_cast<std::uint32_t>(request_bytes),
                    static_cast<std::uint32_t>(reply_bytes),
                    depth,
                    0,
                    false};
  if (!give_order(wire, order)) return {};
  Sample sample;
  Pipeline pipeline(depth);
  const Stopwatch watch(pid_);
  const std::uint64_t end = nanoseconds_now() + static_cast<std::uint64_t>(seconds * 1e9);
  if (!exchange_until(end, wire, order, pipeline, sample)) return {};
  const std::uint64_t operations = pipeline.operations();
  const Histogram latency = sample.latency;
  sample = watch.stop(operations, operations * (request_bytes + reply_bytes));
  sample.latency = latency;
  std::vector<std::byte> last(request_bytes), answer(reply_bytes);
  last[0] = std::byte{1};
  if (!wire.write_all(last.data(), last.size()) || !wire.read_all(answer.data(), answer.size()))
    return {};
  return sample;
}

// Whole blocks, for about `seconds` at the speed of the last one of its direction.
std::uint64_t RawPeer::Streams::total(std::size_t block_bytes, double seconds) const {
  const auto wanted = static_cast<std::uint64_t>(seconds * bytes_per_second);
  return std::max<std::uint64_t>(1, wanted / block_bytes) * block_bytes;
}

Sample RawPeer::stream_in(std::size_t block_bytes, double seconds, bool fpdus) {
  Wire wire(socket_, busy_poll_us_);
  const std::uint64_t total = in_.total(block_bytes, seconds);
  const auto block = static_cast<std::uint32_t>(block_bytes);
  Stopwatch watch(pid_);
  if (!give_order(wire, {Mode::StreamToClient, 0, block, 0, total, fpdus}) ||
      !receive_stream(wire, block_bytes, total, fpdus))
    return {};
  return in_.took(watch.stop(total / block_bytes, total));
}

Sample RawPeer::stream_out(std::size_t block_bytes, double seconds, bool fpdus) {
  Wire wire(socket_, busy_poll_us_);
  const std::uint64_t total = out_.total(block_bytes, seconds);
  const auto block = static_cast<std::uint32_t>(block_bytes);
  Stopwatch watch(pid_);
  std::byte done;
  if (!give_order(wire, {Mode::StreamToServer, block, 0, 0, total, fpdus}) ||
      !send_stream(wire, block_bytes, total, fpdus) || !read_value(wire, done))
    return {};
  return out_.took(watch.stop(total / block_bytes, total));
}

}  // namespace stag::bench
