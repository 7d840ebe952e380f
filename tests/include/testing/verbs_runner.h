// fabric/verbs over the stub, and the loop it stands on, run by the caller's thread.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <utility>

#include "base/task.h"
#include "fabric/verbs/stub/stub_network.h"
#include "fabric/verbs/verbs_fabric.h"
#include "net/loop.h"

namespace stag::testing {

class VerbsRunner {
 public:
  using Adjust = std::function<void(fabric::VerbsFunctions&)>;
  // `adjust` sees the stub's functions before they are used.
  explicit VerbsRunner(fabric::stub::StubOptions device = fabric::stub::rxe_like(),
                       const Adjust& adjust = {})
      : stub({std::move(device)}), fabric(loop, options(adjust)) {}

  // Serves the loop until `task` has ended.
  template <class T>
  T run(Task<T> task) {
    std::optional<T> result;
    loop.post([this, &task, &result] { await(std::move(task), result).detach(); });
    loop.run();
    return *std::move(result);
  }

  // Outlives the loop, and with it all that waits to run there.
  fabric::stub::StubNetwork stub;
  net::EpollLoop loop;
  fabric::VerbsFabric fabric;

 private:
  fabric::VerbsOptions options(const Adjust& adjust) const {
    const auto functions = std::make_shared<fabric::VerbsFunctions>(*stub.functions());
    if (adjust) adjust(*functions);
    fabric::VerbsOptions over;
    over.functions = functions;
    return over;
  }
  template <class T>
  Task<void> await(Task<T> task, std::optional<T>& result) {
    result.emplace(co_await std::move(task));
    loop.stop();
  }
};

}  // namespace stag::testing
