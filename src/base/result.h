// Result<T, E>: a value, or the reason there is none. The project's only way to report what a peer
// or the system did wrong; nothing throws across a module border.
#pragma once

#include <utility>
#include <variant>

#include "base/check.h"

namespace stag {

template <class E>
struct Failure {
  E error;
};
template <class E>
Failure(E) -> Failure<E>;

// For operations that yield nothing but may fail: Result<Ok, E>.
struct Ok {};

template <class T, class E>
class [[nodiscard]] Result {
 public:
  using Value = T;
  using Error = E;

  // A value to be filled in place: what is large is made once, where its receiver finds it.
  explicit Result(std::in_place_t) : state_(std::in_place_index<0>) {}
  Result(const T& value) : state_(std::in_place_index<0>, value) {}
  Result(T&& value) : state_(std::in_place_index<0>, std::move(value)) {}
  Result(Failure<E> failure) : state_(std::in_place_index<1>, std::move(failure.error)) {}

  bool ok() const { return state_.index() == 0; }
  explicit operator bool() const { return ok(); }

  // Asking for what is not there is a bug of the caller.
  T& value() & { return STAG_CHECK(ok()), *std::get_if<0>(&state_); }
  const T& value() const& { return STAG_CHECK(ok()), *std::get_if<0>(&state_); }
  T&& value() && { return STAG_CHECK(ok()), std::move(*std::get_if<0>(&state_)); }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T&& operator*() && { return std::move(*this).value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }

  const E& error() const { return STAG_CHECK(!ok()), *std::get_if<1>(&state_); }

 private:
  std::variant<T, E> state_;
};

}  // namespace stag
