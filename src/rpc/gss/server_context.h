// A security context of the server (RFC 2203 section 5.3.3.1).
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

#include "base/network.h"
#include "gss/mechanism.h"
#include "gss/sequence_window.h"
#include "rpc/authenticator.h"
#include "rpc/gss/awaited_lock.h"

namespace stag::rpc {

struct ServerContext {
  using Handle = std::array<std::byte, 16>;

  ServerContext(std::string of, std::unique_ptr<gss::Context> context, TimePoint now)
      : address(std::move(of)), gss(std::move(context)) {
    used(now);
  }

  std::uint64_t id = 0;
  Handle handle{};
  const std::string address;  // of the client that began it, without port
  // The client whose work it is (Executor::Job::client): the host, with all of its contexts
  // together.
  const void* const client = reinterpret_cast<const void*>(std::uintptr_t{client_at(address)});

  AwaitedLock lock;
  // For the holder of `lock`.
  const std::unique_ptr<gss::Context> gss;
  gss::SequenceWindow window;
  Caller caller;                         // once established; without a flavor
  TimePoint expires = TimePoint::max();  // once established
  bool half_open = false;                // its client has been asked for another token
  std::uint32_t xid = 0;                 // of the Call that brought its last token

  // Any thread.
  std::atomic<bool> established{false};
  void used(TimePoint now) { last_used_.store(now.time_since_epoch().count(), kRelaxed); }
  TimePoint last_used() const { return TimePoint(Duration(last_used_.load(kRelaxed))); }

 private:
  static constexpr auto kRelaxed = std::memory_order_relaxed;
  std::atomic<Duration::rep> last_used_{0};
};

}  // namespace stag::rpc
