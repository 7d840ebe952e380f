#include "cli/serve/process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <system_error>

#include "cli/support/file_lock.h"
#include "net/open_files.h"

namespace stag::cli {

void raise_open_files_limit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  // When the system refuses, the limit stays as it is.
  setrlimit(RLIMIT_NOFILE, &limit);
}

std::uint64_t open_files_needed(std::size_t loops, std::size_t exports) {
  // A loop has two, an export its folder and maybe the three of a table.
  constexpr std::uint64_t kOthers = 32;
  return kOthers + 2 * loops + 4 * exports;
}

ConnectionLimits connections_within(std::uint64_t open_files, std::size_t addresses,
                                    ConnectionLimits wanted) {
  const std::uint64_t share = net::connections_within(open_files) / addresses;
  const auto cut = [](std::uint32_t number, std::uint64_t most) {
    return static_cast<std::uint32_t>(std::clamp<std::uint64_t>(most, 1, number));
  };
  const std::uint32_t rdma = cut(wanted.rdma, share - share / 4);
  return {rdma, cut(wanted.tcp, std::max<std::uint64_t>(share, rdma) - rdma)};
}

std::string host_name() {
  std::array<char, 256> name{};
  return gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "localhost";
}

std::string default_state_directory() {
  if (geteuid() == 0) return "/var/lib/stag";
  const char* state = std::getenv("XDG_STATE_HOME");
  if (state != nullptr && *state != '\0') return std::string(state) + "/stag";
  const char* home = std::getenv("HOME");
  return std::string(home != nullptr ? home : "") + "/.local/state/stag";
}

namespace {

namespace files = std::filesystem;

// Makes `directory` with this mode where there is none, and those above it with the usual one.
// create_directories() would leave all of it to the umask.
std::error_code make_directory(const files::path& directory, mode_t mode) {
  // "a/b/" and "a/b/." are no names below "a/b".
  const bool unnamed = !directory.has_filename() || directory.filename() == ".";
  if (unnamed && directory.has_relative_path() && directory.has_parent_path())
    return make_directory(directory.parent_path(), mode);
  if (::mkdir(directory.c_str(), mode) == 0) return {};
  if (errno == ENOENT && directory.has_parent_path()) {
    constexpr mode_t kUsual = 0755;
    if (const auto error = make_directory(directory.parent_path(), kUsual)) return error;
    if (::mkdir(directory.c_str(), mode) == 0) return {};
  }
  const std::error_code error(errno, std::generic_category());
  std::error_code ignored;
  return files::is_directory(directory, ignored) ? std::error_code() : error;
}

constexpr std::string_view kInUse = "another 'stag serve' is using it";

Result<UniqueFd, std::string> lock_of(const std::string& directory, Duration wait,
                                      const std::function<void()>& meanwhile) {
  const std::string path = directory + "/lock";
  UniqueFd fd(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  if (!fd) return Failure{std::string(std::strerror(errno))};
  if (!lock_within(fd.fd(), wait, meanwhile))
    return Failure{std::string(errno == EWOULDBLOCK ? kInUse : std::strerror(errno))};
  return fd;
}

}  // namespace

Result<StateLock, std::string> StateLock::take(const std::string& directory, Duration wait,
                                               std::string_view if_in_use,
                                               const std::function<void()>& meanwhile) {
  const auto trouble = [&](const std::string& why) {
    return Failure{fmt::format("cannot use the state directory '{}': {}; {}", directory, why,
                               why == kInUse ? if_in_use : "choose one with --state")};
  };
  constexpr mode_t kPrivate = 0700;
  if (const auto error = make_directory(directory, kPrivate)) return trouble(error.message());
  auto locked = lock_of(directory, wait, meanwhile);
  if (!locked) return trouble(locked.error());
  return StateLock(*std::move(locked));
}

Result<StateLock, std::string> StateLock::take_ended(const std::string& directory) {
  auto locked = lock_of(directory, {}, [] {});
  if (!locked) return Failure{locked.error()};
  return StateLock(*std::move(locked));
}

}  // namespace stag::cli
