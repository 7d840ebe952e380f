// Memory that a program uses again and again, registered with RDMA devices once and not by each
// call (decision 0078).
//
//   options.loops = std::make_shared<endpoint::Loops>();
//   auto client = endpoint::connect(server, options);
//   auto pool = endpoint::register_memory(options.loops, memory, MemoryAccess::ReadAndWrite);
// Arguments, and a server's results, that are borrowed from there (Buffer::borrow), and results
// that a rpc::ResultBuffer places there, are found by their address: calls need not name it. Each
// call opens its own part to its peer, with one right, and closes it before it ends. Devices
// without memory windows register for each call all the same; software iWARP and TCP register
// nothing. A device's registration ends with its last connection on a loop: the first call over the
// next one makes it again.
//
// What differs otherwise: at a device a call that may end early, by a deadline or cancelled, places
// its results there too, without a copy; when it does end early while the server still writes, that
// costs the connection, which is made again.
//
// Thread: made and destroyed on a thread that is no loop's; both block it, and the loops, while the
// pages of the memory are pinned or unpinned.
#pragma once

#include <cstdint>
#include <memory>

#include "base/bytes.h"
#include "base/reason.h"
#include "base/result.h"
#include "endpoint/loops.h"

namespace stag::endpoint {

// What peers may do with the parts of the memory that calls open to them.
enum class MemoryAccess : std::uint8_t { Read, ReadAndWrite };

// Ends the registration when it is destroyed, which is after all calls that use the memory; before,
// or after, the connections and listeners of its Loops.
class RegisteredMemory {
 public:
  RegisteredMemory(RegisteredMemory&&) noexcept;
  RegisteredMemory& operator=(RegisteredMemory&&) noexcept;
  ~RegisteredMemory();

 private:
  friend Result<RegisteredMemory, Reason> register_memory(std::shared_ptr<Loops> loops,
                                                          MutableBytes memory, MemoryAccess access);
  struct State;
  explicit RegisteredMemory(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

// For what is connected to, or listens, on `loops` (ConnectOptions::loops, ListenOptions::loops).
// `memory` stays mapped as long as the RegisteredMemory lives, and counts against RLIMIT_MEMLOCK
// once for each loop with a connection to a device. Fails with what a device says that cannot
// register it: VerbsMemlockTooLow, VerbsDeviceFull, VerbsFailed.
Result<RegisteredMemory, Reason> register_memory(std::shared_ptr<Loops> loops, MutableBytes memory,
                                                 MemoryAccess access);

}  // namespace stag::endpoint
