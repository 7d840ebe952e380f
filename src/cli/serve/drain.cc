#include "cli/serve/drain.h"

#include <utility>

namespace stag::cli {
namespace {

constexpr Duration kLook = std::chrono::milliseconds(1);

}  // namespace

Drain::Drain(Loop& loop, rpc::Server& server, Duration limit, std::function<void()> done)
    : loop_(loop), server_(server), deadline_(loop.now() + limit), done_(std::move(done)) {
  server_.stop_serving();
  // Never from inside the constructor.
  timer_ = loop_.after(Duration::zero(), [this] { look(); });
}

void Drain::look() {
  if (server_.active_calls() == 0 || loop_.now() >= deadline_) return done_();
  timer_ = loop_.after(kLook, [this] { look(); });
}

}  // namespace stag::cli
