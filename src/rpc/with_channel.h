// Channels that are used for a while: closed however their use ends.
#pragma once

#include <exception>
#include <memory>
#include <new>
#include <optional>
#include <thread>
#include <utility>

#include "rpc/channel.h"

namespace stag::rpc {

// Between two attempts of what must not fail for want of memory.
inline void wait_for_memory() {
  std::this_thread::yield();
}

namespace detail {
template <class T>
T value_of(const Task<T>&);
}  // namespace detail

using ConnectedChannel = Result<std::unique_ptr<Channel>, CallError>;

// Awaits the Channel that `connecting` yields, runs the Task that `use` makes of it, closes the
// Channel, and yields what the Task has yielded, or the error without a Channel. Throws what the
// Task throws, when the Channel is closed. Where there is no memory for closing it begins that
// again until there is: nobody else has the Channel.
template <class Use>
auto with_channel(Task<ConnectedChannel> connecting, Use use)
    -> Task<Result<decltype(detail::value_of(use(std::declval<Channel&>()))), CallError>> {
  using Value = decltype(detail::value_of(use(std::declval<Channel&>())));
  const ConnectedChannel channel = co_await std::move(connecting);
  if (!channel) co_return Failure{channel.error()};
  std::optional<Value> value;
  std::exception_ptr failure;
  try {
    value.emplace(co_await use(**channel));
  } catch (...) {
    failure = std::current_exception();
  }
  for (bool closed = false; !closed;) {
    try {
      co_await (*channel)->close();
      closed = true;
    } catch (const std::bad_alloc&) {
      wait_for_memory();
    }
  }
  if (failure) std::rethrow_exception(failure);
  co_return *std::move(value);
}

}  // namespace stag::rpc
