#include "fabric/verbs/verbs_connect.h"

#include <cerrno>
#include <optional>
#include <vector>

#include "base/completion.h"
#include "base/pause.h"
#include "fabric/verbs/device_addresses.h"
#include "fabric/verbs/verbs_reason.h"
#include "net/socket_address.h"

namespace stag::fabric {
namespace {

// Of one's own ports that RDMA-CM chooses, each at random.
constexpr int kPortsTried = 8;
// Requests to a peer that has a connection of this machine from before: its device ends that one
// with the first request that it turns down.
constexpr int kStaleTried = 5;
constexpr Duration kStalePause = std::chrono::milliseconds(100);
// To a port at which nobody listens: between two servers of which one follows the other there is a
// moment like that.
constexpr int kRefusedTried = 3;
constexpr Duration kRefusedPause = std::chrono::milliseconds(50);
// For RDMA-CM's own steps; the caller's limit is the loop's.
constexpr int kResolveMs = 5000;

// One request to one address. Lives in the coroutine that awaits its outcome.
class ConnectAttempt final : private CmUser {
 public:
  ConnectAttempt(std::shared_ptr<VerbsLoop> loop, const ConnectOptions& options)
      : loop_(std::move(loop)), options_(options) {}
  ~ConnectAttempt() { anchor_->attempt = nullptr; }

  // `from`: none is RDMA-CM's choice.
  void begin(const std::optional<net::SocketAddress>& from, const net::SocketAddress& to) {
    net::SocketAddress source = from.value_or(to), address = to;
    auto id = loop_->make_id(*this);
    if (!id) return end(id.error());
    id_ = *std::move(id);
    sockaddr* const own = from ? source.data() : nullptr;
    if (loop_->functions().resolve_addr(id_.get(), own, address.data(), kResolveMs) != 0)
      end(reason_of_setup(loop_->functions(), nullptr, RDMA_CM_EVENT_ADDR_ERROR, -errno, {}));
  }
  // The first one counts. The coroutine goes on in a later turn, outside of RDMA-CM's events.
  void end(Reason reason) {
    if (std::exchange(ended_, true)) return;
    loop_->loop().post([anchor = anchor_, reason] {
      if (anchor->attempt != nullptr) anchor->attempt->outcome.complete(reason);
    });
  }

  Completion<Reason> outcome;
  std::unique_ptr<VerbsConnection> connection;

 private:
  struct Anchor {
    ConnectAttempt* attempt;
  };

  void on_cm(CmNotice notice) override {
    switch (notice.type) {
      case RDMA_CM_EVENT_ADDR_RESOLVED:
        if (!loop_->allows(id_->verbs)) return end(Reason::VerbsDeviceElsewhere);
        if (loop_->functions().resolve_route(id_.get(), kResolveMs) != 0)
          end(reason_of_device_error(errno));
        return;
      case RDMA_CM_EVENT_ROUTE_RESOLVED:
        return request();
      default:
        end(reason_of_setup(loop_->functions(), id_->verbs, notice.type, notice.status, {}));
    }
  }
  void request() {
    if (ended_) return;
    auto made = VerbsConnection::make(loop_, std::move(id_), true, options_);
    if (!made) return end(made.error());
    connection = *std::move(made);
    const auto asked =
        connection->set_up(options_, nullptr, [this](Reason reason) { end(reason); });
    if (!asked) end(asked.error());
  }

  const std::shared_ptr<VerbsLoop> loop_;
  const ConnectOptions& options_;
  const std::shared_ptr<Anchor> anchor_ = std::make_shared<Anchor>(Anchor{this});
  CmId id_;
  bool ended_ = false;
};

// Whether another address of the host may do better.
bool is_of_the_path(Reason reason) {
  return reason == Reason::HostUnreachable || reason == Reason::VerbsAddressUnserved ||
         reason == Reason::ConnectTimedOut || reason == Reason::ConnectionRefused;
}

// Which requests are made once more to the same address.
class Again {
 public:
  // None: not again.
  std::optional<Duration> pause_after(Reason reason) {
    switch (reason) {
      case Reason::AddressInUse:
        return pause_below(kPortsTried, ports_, Duration::zero());
      case Reason::VerbsConnectionStale:
        return pause_below(kStaleTried, stale_, kStalePause);
      case Reason::ConnectionRefused:
        return pause_below(kRefusedTried, refused_, kRefusedPause);
      default:
        return std::nullopt;
    }
  }

 private:
  static std::optional<Duration> pause_below(int most, int& tried, Duration pause) {
    if (++tried >= most) return std::nullopt;
    return pause;
  }

  int ports_ = 0, stale_ = 0, refused_ = 0;
};

struct Path {
  std::optional<net::SocketAddress> from;
  net::SocketAddress to;
};

// In the order to try them.
std::vector<Path> paths_to(VerbsLoop& loop, const std::vector<net::SocketAddress>& addresses) {
  std::vector<Path> paths;
  for (const net::SocketAddress& to : addresses) {
    if (loop.options().device.empty())
      paths.push_back({std::nullopt, to});
    else
      for (const net::SocketAddress& from : device_addresses(loop, to)) paths.push_back({from, to});
  }
  return paths;
}

}  // namespace

Task<Result<std::unique_ptr<VerbsConnection>, Reason>> verbs_connect(
    std::shared_ptr<VerbsShared> shared, net::EpollLoop& loop, Address address,
    ConnectOptions options, CancelToken cancel) {
  if (cancel.cancelled()) co_return Failure{Reason::Cancelled};
  const TimePoint deadline = loop.now() + options.timeout;
  const auto addresses = co_await net::resolve(loop, std::move(address), options.timeout, cancel);
  if (!addresses) co_return Failure{addresses.error()};
  auto here = VerbsLoop::of(shared, loop);
  if (!here) co_return Failure{here.error()};
  Reason reason = Reason::VerbsDeviceElsewhere;
  const std::vector<Path> paths = paths_to(**here, *addresses);
  Again again;
  for (auto path = paths.begin(); path != paths.end();) {
    {
      ConnectAttempt attempt(*here, options);
      // One that is silent leaves the others time.
      const Timer limit = loop.after((deadline - loop.now()) / (paths.end() - path),
                                     [&attempt] { attempt.end(Reason::ConnectTimedOut); });
      const CancelCallback cancelled(cancel, [&attempt] { attempt.end(Reason::Cancelled); });
      attempt.begin(path->from, path->to);
      reason = co_await attempt.outcome;
      if (reason == Reason::None) co_return std::move(attempt.connection);
    }
    if (loop.now() >= deadline) break;
    const std::optional<Duration> wait = again.pause_after(reason);
    if (wait && deadline - loop.now() > *wait) {
      co_await pause(loop, *wait, cancel);
      if (cancel.cancelled()) co_return Failure{Reason::Cancelled};
      continue;
    }
    if (!is_of_the_path(reason)) break;
    ++path;
  }
  co_return Failure{reason};
}

}  // namespace stag::fabric
