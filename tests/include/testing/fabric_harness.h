// A fabric, its loop and a way to run it on the test's thread: what tests stand on that are run on
// several fabrics.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "base/task.h"
#include "fabric/fabric.h"

namespace stag::testing {

class FabricHarness {
 public:
  virtual ~FabricHarness() = default;
  virtual Loop& loop() = 0;
  virtual fabric::Fabric& fabric() = 0;
  // An address to listen on, port 0.
  virtual Address any_address() = 0;
  // Runs the loop until `predicate()` holds; false when that is not to be expected any more.
  virtual bool run_until(const std::function<bool()>& predicate) = 0;
  // Runs the loop until `task` has ended; nothing when it does not.
  template <class T>
  std::optional<T> run(Task<T> task) {
    std::optional<T> result;
    detach(keep(std::move(task), result));
    run_until([&result] { return result.has_value(); });
    return result;
  }
  // Runs the loop long enough for anything under way to happen. Only to show that something does
  // not happen: a slow machine can make such a test too kind, never fail it.
  virtual void settle() = 0;
  // Whether the provider is told of each Write and Read of the peer.
  virtual bool counts_the_peers_accesses() const { return true; }
  // Whether a Read of memory that is exposed as a sink is refused: Linux's siw answers it.
  virtual bool refuses_reads_of_sinks() const { return true; }
  // Whether the side that connects learns the peer's two depths of reads, or the lower one.
  virtual bool tells_read_depths_apart() const { return true; }

 private:
  template <class T>
  static Task<void> keep(Task<T> task, std::optional<T>& result) {
    result.emplace(co_await std::move(task));
  }
};

struct FabricFactory {
  std::string name;
  std::function<std::unique_ptr<FabricHarness>()> make;

  // GoogleTest prints parameters.
  friend void PrintTo(const FabricFactory& factory, std::ostream* out) { *out << factory.name; }
};

}  // namespace stag::testing
