#include "nfs/server/state/server_state.h"

#include <fcntl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstring>
#include <optional>
#include <string_view>
#include <system_error>

namespace stag::nfs {

namespace {

Failure<StateError> failure(std::string_view what, const std::string& path, int error) {
  return Failure{
      StateError{std::string(what) + " " + path + ": " + std::generic_category().message(error)}};
}

class File {
 public:
  File(const std::string& path, int flags)
      : descriptor_(::open(path.c_str(), flags | O_CLOEXEC, 0600)) {}
  ~File() {
    if (descriptor_ >= 0) ::close(descriptor_);
  }
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  bool opened() const { return descriptor_ >= 0; }
  int descriptor() const { return descriptor_; }

 private:
  int descriptor_;
};

// nullopt inside: there is no such file. At most 64 bytes are read.
Result<std::optional<std::string>, StateError> read_file(const std::string& path) {
  const File file(path, O_RDONLY);
  if (!file.opened() && errno == ENOENT) return std::optional<std::string>{};
  if (!file.opened()) return failure("cannot open", path, errno);
  char text[64];
  const ssize_t length = ::read(file.descriptor(), text, sizeof text);
  if (length < 0) return failure("cannot read", path, errno);
  return std::optional(std::string(text, static_cast<std::size_t>(length)));
}

// The new content is there as a whole or not at all, also after a power failure.
Result<Ok, StateError> replace_file(const std::string& directory, const std::string& name,
                                    std::string_view content) {
  const std::string path = directory + "/" + name;
  const std::string fresh = path + ".new";
  {
    const File file(fresh, O_WRONLY | O_CREAT | O_TRUNC);
    if (!file.opened()) return failure("cannot create", fresh, errno);
    const ssize_t written = ::write(file.descriptor(), content.data(), content.size());
    if (written != static_cast<ssize_t>(content.size()))
      return failure("cannot write", fresh, written < 0 ? errno : ENOSPC);
    if (::fsync(file.descriptor()) != 0) return failure("cannot sync", fresh, errno);
  }
  if (::rename(fresh.c_str(), path.c_str()) != 0) return failure("cannot replace", path, errno);
  const File parent(directory, O_RDONLY | O_DIRECTORY);
  if (!parent.opened() || ::fsync(parent.descriptor()) != 0)
    return failure("cannot sync", directory, errno);
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

Result<Ok, StateError> random_bytes(MutableBytes to) {
  if (::getrandom(to.data(), to.size(), 0) == static_cast<ssize_t>(to.size())) return Ok{};
  return Failure{StateError{"the system gives no random bytes"}};
}

std::string hex(Bytes bytes) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string text;
  for (const std::byte byte : bytes) {
    text += kDigits[std::to_integer<unsigned>(byte) >> 4];
    text += kDigits[std::to_integer<unsigned>(byte) & 15];
  }
  return text;
}

std::optional<SipKey> key_of(std::string_view text) {
  SipKey key;
  if (!text.empty() && text.back() == '\n') text.remove_suffix(1);
  if (text.size() != 2 * key.size()) return std::nullopt;
  for (std::size_t i = 0; i < key.size(); ++i) {
    unsigned value = 0;
    const char* digits = text.data() + 2 * i;
    const auto parsed = std::from_chars(digits, digits + 2, value, 16);
    if (parsed.ec != std::errc() || parsed.ptr != digits + 2) return std::nullopt;
    key[i] = static_cast<std::byte>(value);
  }
  return key;
}

Result<SipKey, StateError> load_or_make_key(const std::string& directory) {
  const std::string path = directory + "/handle.key";
  auto stored = read_file(path);
  if (!stored) return Failure{stored.error()};
  if (stored->has_value()) {
    if (const auto key = key_of(**stored)) return *key;
    return Failure{StateError{path + " is damaged: restore it from a backup, or remove it and have "
                                     "every client mount again"}};
  }
  SipKey key;
  if (auto made = random_bytes(key); !made) return Failure{made.error()};
  if (auto kept = replace_file(directory, "handle.key", hex(key) + "\n"); !kept)
    return Failure{kept.error()};
  return key;
}

Result<std::uint32_t, StateError> count_start(const std::string& directory) {
  auto stored = read_file(directory + "/starts");
  if (!stored) return Failure{stored.error()};
  std::uint32_t starts = 0;
  // A damaged counter only weakens the verifier, whose other half is random.
  if (stored->has_value())
    std::from_chars((*stored)->data(), (*stored)->data() + (*stored)->size(), starts);
  ++starts;
  if (auto kept = replace_file(directory, "starts", std::to_string(starts) + "\n"); !kept)
    return Failure{kept.error()};
  return starts;
}

}  // namespace

Result<ServerState, StateError> ServerState::open(const std::string& directory) {
  if (auto made = make_directories(directory); !made) return Failure{made.error()};
  const auto key = load_or_make_key(directory);
  if (!key) return Failure{key.error()};
  const auto starts = count_start(directory);
  if (!starts) return Failure{starts.error()};
  std::array<std::byte, 4> chance;
  if (auto made = random_bytes(chance); !made) return Failure{made.error()};
  return ServerState{*key, std::uint64_t{*starts} << 32 | load_be<std::uint32_t>(chance.data())};
}

ServerState ServerState::ephemeral(std::uint64_t seed) {
  ServerState state;
  store_be(state.handle_key.data(), seed * 0x9e3779b97f4a7c15);
  store_be(state.handle_key.data() + 8, ~seed * 0xc2b2ae3d27d4eb4f);
  state.boot_verifier = seed;
  return state;
}

}  // namespace stag::nfs
