#include "rpc/connection.h"

#include <atomic>

#include "base/check.h"
#include "base/failure.h"

namespace stag::rpc {
namespace {

std::uint64_t next_connection_id() {
  static std::atomic<std::uint64_t> last{0};
  return last.fetch_add(1, std::memory_order_relaxed) + 1;
}

}  // namespace

Connection::Connection() : id_(next_connection_id()) {}

void Connection::end() noexcept {
  down_ = true;
  while (first_ != nullptr) {
    // The function may destroy its Watch, and stop others.
    UniqueFunction<void()> function = std::move(first_->function_);
    first_->stop();
    try {
      function();
    } catch (...) {
      trace_exception(Reason::RpcHandlerFailed, "a watch of a connection");
    }
  }
}

bool Connection::Watch::start(Connection& connection, UniqueFunction<void()> function) {
  STAG_CHECK(connection_ == nullptr);
  if (connection.down_) return false;
  function_ = std::move(function);
  connection_ = &connection;
  link_ = &connection.first_;
  next_ = connection.first_;
  if (next_ != nullptr) next_->link_ = &next_;
  connection.first_ = this;
  return true;
}

void Connection::Watch::stop() {
  if (connection_ == nullptr) return;
  *link_ = next_;
  if (next_ != nullptr) next_->link_ = link_;
  connection_ = nullptr;
  next_ = nullptr;
  link_ = nullptr;
  function_ = nullptr;
}

}  // namespace stag::rpc
