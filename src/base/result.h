// Result<T, E>: a value, or the error that took its place. Errors of peers and of the system are
// reported this way only; no exception of this project crosses a module's border.
#pragma once

#include <utility>
#include <variant>

#include "base/check.h"

namespace stag {

// Failure{error} converts to a Result that holds the error.
template <class E>
struct Failure {
  E error;
};
template <class E>
Failure(E) -> Failure<E>;

// The value of operations that only succeed or fail: Result<Ok, E>.
struct Ok {};

template <class T, class E>
class [[nodiscard]] Result {
 public:
  using Value = T;
  using Error = E;

  // Holds a default T, to be filled in place: a large value is then never moved.
  explicit Result(std::in_place_t) : state_(std::in_place_index<0>) {}
  Result(const T& value) : state_(std::in_place_index<0>, value) {}
  Result(T&& value) : state_(std::in_place_index<0>, std::move(value)) {}
  Result(Failure<E> failure) : state_(std::in_place_index<1>, std::move(failure.error)) {}

  bool ok() const { return state_.index() == 0; }
  explicit operator bool() const { return ok(); }

  // The value. Ends the process when there is none, as error() does when there is a value: the
  // caller checks ok() first.
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
