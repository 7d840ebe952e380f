#include "nfs/export/state/server_state.h"

#include <sys/random.h>

#include <charconv>
#include <optional>
#include <string_view>

#include "base/bytes.h"
#include "base/siphash.h"
#include "nfs/export/state/durable_file.h"

namespace stag::nfs {

namespace {

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
  auto stored = read_small_file(path);
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
  auto stored = read_small_file(directory + "/starts");
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
