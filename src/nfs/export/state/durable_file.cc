#include "nfs/export/state/durable_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <system_error>

#include "base/unique_fd.h"

namespace stag::nfs {

namespace {

Failure<StateError> failure(std::string_view what, const std::string& path, int error) {
  return Failure{
      StateError{std::string(what) + " " + path + ": " + std::generic_category().message(error)}};
}

UniqueFd open_file(const std::string& path, int flags) {
  return UniqueFd(::open(path.c_str(), flags | O_CLOEXEC, 0600));
}

Result<Ok, StateError> sync_directory(const std::string& directory) {
  const UniqueFd parent = open_file(directory, O_RDONLY | O_DIRECTORY);
  if (!parent || ::fsync(parent.fd()) != 0) return failure("cannot sync", directory, errno);
  return Ok{};
}

}  // namespace

Result<std::optional<std::string>, StateError> read_small_file(const std::string& path) {
  const UniqueFd file = open_file(path, O_RDONLY);
  if (!file && errno == ENOENT) return std::optional<std::string>{};
  if (!file) return failure("cannot open", path, errno);
  char text[64];
  const ssize_t length = ::read(file.fd(), text, sizeof text);
  if (length < 0) return failure("cannot read", path, errno);
  return std::optional(std::string(text, static_cast<std::size_t>(length)));
}

Result<Ok, StateError> replace_file(const std::string& directory, const std::string& name,
                                    std::string_view content) {
  const std::string path = directory + "/" + name;
  const std::string fresh = path + ".new";
  {
    const UniqueFd file = open_file(fresh, O_WRONLY | O_CREAT | O_TRUNC);
    if (!file) return failure("cannot create", fresh, errno);
    const ssize_t written = ::write(file.fd(), content.data(), content.size());
    if (written != static_cast<ssize_t>(content.size()))
      return failure("cannot write", fresh, written < 0 ? errno : ENOSPC);
    if (::fsync(file.fd()) != 0) return failure("cannot sync", fresh, errno);
  }
  if (::rename(fresh.c_str(), path.c_str()) != 0) return failure("cannot replace", path, errno);
  return sync_directory(directory);
}

Result<Ok, StateError> remove_file(const std::string& directory, const std::string& name) {
  return remove_files(directory, {name});
}

Result<Ok, StateError> remove_files(const std::string& directory,
                                    const std::vector<std::string>& names) {
  Result<Ok, StateError> removed = Ok{};
  for (const std::string& name : names) {
    const std::string path = directory + "/" + name;
    if (::unlink(path.c_str()) != 0 && errno != ENOENT)
      removed = failure("cannot remove", path, errno);
  }
  const Result<Ok, StateError> synced = sync_directory(directory);
  return removed ? synced : removed;
}

namespace {

// A link to nothing is there: nothing can be made in its place.
bool is_there(const std::filesystem::path& path) {
  struct stat found {};
  return ::lstat(path.c_str(), &found) == 0 || errno != ENOENT;
}

// What make_directories() would make it in.
std::filesystem::path nearest_above(const std::string& directory) {
  std::error_code unknown;  // of the current directory
  std::filesystem::path above = std::filesystem::absolute(directory, unknown).lexically_normal();
  while (!is_there(above) && above.has_relative_path()) above = above.parent_path();
  return above;
}

}  // namespace

Result<Ok, StateError> try_to_write(const std::string& directory, std::size_t bytes) {
  if (!is_there(directory)) {
    const auto tried = try_to_write(nearest_above(directory), bytes);
    if (tried) return tried;
    return Failure{StateError{"cannot make " + directory + ": " + tried.error().message}};
  }
  const std::string path = directory + "/try." + std::to_string(::getpid());
  const UniqueFd file = open_file(path, O_WRONLY | O_CREAT | O_EXCL);
  if (!file) return failure("cannot create", path, errno);
  // At once, so that no end of this process leaves it behind.
  if (::unlink(path.c_str()) != 0) return failure("cannot remove", path, errno);
  const std::string content(bytes, '\0');
  const ssize_t written = ::write(file.fd(), content.data(), content.size());
  if (written != static_cast<ssize_t>(content.size()))
    return failure("cannot write in", directory, written < 0 ? errno : ENOSPC);
  if (::fsync(file.fd()) != 0) return failure("cannot sync", path, errno);
  return Ok{};
}

Result<Ok, StateError> make_directories(const std::string& path) {
  for (std::size_t end = path.find('/', 1);; end = path.find('/', end + 1)) {
    const std::string part = path.substr(0, end);
    if (::mkdir(part.c_str(), 0700) != 0 && errno != EEXIST)
      return failure("cannot make", part, errno);
    if (end == std::string::npos) return Ok{};
  }
}

}  // namespace stag::nfs
