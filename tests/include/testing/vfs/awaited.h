// An Operation as a Task, for loops that run those.
#pragma once

#include "vfs/operation.h"

namespace stag::testing {

template <class T>
Task<vfs::Outcome<T>> awaited(vfs::Operation<T> operation) {
  co_return co_await std::move(operation);
}

}  // namespace stag::testing
