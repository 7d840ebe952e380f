#include "fuse/settling.h"

#include <optional>

#include "nfs/client/protocol/error.h"
#include "nfs/client/protocol/types.h"

namespace stag::fuse {

using nfs::client::Attributes;
using nfs::client::Error;
using nfs::client::Outcome;
using nfs::client::Status;

Task<void> Settling::end() {
  soon_.end();
  co_await begun_.join();
}

// Each file for itself: one whose SETATTR is not answered holds up no other one, nor has it a
// second. The next time is asked for first: there is one also where memory runs out in this one.
void Settling::settle_due() {
  if (new_files_.any_waits()) soon_.ask();
  for (const std::uint64_t number : new_files_.due(loop_.now() - kAfter))
    if (!turns_.taken(number)) begun_.add(settle_by_itself(number));
}

// Where it fails, close(2) tries again, and tells.
Task<void> Settling::settle_by_itself(std::uint64_t number) {
  static_cast<void>(co_await settle(number));
}

Task<Outcome<Ok>> Settling::settle(std::uint64_t number) {
  if (!new_files_.knows(number)) co_return Ok{};
  const Turns::Turn turn = co_await turns_.alone(number);
  const std::optional<NewFiles::Waiting> waiting = new_files_.waiting(number);
  if (!waiting) co_return new_files_.refusal(number);
  const std::uint64_t version = new_files_.version(number);
  const Outcome<Attributes> set = co_await files_.change(waiting->handle, waiting->times);
  if (set) {
    new_files_.on_set(number, version, waiting->times, *set, loop_.now());
    co_return Ok{};
  }
  const Error& error = set.error();
  const bool removed = error.is(Status::Stale);
  if (removed)
    new_files_.on_refused(number, waiting->times, std::nullopt);
  else if (error.kind == Error::Kind::Nfs)
    new_files_.on_refused(number, waiting->times, error);
  else
    new_files_.on_unheard(number, loop_.now());
  if (removed) co_return Ok{};
  co_return Failure{error};
}

}  // namespace stag::fuse
