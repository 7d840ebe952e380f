#include "net/listener.h"

#include <netinet/in.h>
#include <sys/socket.h>

#include <cerrno>
#include <new>
#include <utility>

#include "base/failure.h"
#include "net/loop.h"
#include "net/socket_address.h"
#include "net/system_error.h"

namespace stag::net {
namespace {

// Connections taken in one turn, so that a storm of them leaves the loop time for those it has; and
// while some of those wait.
constexpr int kAcceptsPerTurn = 16;
constexpr int kAcceptsBeforeOthers = 2;

Result<UniqueFd, Reason> bound_socket(const SocketAddress& at, int backlog) {
  UniqueFd fd(::socket(at.family(), SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!fd) return Failure{reason_of_errno(errno)};
  const int on = 1;
  // A restarted server takes its port although old connections linger in TIME_WAIT.
  setsockopt(fd.fd(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  const int off = 0;
  if (at.family() == AF_INET6) setsockopt(fd.fd(), IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
  if (::bind(fd.fd(), at.data(), at.size()) != 0) return Failure{reason_of_errno(errno)};
  if (::listen(fd.fd(), backlog) != 0) return Failure{reason_of_errno(errno)};
  return fd;
}

// Where IPv6 is switched off the wildcard is IPv4's.
Result<UniqueFd, Reason> bound_wildcard(std::uint16_t port, int backlog) {
  auto both = bound_socket(*numeric_address({"::", port}), backlog);
  if (both ||
      (both.error() != Reason::HostUnreachable && both.error() != Reason::AddressNotAvailable))
    return both;
  return bound_socket(*numeric_address({"0.0.0.0", port}), backlog);
}

}  // namespace

Result<UniqueFd, Reason> listening_socket(const Address& at, int backlog) {
  if (at.host.empty()) return bound_wildcard(at.port, backlog);
  const auto addresses = resolve_blocking(at);
  if (!addresses) return Failure{addresses.error()};
  return bound_socket(addresses->front(), backlog);
}

struct TcpListener::State {
  State(Descriptor watched, ListenOptions options)
      : descriptor(std::move(watched)), options(options) {}

  // What waits must not keep the listener alive.
  static Descriptor::Function accept_later(const std::shared_ptr<State>& state) {
    return [weak = std::weak_ptr<State>(state)] {
      if (const auto still = weak.lock()) accept_some(still);
    };
  }
  static void wait(const std::shared_ptr<State>& state) {
    state->descriptor.when_readable(accept_later(state));
  }
  static void accept_some(const std::shared_ptr<State>& state);
  // Whether to go on accepting at once.
  static bool survive(const std::shared_ptr<State>& state, int error);

  Descriptor descriptor;
  ListenOptions options;
  OnAccept on_accept;
  Timer pause;
};

void TcpListener::State::accept_some(const std::shared_ptr<State>& state) {
  for (int i = 0; i < kAcceptsPerTurn; ++i) {
    if (state->descriptor.closed()) return;
    if (i >= kAcceptsBeforeOthers && state->descriptor.crowded()) break;
    SocketAddress peer;
    sockaddr_storage from{};
    socklen_t size = sizeof from;
    UniqueFd fd(accept4(state->descriptor.fd(), reinterpret_cast<sockaddr*>(&from), &size,
                        SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (!fd) {
      if (!survive(state, errno)) return;
      continue;
    }
    peer = SocketAddress(reinterpret_cast<sockaddr*>(&from), size);
    try {
      state->on_accept({std::move(fd), peer.address()});
    } catch (...) {
      trace_exception(Reason::LoopFunctionFailed, "accept");
    }
  }
  if (!state->descriptor.closed()) wait(state);
}

bool TcpListener::State::survive(const std::shared_ptr<State>& state, int error) {
  switch (error) {
    case EAGAIN:
      state->descriptor.mark_unreadable();
      wait(state);
      return false;
    // accept(2): errors of the new connection itself, which is gone; the next may be fine.
    case EINTR:
    case EPERM:
    case EPROTO:
    case ENONET:
    case ENETDOWN:
    case EHOSTDOWN:
    case EOPNOTSUPP:
    case ENOPROTOOPT:
    case ENETUNREACH:
    case EHOSTUNREACH:
    case ECONNABORTED:
      return true;
    default:
      trace(reason_of_errno(error), "accept", "waiting connections are taken when there is room");
      try {
        state->pause = state->descriptor.loop().after(state->options.pause, accept_later(state));
      } catch (const std::bad_alloc&) {
        wait(state);
      }
      return false;
  }
}

Result<TcpListener, Reason> TcpListener::listen(EpollLoop& loop, const Address& at,
                                                ListenOptions options) {
  auto fd = listening_socket(at, options.backlog);
  if (!fd) return Failure{fd.error()};
  return adopt(loop, *std::move(fd), options);
}

Result<TcpListener, Reason> TcpListener::adopt(EpollLoop& loop, UniqueFd listening,
                                               ListenOptions options) {
  auto watched = Descriptor::watch(loop, std::move(listening));
  if (!watched) return Failure{watched.error()};
  return TcpListener(std::make_shared<State>(*std::move(watched), options));
}

TcpListener::TcpListener(std::shared_ptr<State> state) : state_(std::move(state)) {}
TcpListener::TcpListener(TcpListener&&) noexcept = default;
TcpListener& TcpListener::operator=(TcpListener&& other) noexcept {
  std::swap(state_, other.state_);
  return *this;
}

TcpListener::~TcpListener() {
  if (state_ == nullptr) return;
  state_->pause.cancel();
  state_->descriptor.close();
}

void TcpListener::start(OnAccept on_accept) {
  state_->on_accept = std::move(on_accept);
  State::wait(state_);
}

Address TcpListener::local() const {
  return SocketAddress::local_of(state_->descriptor.fd()).address();
}

}  // namespace stag::net
