// Operation<T>: the outcome of a FileSystem's operation, now or later (base/eventual.h):
//
//   const Outcome<Attributes> found = co_await store.attributes(caller, handle);
#pragma once

#include <utility>

#include "base/eventual.h"
#include "vfs/status.h"

namespace stag::vfs {

template <class T>
class [[nodiscard]] Operation : public Eventual<Outcome<T>> {
 public:
  Operation(Outcome<T> outcome) : Base(std::move(outcome)) {}
  Operation(Failure<Status> failure) : Base(std::in_place, std::move(failure)) {}
  Operation(T value) : Base(std::in_place, std::move(value)) {}
  Operation(Task<Outcome<T>> task) : Base(std::move(task)) {}

 private:
  using Base = Eventual<Outcome<T>>;
};

}  // namespace stag::vfs
