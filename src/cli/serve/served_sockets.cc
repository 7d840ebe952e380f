#include "cli/serve/served_sockets.h"

#include <fcntl.h>

#include <algorithm>
#include <chrono>
#include <iterator>
#include <thread>

#include "net/listener.h"
#include "net/udp.h"

namespace stag::cli {
namespace {

UniqueFd copy_of(const UniqueFd& socket) {
  return UniqueFd(fcntl(socket.fd(), F_DUPFD_CLOEXEC, 0));
}

Result<UniqueFd, Reason> socket_at(net::SocketUse use, const Address& at) {
  return use == net::SocketUse::Stream ? net::listening_socket(at) : net::bound_datagram_socket(at);
}

}  // namespace

void ServedSockets::inherit(std::vector<UniqueFd> sockets) {
  std::ranges::move(sockets, std::back_inserter(inherited_));
}

Result<ServedSockets::Sockets::iterator, Reason> ServedSockets::find(net::SocketUse use,
                                                                     const Address& at) {
  const auto wanted = net::resolve_blocking(at);
  if (!wanted) return Failure{wanted.error()};
  const auto fits = [&](const UniqueFd& each) {
    return net::serves_at(each.fd(), use, wanted->front());
  };
  const auto claimed = std::ranges::find_if(claimed_, fits);
  const auto passed = std::ranges::find_if(inherited_, fits);
  if (passed == inherited_.end()) return claimed;
  UniqueFd socket = std::move(*passed);
  // The service manager may have one twice: from its own unit, and from keep().
  std::erase_if(inherited_, [&](const UniqueFd& each) { return !each || fits(each); });
  if (claimed != claimed_.end()) return claimed;
  return claimed_.insert(claimed, std::move(socket));
}

Result<Ok, Reason> ServedSockets::claim(net::SocketUse use, const Address& at) {
  const auto claimed = find(use, at);
  if (!claimed) return Failure{claimed.error()};
  return Ok{};
}

Result<Ok, Reason> ServedSockets::reserve(net::SocketUse use, const Address& at) {
  if (at.port == 0) return Ok{};
  const auto claimed = find(use, at);
  if (!claimed) return Failure{claimed.error()};
  if (*claimed != claimed_.end()) return Ok{};
  auto made = socket_at(use, at);
  if (made) {
    claimed_.push_back(*std::move(made));
    return Ok{};
  }
  if (made.error() != Reason::AddressInUse) return Failure{made.error()};
  const auto wanted = net::resolve_blocking(at);
  const auto is_in_the_way = [&](const UniqueFd& each) {
    return net::is_in_the_way(each.fd(), use, wanted->front());
  };
  if (wanted && std::ranges::any_of(inherited_, is_in_the_way)) return Ok{};
  return Failure{made.error()};
}

std::vector<std::string> ServedSockets::close_unclaimed() {
  std::vector<std::string> addresses;
  for (const UniqueFd& each : inherited_)
    addresses.push_back(to_string(net::SocketAddress::local_of(each.fd()).address()));
  has_closed_ = has_closed_ || !inherited_.empty();
  inherited_.clear();
  return addresses;
}

Result<UniqueFd, Reason> ServedSockets::make(net::SocketUse use, const Address& at) const {
  // The service manager closes its copies when it gets to it, and the system those of a predecessor
  // that its time limit has ended.
  constexpr Duration kMargin = std::chrono::seconds(5), kPause = std::chrono::milliseconds(2);
  const TimePoint give_up = std::chrono::steady_clock::now() + (has_closed_ ? kMargin : Duration());
  for (;;) {
    auto made = socket_at(use, at);
    if (made || made.error() != Reason::AddressInUse) return made;
    if (std::chrono::steady_clock::now() >= give_up) return made;
    std::this_thread::sleep_for(kPause);
  }
}

Result<UniqueFd, Reason> ServedSockets::open(net::SocketUse use, const Address& at) {
  const auto claimed = find(use, at);
  if (!claimed) return Failure{claimed.error()};
  UniqueFd socket;
  if (*claimed != claimed_.end()) {
    socket = std::move(**claimed);
    claimed_.erase(*claimed);
  } else {
    auto made = make(use, at);
    if (!made) return made;
    socket = *std::move(made);
  }
  UniqueFd used = copy_of(socket);
  if (!used) return Failure{Reason::TooManyOpenFiles};
  const std::lock_guard lock(mutex_);
  opened_.push_back(std::move(socket));
  return used;
}

std::vector<UniqueFd> ServedSockets::copies() const {
  std::vector<UniqueFd> copies;
  const std::lock_guard lock(mutex_);
  for (const UniqueFd& each : opened_) {
    copies.push_back(copy_of(each));
    if (!copies.back()) return {};
  }
  return copies;
}

void ServedSockets::close() {
  const std::lock_guard lock(mutex_);
  opened_.clear();
}

}  // namespace stag::cli
