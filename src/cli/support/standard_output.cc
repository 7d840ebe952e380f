#include "cli/support/standard_output.h"

#include <poll.h>

#include <cerrno>

#include "cli/support/local_file.h"

namespace stag::cli {
namespace {

using nfs::client::Error;

// How long a worker waits for a reader before it looks whether anybody wants it still.
constexpr int kOutputPatienceMs = 100;

struct Written {
  std::size_t count = 0;
  int error = 0;
};

// Ends early where nothing is taken for a while.
Written write_now(const UnwaitingOutput& output, std::string_view data) {
  Written written;
  bool said_ready = false;
  while (written.count < data.size()) {
    const ssize_t count = output.write(data.substr(written.count));
    if (count > 0) {
      written.count += static_cast<std::size_t>(count);
      said_ready = false;
      continue;
    }
    if (count < 0 && errno != EAGAIN && errno != EINTR) {
      written.error = errno;
      break;
    }
    // A terminal that says so, and then takes none of these, is asked again on the next turn.
    if (said_ready) ::poll(nullptr, 0, kOutputPatienceMs);
    if (said_ready || !output.wait(kOutputPatienceMs)) break;
    said_ready = true;
  }
  return written;
}

}  // namespace

Task<Outcome<Ok>> StandardOutput::write(Bytes data, bool& unread) {
  std::string_view left(reinterpret_cast<const char*>(data.data()), data.size());
  while (!left.empty()) {
    const Written written = co_await offloaded(run_.loop, [&] { return write_now(output_, left); });
    unread = written.error == EPIPE;
    if (unread) co_return Failure{Error::of_local("")};
    if (written.error != 0)
      co_return Failure{Error::of_local(local_trouble("write", name_, written.error))};
    left.remove_prefix(written.count);
    if (!left.empty() && run_.cancel.cancelled())
      co_return Failure{
          Error::of_call({"write", name_}, rpc::CallError::transport(Reason::Cancelled))};
  }
  co_return Ok{};
}

}  // namespace stag::cli
