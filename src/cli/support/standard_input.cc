#include "cli/support/standard_input.h"

#include <poll.h>
#include <unistd.h>

#include <cerrno>

#include "cli/support/local_file.h"

namespace stag::cli {
namespace {

using nfs::client::Error;

// How long a worker waits for input before it looks whether anybody wants it still.
constexpr int kInputPatienceMs = 100;

struct InputPart {
  std::size_t count = 0;
  bool ended = false;
};

Outcome<InputPart> read_input_now(MutableBytes buffer) {
  pollfd input{STDIN_FILENO, POLLIN, 0};
  if (::poll(&input, 1, kInputPatienceMs) == 0) return InputPart{};
  const ssize_t got = ::read(STDIN_FILENO, buffer.data(), buffer.size());
  if (got < 0 && (errno == EINTR || errno == EAGAIN)) return InputPart{};
  if (got < 0) return Failure{Error::of_local(local_trouble("read", "standard input", errno))};
  return InputPart{static_cast<std::size_t>(got), got == 0};
}

}  // namespace

Task<Outcome<std::size_t>> read_standard_input(Run& run, MutableBytes buffer) {
  std::size_t done = 0;
  while (done < buffer.size()) {
    const Outcome<InputPart> part =
        co_await offloaded(run.loop, [&] { return read_input_now(buffer.subspan(done)); });
    if (!part) co_return Failure{part.error()};
    done += part->count;
    if (part->ended) break;
    if (run.cancel.cancelled())
      co_return Failure{Error::of_call({"read standard input", {}},
                                       rpc::CallError::transport(Reason::Cancelled))};
  }
  co_return done;
}

}  // namespace stag::cli
