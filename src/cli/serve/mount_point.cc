#include "cli/serve/mount_point.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <future>
#include <system_error>
#include <thread>
#include <utility>

#include "net/blocked_signals.h"

namespace stag::cli {
namespace {

bool is_mount_root(const std::string& folder) {
  // The system itself knows what is mounted: the server of that file system is not asked for its
  // attributes.
  constexpr int kFlags = AT_NO_AUTOMOUNT | AT_STATX_DONT_SYNC;
  struct statx known {};
  return ::statx(AT_FDCWD, folder.c_str(), kFlags, STATX_TYPE, &known) == 0 &&
         (known.stx_attributes & STATX_ATTR_MOUNT_ROOT) != 0;
}

}  // namespace

Result<bool, std::string> is_mount_point(const std::string& folder, Duration patience) {
  std::promise<bool> promise;
  std::future<bool> answer = promise.get_future();
  try {
    const net::BlockedSignals blocked;
    // Left to itself where it waits for a file system: nobody can call it back.
    std::thread([folder, promise = std::move(promise)]() mutable {
      promise.set_value(is_mount_root(folder));
    }).detach();
  } catch (const std::system_error&) {
    return Failure{std::string("no thread can be had to ask for it")};
  }
  if (answer.wait_for(patience) != std::future_status::ready)
    return Failure{std::string("it does not answer")};
  return answer.get();
}

std::optional<std::string> mount_point_in(std::string_view option) {
  for (const std::string_view name : {"mp", "mountpoint"}) {
    if (option == name) return "";
    if (option.starts_with(name) && option.substr(name.size()).starts_with('='))
      return std::string(option.substr(name.size() + 1));
  }
  return std::nullopt;
}

AwaitedMount awaited_mount(const std::string& exported, const std::string& at,
                           const Result<bool, std::string>& mounted) {
  if (mounted && *mounted) return {};
  if (mounted)
    return {.exported = false,
            .remark = fmt::format("{} is not exported: nothing is mounted at {}", exported, at)};
  const std::string doubt =
      fmt::format("whether anything is mounted at {} is not known: {}", at, mounted.error());
  return {.doubt = doubt,
          .remark = fmt::format("{}; if {} was exported, it stays so", doubt, exported)};
}

}  // namespace stag::cli
