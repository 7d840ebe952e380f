#include "cli/serve/served_sockets.h"

#include <fcntl.h>

#include <algorithm>
#include <iterator>

#include "net/listener.h"
#include "net/udp.h"

namespace stag::cli {
namespace {

net::UniqueFd copy_of(const net::UniqueFd& socket) {
  return net::UniqueFd(fcntl(socket.fd(), F_DUPFD_CLOEXEC, 0));
}

Result<net::UniqueFd, Reason> socket_at(net::SocketUse use, const Address& at) {
  return use == net::SocketUse::Stream ? net::listening_socket(at) : net::bound_datagram_socket(at);
}

}  // namespace

void ServedSockets::inherit(std::vector<net::UniqueFd> sockets) {
  std::ranges::move(sockets, std::back_inserter(inherited_));
}

Result<ServedSockets::Sockets::iterator, Reason> ServedSockets::find(net::SocketUse use,
                                                                     const Address& at) {
  const auto wanted = net::resolve_blocking(at);
  if (!wanted) return Failure{wanted.error()};
  return std::ranges::find_if(inherited_, [&](const net::UniqueFd& each) {
    return net::serves_at(each.fd(), use, wanted->front());
  });
}

Result<Ok, Reason> ServedSockets::reserve(net::SocketUse use, const Address& at) {
  if (at.port == 0) return Ok{};
  const auto fits = find(use, at);
  if (!fits) return Failure{fits.error()};
  if (*fits != inherited_.end()) return Ok{};
  auto made = socket_at(use, at);
  if (!made) return Failure{made.error()};
  inherited_.push_back(*std::move(made));
  return Ok{};
}

Result<net::UniqueFd, Reason> ServedSockets::open(net::SocketUse use, const Address& at) {
  const auto fits = find(use, at);
  if (!fits) return Failure{fits.error()};
  net::UniqueFd socket;
  if (*fits != inherited_.end()) {
    socket = std::move(**fits);
    inherited_.erase(*fits);
  } else {
    auto made = socket_at(use, at);
    if (!made) return made;
    socket = *std::move(made);
  }
  net::UniqueFd used = copy_of(socket);
  if (!used) return Failure{Reason::TooManyOpenFiles};
  const std::lock_guard lock(mutex_);
  opened_.push_back(std::move(socket));
  return used;
}

std::vector<std::string> ServedSockets::drop_unused() {
  std::vector<std::string> addresses;
  const auto address_of = [](const net::UniqueFd& socket) {
    return to_string(net::SocketAddress::local_of(socket.fd()).address());
  };
  for (const net::UniqueFd& each : inherited_) {
    // The service manager may have one twice: from its own unit, and from keep().
    const auto same = [&](const net::UniqueFd& used) {
      return address_of(used) == address_of(each);
    };
    if (std::ranges::none_of(opened_, same)) addresses.push_back(address_of(each));
  }
  inherited_.clear();
  return addresses;
}

std::vector<net::UniqueFd> ServedSockets::copies() const {
  std::vector<net::UniqueFd> copies;
  const std::lock_guard lock(mutex_);
  for (const net::UniqueFd& each : opened_) {
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
